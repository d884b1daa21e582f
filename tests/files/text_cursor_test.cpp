#include "files/text_cursor.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "support/error_of.hpp"

using cobble::detail::TextCursor;
using cobble::test::error_of;

TEST_CASE("integers up to both ends of 64 bits are read") {
  const std::string path = "f";
  TextCursor cursor("0 123456789012345678 9223372036854775807 -9223372036854775808 +7,8", path);
  CHECK(cursor.read_integer("a number") == 0);
  CHECK(cursor.read_integer("a number") == 123456789012345678);
  CHECK(cursor.read_integer("a number") == std::numeric_limits<std::int64_t>::max());
  CHECK(cursor.read_integer("a number") == std::numeric_limits<std::int64_t>::min());
  CHECK(cursor.read_integer("a number", ',') == 7);
}

TEST_CASE("an integer that does not fit or does not end is an error at its place") {
  const std::string path = "f";
  CHECK(error_of([&] { TextCursor("\n  9223372036854775808", path).read_integer("a number"); }) ==
        "file_format: f:1:1: found the end of the line, expected a number");
  CHECK(error_of([&] { TextCursor("  9223372036854775808", path).read_integer("a number"); }) ==
        "file_format: f:1:3: found '9223372036854775808', which does not fit 64 bits, expected a number");
  CHECK(error_of([&] { TextCursor("12x 3", path).read_integer("a number"); }) ==
        "file_format: f:1:1: found '12x', expected a number");
  CHECK(error_of([&] { TextCursor("1.0", path).read_integer("a number"); }) ==
        "file_format: f:1:1: found '1.0', expected a number");
  CHECK(error_of([&] { TextCursor("+-1", path).read_integer("a number"); }) ==
        "file_format: f:1:1: found '+-1', expected a number");
  CHECK(error_of([&] { TextCursor("1,2", path).read_integer("a number"); }) ==
        "file_format: f:1:1: found '1,2', expected a number");
  CHECK(error_of([&] { TextCursor("", path).read_integer("a number"); }) ==
        "file_format: f:1:1: found the end of the file, expected a number");
}

TEST_CASE("reals are read as C writes them") {
  const std::string path = "f";
  TextCursor cursor("1 12. .0625 -2.8E2 +1e-3 inf -inf nan 5e-324\r\n", path);
  CHECK(cursor.read_real("a real") == 1);
  CHECK(cursor.read_real("a real") == 12);
  CHECK(cursor.read_real("a real") == 0.0625);
  CHECK(cursor.read_real("a real") == -280);
  CHECK(cursor.read_real("a real") == 1e-3);
  CHECK(cursor.read_real("a real") == std::numeric_limits<double>::infinity());
  CHECK(cursor.read_real("a real") == -std::numeric_limits<double>::infinity());
  const double not_a_number = cursor.read_real("a real");
  CHECK(not_a_number != not_a_number);
  CHECK(cursor.read_real("a real") == 5e-324);
  cursor.expect_line_end("the end");
  CHECK(cursor.at_end());
  CHECK(error_of([&] { TextCursor("1e999", path).read_real("a real"); }) ==
        "file_format: f:1:1: found '1e999', which does not fit a double, expected a real");
}

TEST_CASE("comment and blank lines are skipped, line and column are counted") {
  const std::string path = "dir/f.mtx";
  TextCursor cursor("% one\n\n  \t\r\n  % two\n   x\n", path);
  cursor.skip_blank_and_comment_lines();
  CHECK(cursor.peek() == 'x');
  CHECK(error_of([&] { cursor.fail("no"); }) == "file_format: dir/f.mtx:5:4: no");
}

TEST_CASE("a message shows a long or binary word short and printable") {
  CHECK(cobble::detail::quoted(std::string(50, 'a')) == "'" + std::string(40, 'a') + "...'");
  CHECK(cobble::detail::quoted("a\n\xff z") == "'a?? z'");
}
