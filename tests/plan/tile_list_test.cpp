#include "plan/tile_list.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "support/pattern_oracle.hpp"
#include "support/sample_patterns.hpp"

// Tiles of every kind of pattern against tiles that are cut pair by pair.

using namespace cobble;
using namespace cobble::test;
using cobble::detail::cut_tiles;
using cobble::detail::PlanTile;
using cobble::detail::Range;
using cobble::detail::TileCut;
using cobble::detail::TileList;

namespace {

constexpr std::int64_t kNoLimit = 16384;

/// A tile of the oracle's pairs, with everything that a list says about it.
PlanTile tile_of(const DensePattern& dense, Range rows, Range columns, bool counts_touched) {
  PlanTile tile;
  tile.column_begin = static_cast<std::int32_t>(columns.begin);
  tile.column_end = static_cast<std::int32_t>(columns.end);
  tile.pairs = dense.pairs(rows.begin, rows.end, columns.begin, columns.end);
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    if (!counts_touched || dense.pairs(i, i + 1, columns.begin, columns.end) > 0) ++tile.touched_rows;
  }
  for (std::int64_t j = columns.begin; j < columns.end; ++j) {
    if (!counts_touched || dense.pairs(rows.begin, rows.end, j, j + 1) > 0) ++tile.touched_columns;
  }
  tile.kind = tile.pairs == rows.size() * columns.size() ? TileKind::full : TileKind::partial;
  return tile;
}

/// Column panels of one width.
std::vector<Range> panels_of(const DensePattern& dense, Range rows, std::int64_t columns, const TileCut& cut) {
  std::vector<Range> tiles;
  for (std::int64_t begin = 0; begin < columns; begin += cut.column_panel) {
    const std::int64_t end = std::min(begin + cut.column_panel, columns);
    if (dense.pairs(rows.begin, rows.end, begin, end) > 0) tiles.push_back({begin, end});
  }
  return tiles;
}

/// Column after column joins the tile before it while that holds no more pairs and spans no more columns than it may.
std::vector<Range> runs_of(const DensePattern& dense, Range rows, std::int64_t columns, const TileCut& cut) {
  std::vector<Range> tiles;
  for (std::int64_t j = 0; j < columns; ++j) {
    if (dense.pairs(rows.begin, rows.end, j, j + 1) == 0) continue;
    const bool joins = !tiles.empty() && j + 1 - tiles.back().begin <= cut.column_panel &&
                       dense.pairs(rows.begin, rows.end, tiles.back().begin, j + 1) <= cut.most_pairs;
    if (!joins) tiles.push_back({j, j});
    tiles.back().end = j + 1;
  }
  return tiles;
}

/// The first row panel whose tiles differ from the oracle's, or nothing.
std::string first_difference(const TileList& list, const DensePattern& dense, std::int64_t rows, std::int64_t columns,
                             const TileCut& cut) {
  const std::int64_t panels = (rows + cut.row_panel - 1) / cut.row_panel;
  if (list.row_offsets.size() != static_cast<std::size_t>(panels) + 1) return "number of row panels";
  if (list.row_offsets.back() != static_cast<std::int64_t>(list.tiles.size())) return "last offset";
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const Range range{panel * cut.row_panel, std::min((panel + 1) * cut.row_panel, rows)};
    std::vector<PlanTile> expected;
    for (const Range& tile :
         cut.most_pairs > 0 ? runs_of(dense, range, columns, cut) : panels_of(dense, range, columns, cut)) {
      expected.push_back(tile_of(dense, range, tile, cut.counts_touched));
    }
    const auto found = list.row(panel);
    if (!std::equal(found.begin(), found.end(), expected.begin(), expected.end())) {
      return "row panel " + std::to_string(panel);
    }
  }
  return {};
}

/// Sizes and cuts for each kind of pattern.
template <class Check>
void over_patterns(const std::vector<TileCut>& cuts, Check&& check) {
  struct Size {
    std::int64_t n_q, n_k;
  };
  for (const Size size : {Size{1, 1}, {17, 17}, {65, 65}, {40, 90}, {90, 40}, {3, 0}}) {
    const std::int64_t n_q = size.n_q, n_k = size.n_k;
    for (const SamplePattern& sample : named_sample_patterns(n_q, n_k)) {
      const DensePattern dense(n_q, n_k, sample.contains);
      for (const TileCut& cut : cuts) {
        INFO(sample.name, ", ", n_q, " x ", n_k, ", row panel ", cut.row_panel, ", column panel ", cut.column_panel,
             ", most pairs ", cut.most_pairs, cut.counts_touched ? ", touched counted" : "");
        check(sample.pattern, dense, cut);
      }
    }
  }
}

const std::vector<TileCut> kPanelCuts{{1, 1, 0, true, true},   {16, 16, 0, false, true}, {7, 30, 0, true, false},
                                      {64, 64, 0, true, true}, {5, 4096, 0, true, true}, {300, 3, 0, true, true}};

}  // namespace

