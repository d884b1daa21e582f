#include "files/text_cursor.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "cobble/error.hpp"

namespace cobble::detail {
namespace {

constexpr std::size_t kLongestShownWord = 40;

}  // namespace

std::string quoted(std::string_view word) {
  std::string shown = "'";
  for (const char c : word.substr(0, kLongestShownWord)) shown += c >= ' ' && c <= '~' ? c : '?';
  if (word.size() > kLongestShownWord) shown += "...";
  return shown + "'";
}

std::string_view TextCursor::read_word() noexcept {
  const char* first = position_;
  while (!at_line_end() && !is_blank(*position_)) ++position_;
  return {first, static_cast<std::size_t>(position_ - first)};
}

template <class Number>
Number TextCursor::read_number(const char* expected, const char* type, char separator) {
  skip_blanks();
  const char* first = position_;
  // from_chars takes no plus sign, printf("%+g") writes one.
  if (first != end_ && *first == '+' && first + 1 != end_ && first[1] != '-') ++first;
  Number value{};
  const std::from_chars_result result = std::from_chars(first, end_, value);
  if (result.ec == std::errc::result_out_of_range) {
    fail(std::string("found ") + quoted(TextCursor(*this).read_word()) + ", which does not fit " + type +
         ", expected " + expected);
  }
  if (result.ec != std::errc{} || !ends_token(result.ptr, separator)) fail_expected(expected);
  position_ = result.ptr;
  return value;
}

std::int64_t TextCursor::read_any_integer(const char* expected, char separator) {
  return read_number<std::int64_t>(expected, "64 bits", separator);
}

std::uint64_t TextCursor::read_unsigned(const char* expected) {
  return read_number<std::uint64_t>(expected, "64 bits", ' ');
}

double TextCursor::read_real(const char* expected) { return read_number<double>(expected, "a double", ' '); }

void TextCursor::fail_at(const char* position, const std::string& message) const {
  const std::int64_t line = 1 + std::count(begin_, position, '\n');
  const char* line_begin = position;
  while (line_begin != begin_ && line_begin[-1] != '\n') --line_begin;
  throw FileError(ErrorCode::file_format, path_, line, position - line_begin + 1, message);
}

void TextCursor::fail_expected(std::string_view expected) const {
  const std::string found = at_end()        ? "the end of the file"
                            : at_line_end() ? "the end of the line"
                                            : quoted(TextCursor(*this).read_word());
  fail("found " + found + ", expected " + std::string(expected));
}

}  // namespace cobble::detail
