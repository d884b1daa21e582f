#include "pattern_statistics.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "progress.hpp"

using namespace cobble;
using namespace cobble::program;

TEST_CASE("axis statistics of an odd and an even number of counts") {
  const AxisStatistics odd = axis_statistics({3, 0, 7});
  CHECK(odd.minimum == 0);
  CHECK(odd.median == 3);
  CHECK(odd.mean == doctest::Approx(10.0 / 3));
  CHECK(odd.maximum == 7);
  CHECK(odd.empty == 1);
  CHECK(odd.heaviest == 2);
  CHECK(axis_statistics({5, 1, 2, 9}).median == 3.5);
  CHECK(axis_statistics({4, 4}).heaviest == 0);
  CHECK(axis_statistics({}).heaviest == -1);
}

TEST_CASE("rows and columns are counted as in the dense pattern") {
  const Pattern pattern = (window(70, 50, 9, 4) | leading_tokens(70, 50, 3)) - dilated(70, 50, 2, 3);
  std::vector<std::int64_t> rows(70), columns(50);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < columns.size(); ++column) {
      if (!pattern.contains(static_cast<std::int64_t>(row), static_cast<std::int64_t>(column))) continue;
      ++rows[row];
      ++columns[column];
    }
  }
  Progress progress("counting");
  const PatternStatistics statistics = pattern_statistics(pattern, progress);
  const auto check = [](const AxisStatistics& found, const AxisStatistics& expected) {
    CHECK(found.minimum == expected.minimum);
    CHECK(found.median == expected.median);
    CHECK(found.mean == expected.mean);
    CHECK(found.maximum == expected.maximum);
    CHECK(found.empty == expected.empty);
    CHECK(found.heaviest == expected.heaviest);
  };
  check(statistics.rows, axis_statistics(rows));
  check(statistics.columns, axis_statistics(columns));
}

TEST_CASE("tiles of a causal pattern: full below the diagonal, partial on it, the ragged edge by its own area") {
  Progress progress("counting");
  const TileStatistics tiles = tile_statistics(causal(40), 16, progress);
  CHECK(tiles.tiles() == 9);
  CHECK(tiles.full == 3);
  CHECK(tiles.partial == 3);
  CHECK(tiles.empty == 3);
  CHECK(tiles.pairs == 820);
  CHECK(tiles.covered_area == 16 * 16 * 3 + 8 * 16 * 2 + 8 * 8);
  CHECK(tiles.fill() == doctest::Approx(820.0 / 1088));
}

TEST_CASE("tile statistics of an empty pattern") {
  Progress progress("counting");
  const TileStatistics tiles = tile_statistics(!full(20), 16, progress);
  CHECK(tiles.empty == 4);
  CHECK(tiles.fill() == 0);
  CHECK(tile_statistics(full(0), 16, progress).tiles() == 0);
}
