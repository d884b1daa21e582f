#include "tile_map.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "progress.hpp"

using namespace cobble;
using namespace cobble::program;

TEST_CASE("a tile map tells empty, full and partial tiles apart") {
  Progress progress("drawing");
  const TileMap map = make_tile_map(causal(10), 4, 4, progress);
  CHECK(map.tile_rows == 3);
  CHECK(map.tile_columns == 3);
  CHECK(map.at(0, 1) == 0);
  CHECK(map.at(1, 0) == 1);
  CHECK(map.at(0, 0) == doctest::Approx(10.0 / 16));
  CHECK(map.at(2, 0) == 1);  // 2 x 4, all of it inside
  CHECK(map.at(2, 2) == doctest::Approx(3.0 / 4));
  CHECK(map.full == 3);
  CHECK(map.partial == 3);
  CHECK(map.empty() == 3);
}

TEST_CASE("a tile that lacks one pair of thousands is not full") {
  Progress progress("drawing");
  const Pattern one_pair = top_k_tokens(std::vector<std::int64_t>{0}, 1, 1, 20000);
  const Pattern pattern = full(1, 20000) - one_pair;
  const TileMap map = make_tile_map(pattern, 1, 20000, progress);
  CHECK(map.partial == 1);
  CHECK(map.at(0, 0) < 1);
}

TEST_CASE("tiles need not be square") {
  Progress progress("drawing");
  const TileMap map = make_tile_map(full(3, 100), 1, 64, progress);
  CHECK(map.tile_rows == 3);
  CHECK(map.tile_columns == 2);
  CHECK(map.full == 6);
}
