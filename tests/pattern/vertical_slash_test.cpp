#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"
#include "support/pattern_oracle.hpp"

namespace cobble {
namespace {

using test::error_of;

TEST_CASE("verticals and slashes may be missing, touch and cross") {
  const std::vector<std::vector<std::int32_t>> lists{{},           {0}, {49}, {0, 1, 2, 3}, {5, 6, 20, 22, 24, 49},
                                                     {1, 3, 4, 30}};
  for (const auto& verticals : lists) {
    for (const auto& slashes : lists) {
      CHECK(test::first_difference(vertical_slash(50, verticals, slashes), 50, 50, [&](std::int64_t i, std::int64_t j) {
              return j <= i && (std::count(verticals.begin(), verticals.end(), j) != 0 ||
                                std::count(slashes.begin(), slashes.end(), i - j) != 0);
            }) == "");
    }
  }
}

TEST_CASE("verticals and slashes are checked") {
  CHECK(error_of([] { vertical_slash(8, {8}, {}); }) ==
        "invalid_argument: verticals[0] = 8, expected a position in [0, 8)");
  CHECK(error_of([] {
          vertical_slash(8, {}, {2, 1});
        }) == "invalid_argument: slashes[1] = 1 after 2, expected sorted distinct positions");
}

}  // namespace
}  // namespace cobble
