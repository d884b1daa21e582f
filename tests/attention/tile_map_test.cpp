#include "attention/tile_map.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plan/tile_list.hpp"
#include "support/sample_patterns.hpp"

using namespace cobble;
using namespace cobble::detail;
using namespace cobble::test;
using kernels::Interval;

namespace {

struct Seen {
  int full = 0, intervals = 0, bits = 0, lists = 0;
};

/// The smallest interval that holds all of the numbers.
Interval hull(const std::vector<std::int64_t>& sorted) {
  if (sorted.empty()) return {};
  return {static_cast<std::int32_t>(sorted.front()), static_cast<std::int32_t>(sorted.back() + 1)};
}

bool same(const Interval& a, const Interval& b) {
  return (a.begin == b.begin && a.end == b.end) || (a.begin == a.end && b.begin == b.end);
}

/// Whether the map says of every place in the tile what the predicate does.
bool is_right(TileMap& map, Range rows, Range keys, std::int64_t pairs, bool lists, const PairPredicate& contains,
              Seen& seen) {
  std::vector<std::vector<std::int64_t>> keys_of(static_cast<std::size_t>(rows.size()));
  std::vector<std::vector<std::int64_t>> queries_of(static_cast<std::size_t>(keys.size()));
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      if (!contains(rows.begin + i, keys.begin + j)) continue;
      keys_of[static_cast<std::size_t>(i)].push_back(j);
      queries_of[static_cast<std::size_t>(j)].push_back(i);
    }
  }
  bool right = map.rows() == rows.size() && map.keys() == keys.size();
  std::set<std::int64_t> places;
  std::int64_t visited = 0;
  map.for_each_pair([&](std::int64_t query, std::int64_t key, std::int64_t place) {
    right = right && contains(rows.begin + query, keys.begin + key);
    right = right && place == (map.is_dense() ? key * map.stride() + query : visited);
    right = right && place < tile_layout(rows.size(), keys.size(), pairs, lists).values;
    places.insert(place);
    ++visited;
  });
  right = right && visited == pairs && std::ssize(places) == pairs;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    std::vector<std::int64_t> of_query;
    map.for_each_key(i, [&](std::int64_t key, std::int64_t place) {
      of_query.push_back(key);
      right = right && places.contains(place);
    });
    right = right && of_query == keys_of[static_cast<std::size_t>(i)];
  }
  if (!map.is_dense()) {
    seen.lists += 1;
    const kernels::PairTile list = map.pairs();
    right = right && list.rows == rows.size() && list.row_offsets[0] == 0 && list.row_offsets[list.rows] == pairs;
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      const std::vector<std::int64_t> row(list.keys + list.row_offsets[i], list.keys + list.row_offsets[i + 1]);
      right = right && row == keys_of[static_cast<std::size_t>(i)];
    }
    return right;
  }
  float value = 0;
  const kernels::DenseTile<float> dense = map.dense(&value);
  right = right && dense.queries == map.stride() && dense.stride == map.stride() && dense.keys == keys.size();
  right = right && dense.queries >= rows.size() && dense.queries < rows.size() + kPaddedElements;
  if (dense.keys_of_query == nullptr && dense.bits == nullptr) {
    seen.full += 1;
    return right && map.keys_of_query() == nullptr && pairs == rows.size() * keys.size();
  }
  (dense.bits != nullptr ? seen.bits : seen.intervals) += 1;
  right = right && (dense.bits == nullptr || dense.keys_of_query == nullptr);
  for (std::int64_t i = 0; i < dense.queries; ++i) {
    const std::vector<std::int64_t> row =
        i < rows.size() ? keys_of[static_cast<std::size_t>(i)] : std::vector<std::int64_t>();  // padding has no pairs
    right = right && same(map.keys_of_query()[i], hull(row));
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      const bool holds = dense.bits != nullptr ? (dense.bits[j * dense.words + i / 64] >> (i % 64) & 1U) != 0
                                               : dense.keys_of_query[i].begin <= j && j < dense.keys_of_query[i].end;
      right = right && holds == std::binary_search(row.begin(), row.end(), j);
    }
  }
  for (std::int64_t j = 0; j < keys.size(); ++j) {
    right = right && same(map.queries_of_key()[j], hull(queries_of[static_cast<std::size_t>(j)]));
  }
  return right;
}

constexpr std::pair<std::int64_t, std::int64_t> kCuts[] = {{64, 64},  {64, 128}, {70, 90},
                                                           {17, 200}, {130, 33}, {1, 65}};

}  // namespace

