#include "core/checked.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "support/error_of.hpp"

using namespace cobble;
using cobble::test::error_of;

namespace {
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
}

TEST_CASE("a product of sizes is exact up to 2^63 - 1 and throws beyond") {
  CHECK(checked_product({}, "size") == 1);
  CHECK(checked_product({3, 5, 7}, "size") == 105);
  CHECK(checked_product({kMax, 1}, "size") == kMax);
  CHECK(checked_product({std::int64_t{1} << 31, (std::int64_t{1} << 32) - 1}, "size") == 9223372034707292160);
  CHECK(error_of([] {
          checked_product({std::int64_t{1} << 31, std::int64_t{1} << 32}, "tensor size");
        }) == "overflow: tensor size does not fit 64 bits");
}

TEST_CASE("a product with a size of 0 is 0 wherever the 0 stands") {
  CHECK(checked_product({0, kMax, kMax}, "size") == 0);
  CHECK(checked_product({kMax, kMax, 0}, "size") == 0);
}

TEST_CASE("a negative size has no product") {
  CHECK(error_of([] { checked_product({3, -1}, "bits"); }) == "invalid_argument: bits has a negative factor, -1");
  CHECK(error_of([] { checked_product({0, -1}, "bits"); }) == "invalid_argument: bits has a negative factor, -1");
}

TEST_CASE("a sum of sizes throws instead of wrapping") {
  CHECK(checked_sum(kMax - 1, 1, "offset") == kMax);
  CHECK(error_of([] { checked_sum(kMax, 1, "offset"); }) == "overflow: offset does not fit 64 bits");
}

TEST_CASE("a size in bytes throws when it does not fit") {
  CHECK(checked_bytes(10, 8, "buffer") == 80);
  CHECK(error_of([] { checked_bytes(kMax / 8 + 1, 8, "buffer"); }) == "overflow: buffer does not fit 64 bits");
}

TEST_CASE("an index keeps its value or throws") {
  CHECK(checked_index(0, "rows") == 0);
  CHECK(checked_index(2147483647, "rows") == 2147483647);
  CHECK(error_of([] { checked_index(2147483648, "rows"); }) ==
        "overflow: rows = 2147483648 does not fit the range [0, 2147483647]");
  CHECK(error_of([] { checked_index(-1, "rows"); }) == "overflow: rows = -1 does not fit the range [0, 2147483647]");
}

TEST_CASE("division rounds up without overflow at the top") {
  CHECK(divide_up(0, 5) == 0);
  CHECK(divide_up(1, 5) == 1);
  CHECK(divide_up(10, 5) == 2);
  CHECK(divide_up(11, 5) == 3);
  CHECK(divide_up(kMax, 2) == kMax / 2 + 1);
  CHECK(round_up(17, 16) == 32);
  CHECK(round_up(16, 16) == 16);
}
