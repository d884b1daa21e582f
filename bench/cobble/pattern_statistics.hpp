#pragma once

#include <cstdint>
#include <vector>

#include "cobble/pattern.hpp"

namespace cobble::program {

class Progress;

/// Pairs in each row, or in each column.
struct AxisStatistics {
  std::int64_t minimum = 0;
  double median = 0;
  double mean = 0;
  std::int64_t maximum = 0;
  std::int64_t empty = 0;     ///< how many have no pair
  std::int64_t heaviest = 0;  ///< the first of those with the most pairs; -1 when there are none
};
AxisStatistics axis_statistics(std::vector<std::int64_t> counts);

struct PatternStatistics {
  AxisStatistics rows;
  AxisStatistics columns;
};
/// Walks the runs of every row. O(rows + columns) memory. `progress` advances by the rows.
PatternStatistics pattern_statistics(const Pattern& pattern, Progress& progress);

/// How square tiles of one size cover the pattern.
struct TileStatistics {
  std::int64_t size = 0;
  std::int64_t full = 0;
  std::int64_t partial = 0;
  std::int64_t empty = 0;
  std::int64_t covered_area = 0;  ///< of the non-empty tiles, ragged ones clipped
  std::int64_t pairs = 0;

  std::int64_t tiles() const { return full + partial + empty; }
  /// Pairs over the area of the non-empty tiles; 0 without any.
  double fill() const { return covered_area == 0 ? 0 : static_cast<double>(pairs) / static_cast<double>(covered_area); }
};
/// `progress` advances by the rows.
TileStatistics tile_statistics(const Pattern& pattern, std::int64_t size, Progress& progress);

}  // namespace cobble::program
