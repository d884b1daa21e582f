#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"
#include "support/pattern_oracle.hpp"

namespace cobble {
namespace {

using test::error_of;
using test::first_difference;

TEST_CASE("global tokens may be none, or more than there are") {
  CHECK(global_tokens(20, 0).pairs() == 0);
  CHECK(global_tokens(20, 30, 25).pairs() == 600);
  CHECK(global_tokens(20, std::int64_t{1} << 62).pairs() == 400);
  CHECK(global_tokens(20, std::vector<std::int32_t>{}).pairs() == 0);
}

TEST_CASE("a long pattern with global tokens counts its pairs by arithmetic") {
  const std::int64_t n = 2147483647;
  CHECK(global_tokens(n, 5).pairs() == 5 * n + (n - 5) * 5);
  CHECK(global_tokens(n, std::vector<std::int32_t>{7, 2147483646}).pairs() == 2 * n + (n - 2) * 2);
  CHECK(longformer(n, 10, 0).pairs() == window(n, 10, 10).pairs());
}

TEST_CASE("the window and the globals of a Longformer overlap without counting twice") {
  for (const std::int64_t window : {0, 3, 50}) {
    for (const std::int64_t globals : {0, 1, 5, 30, 31, 99}) {
      INFO("window ", window, " globals ", globals);
      CHECK(first_difference(longformer(30, window, globals), 30, 30, [=](std::int64_t i, std::int64_t j) {
              return i < globals || j < globals || (i - j <= window && j - i <= window);
            }) == "");
    }
  }
}

TEST_CASE("counts and positions of global tokens are checked") {
  CHECK(error_of([] { global_tokens(8, -1); }) == "invalid_argument: count = -1, expected at least 0");
  CHECK(error_of([] { longformer(8, -1, 0); }) == "invalid_argument: window = -1, expected at least 0");
  CHECK(error_of([] { longformer(8, 1, -1); }) == "invalid_argument: globals = -1, expected at least 0");
  const auto placed = [](std::vector<std::int32_t> positions) {
    return error_of([&] { global_tokens(8, positions); });
  };
  CHECK(placed({8}) == "invalid_argument: positions[0] = 8, expected a position in [0, 8)");
  CHECK(placed({3, -1}) == "invalid_argument: positions[1] = -1, expected a position in [0, 8)");
  CHECK(placed({3, 3}) == "invalid_argument: positions[1] = 3 after 3, expected sorted distinct positions");
}

}  // namespace
}  // namespace cobble
