#include "text.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace cobble::program;

TEST_CASE("digits are grouped in threes") {
  CHECK(group_digits(0) == "0");
  CHECK(group_digits(999) == "999");
  CHECK(group_digits(1000) == "1,000");
  CHECK(group_digits(-1234567) == "-1,234,567");
  CHECK(group_digits(std::numeric_limits<std::int64_t>::max()) == "9,223,372,036,854,775,807");
}

TEST_CASE("bytes take the unit that leaves a number below 1024") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1536) == "1.50 KiB");
  CHECK(format_bytes(48.0 * 1024 * 1024) == "48.0 MiB");
  CHECK(format_bytes(2048.0 * 1024 * 1024 * 1024 * 1024) == "2048 TiB");
}

TEST_CASE("durations take a unit from microseconds to seconds") {
  CHECK(format_milliseconds(0.0123) == "12.3 us");
  CHECK(format_milliseconds(4.567) == "4.57 ms");
  CHECK(format_milliseconds(999.9) == "1.00 s");
  CHECK(format_milliseconds(61234) == "61.2 s");
}

TEST_CASE("a tiny share is not shown as nothing") {
  CHECK(format_percent(0) == "0 %");
  CHECK(format_percent(0.0346) == "3.46 %");
  CHECK(format_percent(1) == "100 %");
  CHECK(format_percent(1e-7) == "1e-05 %");
}

TEST_CASE("quantities beyond counting are shown in powers of ten, infinity as a word") {
  CHECK(format_quantity(131072) == "131,072");
  CHECK(format_quantity(1.2345e15) == "1.23e+15");
  CHECK(format_quantity(0.25) == "0.25");
  CHECK(format_quantity(std::numeric_limits<double>::infinity()) == "infinite");
}

TEST_CASE("a message becomes one line") {
  CHECK(one_line("  a\nb\r\n\tc  ") == "a b c");
  CHECK(one_line("\n\n").empty());
}

TEST_CASE("long text loses its middle and keeps the length asked for") {
  CHECK(shorten("abcdef", 6) == "abcdef");
  CHECK(shorten("abcdefghijkl", 9) == "abcd...kl");
  CHECK(shorten("abcdef", 2) == "ab");
}
