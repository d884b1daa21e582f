#include "pattern_statistics.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <numeric>

#include "progress.hpp"

namespace cobble::program {

AxisStatistics axis_statistics(std::vector<std::int64_t> counts) {
  AxisStatistics statistics;
  statistics.heaviest = -1;
  if (counts.empty()) return statistics;
  const auto heaviest = std::max_element(counts.begin(), counts.end());
  statistics.heaviest = heaviest - counts.begin();
  statistics.maximum = *heaviest;
  statistics.minimum = *std::min_element(counts.begin(), counts.end());
  statistics.empty = std::count(counts.begin(), counts.end(), 0);
  const auto sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  statistics.mean = static_cast<double>(sum) / static_cast<double>(counts.size());
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::nth_element(counts.begin(), middle, counts.end());
  statistics.median = static_cast<double>(*middle);
  if (counts.size() % 2 == 0) {
    statistics.median = (statistics.median + static_cast<double>(*std::max_element(counts.begin(), middle))) / 2;
  }
  return statistics;
}

PatternStatistics pattern_statistics(const Pattern& pattern, Progress& progress) {
  std::vector<std::int64_t> row_counts(static_cast<std::size_t>(pattern.rows()));
  // A run adds 1 at its first column and takes it back after its last; the running sum is the count.
  std::vector<std::int64_t> column_changes(static_cast<std::size_t>(pattern.columns()) + 1);
  std::vector<ColumnRun> runs;
  for (std::size_t row = 0; row < row_counts.size(); ++row) {
    runs.clear();
    pattern.append_runs(static_cast<std::int64_t>(row), 0, pattern.columns(), runs);
    for (const ColumnRun& run : runs) {
      row_counts[row] += run.end - run.begin;
      ++column_changes[static_cast<std::size_t>(run.begin)];
      --column_changes[static_cast<std::size_t>(run.end)];
    }
    progress.advance();
  }
  column_changes.pop_back();
  std::partial_sum(column_changes.begin(), column_changes.end(), column_changes.begin());
  return {axis_statistics(std::move(row_counts)), axis_statistics(std::move(column_changes))};
}

TileStatistics tile_statistics(const Pattern& pattern, std::int64_t size, Progress& progress) {
  const std::int64_t rows = pattern.rows();
  const std::int64_t columns = pattern.columns();
  const std::int64_t row_panels = (rows + size - 1) / size;
  const std::int64_t column_panels = (columns + size - 1) / size;

  const auto add_panels = [&](const tbb::blocked_range<std::int64_t>& panels, TileStatistics sum) {
    std::vector<PatternTile> tiles;
    for (std::int64_t panel = panels.begin(); panel != panels.end(); ++panel) {
      const std::int64_t row_begin = panel * size;
      const std::int64_t row_end = std::min(rows, row_begin + size);
      pattern.tiles(row_begin, row_end, size, tiles);
      for (const PatternTile& tile : tiles) {
        const std::int64_t column_begin = tile.column_panel * size;
        sum.covered_area += (row_end - row_begin) * (std::min(columns, column_begin + size) - column_begin);
        sum.pairs += tile.pairs;
        ++(tile.kind == TileKind::full ? sum.full : sum.partial);
      }
      progress.advance(row_end - row_begin);
    }
    return sum;
  };
  const auto add = [](TileStatistics a, const TileStatistics& b) {
    a.full += b.full;
    a.partial += b.partial;
    a.covered_area += b.covered_area;
    a.pairs += b.pairs;
    return a;
  };
  TileStatistics statistics =
      tbb::parallel_reduce(tbb::blocked_range<std::int64_t>(0, row_panels), TileStatistics{}, add_panels, add);
  statistics.size = size;
  statistics.empty = row_panels * column_panels - statistics.full - statistics.partial;
  return statistics;
}

}  // namespace cobble::program