TEST_CASE("a map says of every tile where its pairs stand: patterns x cuts x lists") {
  Seen seen;
  std::vector<SamplePattern> samples = named_sample_patterns(90, 150);
  for (const SamplePattern& sample : named_sample_patterns(131, 131)) samples.push_back(sample);
  for (const SamplePattern& sample : samples) {
    CAPTURE(sample.name);
    TileMap reused;
    for (const auto& cut : kCuts) {
      const std::int64_t height = cut.first, width = cut.second;
      CAPTURE(height);
      CAPTURE(width);
      const TileList list = cut_tiles(sample.pattern, {height, width, 0, false, false});
      for (const bool lists : {false, true}) {
        bool right = true;
        for (std::int64_t panel = 0; panel + 1 < std::ssize(list.row_offsets); ++panel) {
          const Range rows = {panel * height, std::min((panel + 1) * height, sample.pattern.rows())};
          for (const PlanTile& tile : list.row(panel)) {
            // One map for all tiles, as a task has it; but a map serves one plan, which has lists or has not.
            TileMap fresh;
            TileMap& map = lists ? fresh : reused;
            map.assign(sample.pattern, rows, tile.columns(), tile.columns().size(), tile.pairs, tile.kind,
                       lists ? TileForms::lists : TileForms::tiles);
            right = right && is_right(map, rows, tile.columns(), tile.pairs, lists, sample.contains, seen);
          }
        }
        CHECK(right);
      }
    }
  }
  CHECK(seen.full > 0);
  CHECK(seen.intervals > 0);
  CHECK(seen.bits > 0);
  CHECK(seen.lists > 0);
}

TEST_CASE("a map follows stored rows from tile to tile, in any order of tiles") {
  const std::int64_t n = 200;
  const Pattern pattern = random_pairs(n, n, 9, 3);
  const Pattern other = random_pairs(n, n, 7, 4);
  const auto contains = [](const Pattern& p) { return stored_predicate(p); };
  const PairPredicate in_pattern = contains(pattern), in_other = contains(other);
  const std::int64_t width = 33, height = 50;
  Seen seen;
  TileMap map;
  bool right = true;
  const auto visit = [&](const Pattern& p, const PairPredicate& in, std::int64_t row, std::int64_t column) {
    const Range rows = {row, row + height};
    const Range keys = {column, std::min(column + width, n)};
    std::int64_t pairs = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      for (std::int64_t j = keys.begin; j < keys.end; ++j) pairs += in(i, j) ? 1 : 0;
    }
    map.assign(p, rows, keys, keys.size(), pairs, TileKind::partial, TileForms::lists);
    right = right && is_right(map, rows, keys, pairs, true, in, seen);
  };
  // On and on, then with gaps, backwards, one pattern between another's tiles, and the same tile twice.
  for (std::int64_t row = 0; row < n; row += height) {
    for (std::int64_t column = 0; column < n; column += width) visit(pattern, in_pattern, row, column);
  }
  CHECK(right);
  for (std::int64_t column = 0; column < n; column += 2 * width) visit(pattern, in_pattern, 50, column);
  CHECK(right);
  for (std::int64_t column = 5 * width; column >= 0; column -= width) visit(pattern, in_pattern, 50, column);
  CHECK(right);
  for (std::int64_t column = 0; column < n; column += width) {
    visit(pattern, in_pattern, 50, column);
    visit(pattern, in_pattern, 50, column);
    visit(other, in_other, 50, column);
    visit(pattern, in_pattern, 100, column);
  }
  CHECK(right);
  CHECK(seen.lists > 60);
}

TEST_CASE("a map gathers the keys that have a pair, and their pairs keep their place among them") {
  std::int64_t gathered_tiles = 0;
  for (const SamplePattern& sample : named_sample_patterns(131, 131)) {
    CAPTURE(sample.name);
    for (const std::int64_t height : {16, 64, 70}) {
      const std::int64_t most = 24;
      const TileList list = cut_tiles(sample.pattern, {height, most, 0, false, true, true});
      std::int64_t pairs = 0;
      bool right = true;
      for (std::int64_t panel = 0; panel + 1 < std::ssize(list.row_offsets); ++panel) {
        const Range rows = {panel * height, std::min((panel + 1) * height, sample.pattern.rows())};
        for (const PlanTile& tile : list.row(panel)) {
          right = right && tile.touched_columns <= most;
          for (const TileForms form : {TileForms::gathered, TileForms::gathered_lists}) {
            TileMap map;
            map.assign(sample.pattern, rows, tile.columns(), tile.touched_columns, tile.pairs, tile.kind, form);
            const auto keys = map.gathered_keys();
            right = right && map.keys() == tile.touched_columns;
            right = right && (keys.empty() ? tile.columns().size() : std::ssize(keys)) == map.keys();
            right = right && (keys.empty() || map.is_dense() == (form == TileForms::gathered));
            gathered_tiles += keys.empty() ? 0 : 1;
            std::int64_t visited = 0;
            map.for_each_pair([&](std::int64_t query, std::int64_t key, std::int64_t) {
              right = right && sample.contains(rows.begin + query, tile.column_begin + map.key_in_range(key));
              right = right && key < map.keys();
              ++visited;
            });
            right = right && visited == tile.pairs;
          }
          pairs += tile.pairs;
        }
      }
      CHECK(right);
      CHECK(pairs == sample.pattern.pairs());
    }
  }
  CHECK(gathered_tiles > 0);
}
