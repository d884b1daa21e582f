#include "word_list.hpp"

#include <doctest/doctest.h>

#include "cobble/error.hpp"

using cobble::Error;
using cobble::program::parse_word_list;
using Words = std::vector<std::int64_t>;

TEST_CASE("numbers, powers of two and doubling ranges make one sorted list") {
  CHECK(parse_word_list("100") == Words{100});
  CHECK(parse_word_list("2^0,2^40") == Words{1, std::int64_t{1} << 40});
  CHECK(parse_word_list("2^8..2^11") == Words{256, 512, 1024, 2048});
  CHECK(parse_word_list("100..799") == Words{100, 200, 400});
  CHECK(parse_word_list("4096,2^12,64..128,100") == Words{64, 100, 128, 4096});
}

TEST_CASE("what is no list of words is quoted") {
  for (const char* text : {"", "0", "-4", "2^41", "2^-1", "2^", "1e6", "64,,128", "64,", "64 ", "128..64", "1..2..4",
                           "many", "9223372036854775808"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_word_list(text), Error);
  }
  CHECK_THROWS_WITH(parse_word_list("64,x"), doctest::Contains("\"x\""));
}