TEST_CASE("tiles of column panels are those of the pattern, cut pair by pair") {
  over_patterns(kPanelCuts, [](const Pattern& pattern, const DensePattern& dense, const TileCut& cut) {
    CHECK(first_difference(cut_tiles(pattern, cut), dense, pattern.rows(), pattern.columns(), cut) == "");
  });
}

TEST_CASE("tiles by pairs take as many columns as their pairs and their span allow") {
  const std::vector<TileCut> cuts{{1, kNoLimit, 1, false, true},     {1, kNoLimit, 62, false, true},
                                  {8, kNoLimit, 8, false, true},     {16, kNoLimit, 100, false, true},
                                  {300, kNoLimit, 300, false, true}, {7, 10, 30, false, true},
                                  {5, 1, 100, false, true},          {64, 20, 100000, false, false}};
  over_patterns(cuts, [](const Pattern& pattern, const DensePattern& dense, const TileCut& cut) {
    const TileList list = cut_tiles(pattern, cut);
    CHECK(first_difference(list, dense, pattern.rows(), pattern.columns(), cut) == "");
    // What the walks rely on, once more and directly.
    std::int64_t pairs = 0;
    bool within = true;
    for (const PlanTile& tile : list.tiles) {
      pairs += tile.pairs;
      within = within && tile.pairs > 0 && tile.pairs <= cut.most_pairs && tile.columns().size() <= cut.column_panel;
    }
    CHECK(within);
    CHECK(pairs == pattern.pairs());
  });
}

TEST_CASE("the list by columns holds every tile once, under its column panel, rows ascending") {
  over_patterns(kPanelCuts, [](const Pattern& pattern, const DensePattern&, const TileCut& cut) {
    const TileList list = cut_tiles(pattern, cut);
    if (!cut.by_columns) {
      CHECK(list.column_offsets.empty());
      CHECK(list.by_column.empty());
      return;
    }
    const std::int64_t panels = (pattern.columns() + cut.column_panel - 1) / cut.column_panel;
    REQUIRE(list.column_offsets.size() == static_cast<std::size_t>(panels) + 1);
    std::vector<int> listed(list.tiles.size());
    bool in_place = true;
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      std::int64_t last_row_panel = -1;
      for (const TileList::Reference& reference : list.column(panel)) {
        const auto tile = static_cast<std::size_t>(reference.tile);
        REQUIRE(tile < list.tiles.size());
        ++listed[tile];
        const std::int64_t first = list.row_offsets[static_cast<std::size_t>(reference.row_panel)];
        const std::int64_t end = list.row_offsets[static_cast<std::size_t>(reference.row_panel) + 1];
        in_place = in_place && list.tiles[tile].column_begin == panel * cut.column_panel && reference.tile >= first &&
                   reference.tile < end && reference.row_panel > last_row_panel;
        last_row_panel = reference.row_panel;
      }
    }
    CHECK(in_place);
    CHECK(std::all_of(listed.begin(), listed.end(), [](int times) { return times == 1; }));
  });
}

TEST_CASE("a tile by pairs closes before the span, not before the gap, becomes too long") {
  // One pair each in columns 0, 9, 10 and 30; at most 10 columns: 0..9 fits, 10 opens a tile, 30 the next.
  const Pattern pattern = from_csr({1, 40, {0, 4}, {0, 9, 10, 30}});
  const TileList list = cut_tiles(pattern, {1, 10, 100, false, true});
  const std::vector<PlanTile> expected{
      {0, 10, 2, 1, 2, TileKind::partial}, {10, 11, 1, 1, 1, TileKind::full}, {30, 31, 1, 1, 1, TileKind::full}};
  CHECK(list.tiles == expected);
}

TEST_CASE("pairs that are few and far between are cut like any others") {
  const std::int64_t columns = 20000;
  const PairPredicate far_apart = [](std::int64_t i, std::int64_t j) {
    return j == 3000 * i || (j >= 11000 && j < 11100 + 10 * i) || (i == 1 && j == columns - 1);
  };
  const DensePattern dense(4, columns, far_apart);
  const Pattern pattern = from_csr(csr_of(4, columns, far_apart));
  for (const TileCut& cut : {TileCut{2, 4096, 0, true, true}, TileCut{4, 50, 0, false, true},
                             TileCut{2, kNoLimit, 90, false, true}, TileCut{4, 3000, 7, false, true}}) {
    CHECK(first_difference(cut_tiles(pattern, cut), dense, 4, columns, cut) == "");
  }
}

TEST_CASE("memory of a list follows its tiles") {
  const TileList few = cut_tiles(window(10000, 10, 0), {100, 100, 0, false, false});
  const TileList many = cut_tiles(window(10000, 10, 0), {10, 10, 0, true, false});
  CHECK(few.memory_bytes() >= static_cast<std::int64_t>(few.tiles.size() * sizeof(PlanTile)));
  CHECK(few.memory_bytes() < 10000 * 4);
  CHECK(many.memory_bytes() > 5 * few.memory_bytes());
}
