#include "pattern/tile_classifier.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/sample_patterns.hpp"

namespace cobble::detail {
namespace {

TEST_CASE("a classifier gives the same tiles for every row panel when it is reused") {
  const std::int64_t n = 100;
  for (const test::SamplePattern& sample : test::named_sample_patterns(n, n)) {
    for (const std::int64_t width : {1, 7, 64}) {
      INFO(sample.name, " width ", width);
      TileClassifier reused(n, width);
      std::vector<PatternTile> found;
      std::vector<PatternTile> expected;
      for (const std::int64_t height : {1, 33}) {
        for (std::int64_t row = 0; row < n; row += height) {
          const std::int64_t last = std::min(row + height, n);
          reused.classify(sample.pattern.node(), row, last, found);
          TileClassifier(n, width).classify(sample.pattern.node(), row, last, expected);
          REQUIRE(found == expected);
        }
      }
    }
  }
}

TEST_CASE("a classifier is clean again after a predicate has thrown") {
  const Pattern failing = from_predicate(8, 200, [](std::int64_t i, std::int64_t) -> bool {
    if (i == 5) throw std::runtime_error("no");
    return true;
  });
  TileClassifier classifier(200, 16);
  std::vector<PatternTile> tiles;
  CHECK_THROWS_AS(classifier.classify(failing.node(), 0, 8, tiles), std::runtime_error);
  classifier.classify(leading_tokens(8, 200, 3).node(), 0, 8, tiles);
  CHECK(tiles == std::vector<PatternTile>{{0, TileKind::partial, 24}});
}

TEST_CASE("rows that are said to be alike have the same runs") {
  const auto runs_of = [](const Pattern& pattern, std::int32_t row) {
    std::vector<std::pair<std::int32_t, std::int32_t>> ends;
    std::vector<ColumnRun> runs;
    pattern.node().append_runs(row, 0, pattern.node().columns(), runs);
    for (const ColumnRun run : runs) ends.emplace_back(run.begin, run.end);
    return ends;
  };
  const auto check = [&](const Pattern& pattern) {
    for (std::int32_t row = 0; row < pattern.node().rows();) {
      const std::int32_t end = pattern.node().alike_until(row);
      REQUIRE(end > row);
      REQUIRE(end <= pattern.node().rows());
      for (std::int32_t other = row + 1; other < end; ++other) CHECK(runs_of(pattern, other) == runs_of(pattern, row));
      row = end;
    }
  };
  const Pattern blocks = random_blocks(90, 16, 2, 3);
  for (const test::SamplePattern& sample : test::named_sample_patterns(90, 90)) {
    INFO(sample.name);
    for (const Pattern& pattern : {sample.pattern, !sample.pattern, sample.pattern | blocks, blocks - sample.pattern}) {
      check(pattern);
    }
  }
  CHECK(blocks.node().alike_until(0) == 16);
  CHECK(blocks.node().alike_until(17) == 32);
  CHECK(blocks.node().alike_until(81) == 90);
  CHECK((!blocks).node().alike_until(0) == 16);
  CHECK((blocks | bigbird(90, 12, 1, 1, 1)).node().alike_until(0) == 12);
  CHECK((blocks & causal(90)).node().alike_until(0) == 1);
}

TEST_CASE("rows of no height have no tiles") {
  std::vector<PatternTile> tiles{{1, TileKind::full, 1}};
  TileClassifier(64, 8).classify(full(64).node(), 10, 10, tiles);
  CHECK(tiles.empty());
}

TEST_CASE("whole tiles between distant ends of runs are found, over every level of the bitmap") {
  const std::int64_t columns = 1000000;  // with panels of 1, about 4 words of the topmost level
  const Pattern pattern = window(1, columns, 999000, 0) | leading_tokens(1, columns, 2);
  std::vector<PatternTile> tiles;
  TileClassifier(columns, 1).classify(pattern.node(), 0, 1, tiles);
  REQUIRE(tiles.size() == 999003);
  CHECK(tiles[1] == PatternTile{1, TileKind::full, 1});
  CHECK(tiles[2] == PatternTile{999, TileKind::full, 1});
  CHECK(tiles.back() == PatternTile{999999, TileKind::full, 1});
}

TEST_CASE("a ragged last tile is full when all its pairs inside the matrix are there") {
  std::vector<PatternTile> tiles;
  TileClassifier(70, 64).classify(full(3, 70).node(), 0, 3, tiles);
  CHECK(tiles == std::vector<PatternTile>{{0, TileKind::full, 192}, {1, TileKind::full, 18}});
  TileClassifier(70, 64).classify((full(3, 70) - leading_tokens(3, 70, 1)).node(), 0, 3, tiles);
  CHECK(tiles == std::vector<PatternTile>{{0, TileKind::partial, 189}, {1, TileKind::full, 18}});
}

TEST_CASE("panels wider than any matrix make one tile") {
  std::vector<PatternTile> tiles;
  TileClassifier(70, std::int64_t{1} << 40).classify(causal(70).node(), 0, 70, tiles);
  CHECK(tiles == std::vector<PatternTile>{{0, TileKind::partial, 70 * 71 / 2}});
}

}  // namespace
}  // namespace cobble::detail
