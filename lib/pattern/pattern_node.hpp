#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cobble/pattern.hpp"

namespace cobble::detail {

/// What a kind of pattern must answer. Everything else follows from runs().
class PatternNode {
 public:
  PatternNode(std::int64_t rows, std::int64_t columns);
  virtual ~PatternNode() = default;
  PatternNode(const PatternNode&) = delete;
  PatternNode& operator=(const PatternNode&) = delete;

  std::int32_t rows() const noexcept { return rows_; }
  std::int32_t columns() const noexcept { return columns_; }

  /// Appends the maximal runs of `row` within [begin, end), sorted and disjoint, 0 <= begin <= end <= columns. Runs
  /// already in `runs` belong to the caller and are not merged with.
  virtual void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                           std::vector<ColumnRun>& runs) const = 0;
  /// Pairs in rows [row_begin, row_end). The default walks the runs.
  virtual std::int64_t pairs(std::int32_t row_begin, std::int32_t row_end) const;
  virtual std::string describe() const = 0;

 private:
  std::int32_t rows_;
  std::int32_t columns_;
};

/// Appends [begin, end) clipped to [low, high) unless nothing is left; merges with the last run of `runs` from
/// position `first` on when the two touch or overlap.
inline void append_clipped(std::int64_t begin, std::int64_t end, std::int32_t low, std::int32_t high, std::size_t first,
                           std::vector<ColumnRun>& runs) {
  if (begin < low) begin = low;
  if (end > high) end = high;
  if (begin >= end) return;
  if (runs.size() > first && runs.back().end >= begin) {
    if (runs.back().end < end) runs.back().end = static_cast<std::int32_t>(end);
    return;
  }
  runs.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)});
}

}  // namespace cobble::detail
