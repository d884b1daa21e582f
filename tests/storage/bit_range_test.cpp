#include "storage/bit_range.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "support/random.hpp"

using namespace cobble;

TEST_CASE("counting and visiting bits of any range agrees with looking at each") {
  test::Random random(1);
  std::vector<std::uint64_t> words(4);
  for (auto& word : words) word = random.bits() & random.bits();
  const auto bit = [&](std::int64_t k) { return (words[static_cast<std::size_t>(k / 64)] >> (k % 64) & 1U) != 0; };
  for (std::int64_t begin = 0; begin <= 256; begin += 1 + begin % 7) {
    for (std::int64_t count = 0; begin + count <= 256; count += 1 + count % 5) {
      std::vector<std::int64_t> expected;
      for (std::int64_t k = 0; k < count; ++k) {
        if (bit(begin + k)) expected.push_back(k);
      }
      std::vector<std::int64_t> found;
      for_each_set_bit(words, begin, count, [&](std::int64_t k) { found.push_back(k); });
      REQUIRE(found == expected);
      REQUIRE(count_bits(words, begin, count) == static_cast<std::int64_t>(expected.size()));
    }
  }
}

TEST_CASE("setting a bit sets that one alone") {
  std::vector<std::uint64_t> words(2);
  set_bit(words, 64);
  set_bit(words, 127);
  set_bit(words, 5);
  CHECK(words == std::vector<std::uint64_t>{32, 0x8000000000000001U});
}
