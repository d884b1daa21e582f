#include "cobble/pattern_grid.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "support/error_of.hpp"

namespace cobble {
namespace {

using test::error_of;

TEST_CASE("a pattern for each head and batch entry, with different pairs, is found by its place (report 12)") {
  std::vector<Pattern> patterns;
  for (std::int64_t k = 0; k < 6; ++k) patterns.push_back(window(20, k, 0));
  const PatternGrid grid(patterns, 2, 3);
  CHECK(grid.rows() == 20);
  CHECK(grid.at(0, 2).pairs() == window(20, 2, 0).pairs());
  CHECK(grid.at(1, 0).pairs() == window(20, 3, 0).pairs());
  CHECK(grid.at(1, 2).pairs() == window(20, 5, 0).pairs());
}

TEST_CASE("an axis of one pattern serves every index of the axis") {
  CHECK(PatternGrid(causal(9)).at(7, 5).describe() == "causal(9)");
  const PatternGrid per_head({causal(9), full(9)}, 1, 2);
  CHECK(per_head.at(4, 1).describe() == "full(9)");
  const PatternGrid per_batch({causal(9), full(9)}, 2, 1);
  CHECK(per_batch.at(1, 6).describe() == "full(9)");
}

TEST_CASE("patterns of a grid are as many as its places and have one size") {
  CHECK(error_of([] { PatternGrid({causal(9)}, 0, 1); }) ==
        "invalid_argument: a pattern grid of 0 x 1 (batch x heads); both must be at least 1");
  CHECK(error_of([] { PatternGrid({causal(9)}, 1, 2); }) ==
        "shape_mismatch: patterns holds 1, expected batch 1 x heads 2 = 2");
  CHECK(error_of([] {
          PatternGrid({causal(9), causal(9, 10)}, 1, 2);
        }) == "shape_mismatch: patterns[1] is 9 x 10, patterns[0] is 9 x 9");
}

}  // namespace
}  // namespace cobble
