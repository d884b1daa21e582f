#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"
#include "support/pattern_oracle.hpp"

namespace cobble {
namespace {

TEST_CASE("a dilated window leaves out what is not a multiple of its step away") {
  const auto expected = [](std::int64_t i, std::int64_t j) {
    const std::int64_t distance = i > j ? i - j : j - i;
    return distance == 0 || distance == 3 || distance == 6;
  };
  CHECK(test::first_difference(dilated(40, 2, 3), 40, 40, expected) == "");
}

TEST_CASE("a dilated window may have a reach and a step beyond any matrix") {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  CHECK(dilated(50, kHuge, 1).to_csr() == full(50).to_csr());
  CHECK(dilated(50, kHuge, kHuge).to_csr() == window(50, 0, 0).to_csr());
  CHECK(dilated(7, 50, kHuge, 49).pairs() == 7 + 1);
  CHECK(dilated(2147483647, kHuge, 2147483647).pairs(0, 1000) == 1000);
}

TEST_CASE("a dilated window needs a step") {
  CHECK(test::error_of([] { dilated(8, 2, 0); }) == "invalid_argument: step = 0, expected at least 1");
  CHECK(test::error_of([] { dilated(8, -1, 1); }) == "invalid_argument: window = -1, expected at least 0");
}

}  // namespace
}  // namespace cobble
