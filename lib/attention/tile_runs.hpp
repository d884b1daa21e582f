#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cobble/pattern.hpp"
#include "plan/plan_data.hpp"

namespace cobble::detail {

/// Where the pairs of one tile stand: for each row its runs of keys, and for each run the place of its first value.
class TileRuns {
 public:
  struct Run {
    std::int64_t begin = 0;  ///< first key, counted from the tile's
    std::int64_t size = 0;
    std::int64_t at = 0;  ///< place of the first value
  };

  void assign(const Pattern& pattern, Range rows, Range keys, std::int64_t pairs, TileKind kind);

  const TileLayout& layout() const noexcept { return layout_; }
  std::int64_t rows() const noexcept { return rows_.size(); }
  std::int64_t keys() const noexcept { return keys_.size(); }
  std::span<const Run> row(std::int64_t row) const noexcept {
    const auto index = static_cast<std::size_t>(row);
    return std::span(runs_).subspan(row_first_[index], row_first_[index + 1] - row_first_[index]);
  }

 private:
  Range rows_;
  Range keys_;
  TileLayout layout_;
  std::vector<Run> runs_;
  std::vector<std::size_t> row_first_;
  std::vector<ColumnRun> columns_;  ///< scratch
};

}  // namespace cobble::detail
