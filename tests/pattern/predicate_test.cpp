#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"
#include "support/pattern_oracle.hpp"

namespace cobble {
namespace {

TEST_CASE("a predicate is asked only within the columns in question") {
  std::int64_t calls = 0;
  const Pattern pattern = from_predicate(4, 1000, [&](std::int64_t, std::int64_t) {
    ++calls;
    return true;
  });
  CHECK(pattern.contains(2, 700));
  CHECK(calls == 1);
  calls = 0;
  CHECK(pattern.bits(2, 990) == 0x3FF);
  CHECK(calls == 10);
  calls = 0;
  const Pattern narrowed = window(4, 1000, 4, 0) & pattern;
  CHECK(narrowed.pairs(3, 4) == 5);
  CHECK(calls == 5);
}

TEST_CASE("a predicate may ask another pattern") {
  const Pattern inner = window(70, 3, 0) | leading_tokens(70, 2);
  const Pattern outer = from_predicate(
      70, 70, [inner](std::int64_t i, std::int64_t j) { return inner.contains(i, j) || (inner.bits(i, j) & 2U) != 0; });
  CHECK(test::first_difference(outer, 70, 70, [](std::int64_t i, std::int64_t j) {
          const auto in = [i](std::int64_t column) {
            return column < 70 && (column < 2 || (column <= i && i - column <= 3));
          };
          return in(j) || in(j + 1);
        }) == "");
}

TEST_CASE("what a predicate throws reaches the caller and leaves the pattern usable") {
  bool failing = true;
  const Pattern pattern = from_predicate(3, 100, [&](std::int64_t, std::int64_t j) {
    if (failing && j == 50) throw std::runtime_error("no answer");
    return j % 2 == 0;
  });
  CHECK_THROWS_AS(pattern.bits(0, 0), std::runtime_error);
  CHECK_THROWS_AS(pattern.pairs(), std::runtime_error);
  failing = false;
  CHECK(pattern.bits(0, 60) == 0x5555555555U);
  CHECK(pattern.pairs() == 150);
}

TEST_CASE("a predicate has a name for messages") {
  const auto nothing = [](std::int64_t, std::int64_t) { return false; };
  CHECK(from_predicate(3, 5, nothing).describe() == "predicate(3x5)");
  CHECK(from_predicate(3, 3, nothing, "alibi").describe() == "alibi(3)");
}

TEST_CASE("an empty function is an error") {
  CHECK(test::error_of([] { from_predicate(3, 3, nullptr); }) ==
        "invalid_argument: predicate is empty, expected a function");
}

}  // namespace
}  // namespace cobble
