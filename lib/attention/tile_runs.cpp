#include "attention/tile_runs.hpp"

namespace cobble::detail {

void TileRuns::assign(const Pattern& pattern, Range rows, Range keys, std::int64_t pairs, TileKind kind) {
  rows_ = rows;
  keys_ = keys;
  layout_ = tile_layout(rows.size(), keys.size(), pairs);
  runs_.clear();
  row_first_.clear();
  row_first_.push_back(0);
  std::int64_t next = 0;
  for (std::int64_t row = 0; row < rows.size(); ++row) {
    columns_.clear();
    if (kind == TileKind::full) {
      columns_.push_back({static_cast<std::int32_t>(keys.begin), static_cast<std::int32_t>(keys.end)});
    } else {
      pattern.append_runs(rows.begin + row, keys.begin, keys.end, columns_);
    }
    for (const ColumnRun& run : columns_) {
      const std::int64_t begin = run.begin - keys.begin;
      const std::int64_t size = run.end - run.begin;
      runs_.push_back({begin, size, layout_.compact ? next : row * layout_.row_stride + begin});
      next += size;
    }
    row_first_.push_back(runs_.size());
  }
}

}  // namespace cobble::detail
