#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"
#include "support/pattern_oracle.hpp"

namespace cobble {
namespace {

using test::error_of;
using test::first_difference;

TEST_CASE("strided attention holds for every stride up to and beyond the length") {
  for (const std::int64_t stride : {1, 2, 3, 16, 39, 40, 41, 1000}) {
    INFO("stride ", stride);
    CHECK(first_difference(strided(40, stride), 40, 40, [=](std::int64_t i, std::int64_t j) {
            return j <= i && (i - j < stride || (i - j) % stride == 0);
          }) == "");
  }
  CHECK(strided(40, std::numeric_limits<std::int64_t>::max()).pairs() == 40 * 41 / 2);
}

TEST_CASE("fixed attention holds for every stride and summary") {
  for (const std::int64_t stride : {1, 2, 9, 40, 1000}) {
    for (const std::int64_t summary : {std::int64_t{0}, std::int64_t{1}, stride / 2, stride}) {
      if (summary > stride) continue;
      INFO("stride ", stride, " summary ", summary);
      CHECK(first_difference(fixed(40, stride, summary), 40, 40, [=](std::int64_t i, std::int64_t j) {
              return j <= i && (j / stride == i / stride || j % stride >= stride - summary);
            }) == "");
    }
  }
}

TEST_CASE("pairs of a long strided or fixed pattern are exact") {
  const std::int64_t n = 2147483646;  // a multiple of 2: rows 2 k and 2 k + 1 see k earlier columns each
  CHECK(strided(n, 1).pairs() == causal(n).pairs());
  CHECK(strided(n, 2).pairs() == 2 * n - 1 + (n / 2) * (n / 2 - 1));
  CHECK(fixed(n, 2, 1).pairs() == (n / 2) * (n / 2 - 1) + n / 2 * 3);
}

TEST_CASE("stride and summary are checked") {
  CHECK(error_of([] { strided(8, 0); }) == "invalid_argument: stride = 0, expected at least 1");
  CHECK(error_of([] { fixed(8, 0, 0); }) == "invalid_argument: stride = 0, expected at least 1");
  CHECK(error_of([] { fixed(8, 2, -1); }) == "invalid_argument: summary = -1, expected at least 0");
  CHECK(error_of([] { fixed(8, 2, 3); }) == "invalid_argument: summary = 3, expected at most stride = 2");
}

}  // namespace
}  // namespace cobble
