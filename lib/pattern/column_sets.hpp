#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cobble/pattern.hpp"

namespace cobble::detail {

/// Sorted distinct columns as maximal runs.
inline std::vector<ColumnRun> runs_of(std::span<const std::int32_t> columns) {
  std::vector<ColumnRun> runs;
  for (const std::int32_t column : columns) {
    if (!runs.empty() && runs.back().end == column) {
      ++runs.back().end;
    } else {
      runs.push_back({column, column + 1});
    }
  }
  return runs;
}

/// The first of sorted disjoint runs that reaches beyond `column`.
inline std::vector<ColumnRun>::const_iterator first_ending_after(const std::vector<ColumnRun>& runs,
                                                                 std::int64_t column) {
  return std::partition_point(runs.begin(), runs.end(), [column](ColumnRun run) { return run.end <= column; });
}

}  // namespace cobble::detail
