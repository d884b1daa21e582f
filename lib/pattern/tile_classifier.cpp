#include "pattern/tile_classifier.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

#include "core/checked.hpp"

namespace cobble::detail {
namespace {

std::size_t words_for(std::int64_t bits) { return static_cast<std::size_t>(divide_up(bits, 64)); }

/// Calls visit(position) for each set bit in ascending order and clears them all. `base` is the first bit's position.
template <class Visit>
void drain(std::uint64_t& word, std::int64_t base, Visit visit) {
  for (; word != 0; word &= word - 1) visit(base + std::countr_zero(word));
}

}  // namespace

TileClassifier::TileClassifier(std::int64_t columns, std::int64_t column_panel)
    : columns_(columns),
      column_panel_(std::min<std::int64_t>(column_panel, std::numeric_limits<std::int32_t>::max())),
      column_panels_(divide_up(columns, column_panel_)),
      divisor_(static_cast<std::uint32_t>(column_panel_)),
      entries_(static_cast<std::size_t>(column_panels_)),
      touched_(words_for(column_panels_)),
      touched_words_(words_for(static_cast<std::int64_t>(touched_.size()))),
      touched_groups_(words_for(static_cast<std::int64_t>(touched_words_.size()))) {
  if (std::has_single_bit(divisor_)) shift_ = std::countr_zero(divisor_);
}

void TileClassifier::add_run(std::int64_t begin, std::int64_t end, std::int64_t rows) {
  const std::int64_t first = panel_of(begin);
  const std::int64_t last = panel_of(end - 1);
  Entry* const entries = entries_.data();
  touch(first);
  if (first == last) {
    entries[first].pairs += (end - begin) * rows;
    return;
  }
  touch(last);
  entries[first].pairs += ((first + 1) * column_panel_ - begin) * rows;
  entries[last].pairs += (end - last * column_panel_) * rows;
  if (first + 1 < last) {
    touch(first + 1);
    entries[first + 1].whole_rows += rows;
    entries[last].whole_rows -= rows;
  }
}

void TileClassifier::append_tile(std::int64_t panel, std::int64_t pairs, std::int64_t height,
                                 std::vector<PatternTile>& tiles) {
  const std::int64_t width = std::min(column_panel_, columns_ - panel * column_panel_);
  tiles.push_back(
      {static_cast<std::int32_t>(panel), pairs == height * width ? TileKind::full : TileKind::partial, pairs});
}

void TileClassifier::emit(std::int64_t panel, std::int64_t height, std::vector<PatternTile>& tiles) {
  if (whole_rows_ > 0) {
    const std::int64_t pairs = whole_rows_ * column_panel_;
    for (; next_panel_ < panel; ++next_panel_) append_tile(next_panel_, pairs, height, tiles);
  }
  Entry& entry = entries_[static_cast<std::size_t>(panel)];
  whole_rows_ += entry.whole_rows;
  const std::int64_t pairs = entry.pairs + whole_rows_ * column_panel_;
  if (pairs > 0) append_tile(panel, pairs, height, tiles);
  entry = {};
  next_panel_ = panel + 1;
}

void TileClassifier::add_rows(const PatternNode& node, std::int64_t row_begin, std::int64_t row_end) {
  const auto end = static_cast<std::int32_t>(columns_);
  for (std::int64_t row = row_begin; row < row_end;) {
    runs_.clear();
    node.append_runs(static_cast<std::int32_t>(row), 0, end, runs_);
    const std::int64_t next = std::min<std::int64_t>(node.alike_until(static_cast<std::int32_t>(row)), row_end);
    for (const ColumnRun run : runs_) add_run(run.begin, run.end, next - row);
    row = next;
  }
}

void TileClassifier::clear() {
  std::fill(entries_.begin(), entries_.end(), Entry{});
  for (auto* level : {&touched_, &touched_words_, &touched_groups_}) std::fill(level->begin(), level->end(), 0);
}

void TileClassifier::classify(const PatternNode& node, std::int64_t row_begin, std::int64_t row_end,
                              std::vector<PatternTile>& tiles) {
  tiles.clear();
  try {
    add_rows(node, row_begin, row_end);
  } catch (...) {  // a user's predicate may throw; the next call must find the buffers clean
    clear();
    throw;
  }

  next_panel_ = 0;
  whole_rows_ = 0;
  for (std::size_t k = 0; k < touched_groups_.size(); ++k) {
    drain(touched_groups_[k], static_cast<std::int64_t>(k) * 64, [&](std::int64_t group) {
      drain(touched_words_[static_cast<std::size_t>(group)], group * 64, [&](std::int64_t word) {
        drain(touched_[static_cast<std::size_t>(word)], word * 64,
              [&](std::int64_t panel) { emit(panel, row_end - row_begin, tiles); });
      });
    });
  }
}

}  // namespace cobble::detail
