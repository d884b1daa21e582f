#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cobble::detail {

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Walks over text and says where it stands when something is wrong. Lines end with '\n'; blanks are ' ', '\t' and
/// '\r', so that Windows line ends need no care. Lines and columns are counted only for a message.
class TextCursor {
 public:
  /// Both must outlive the cursor.
  TextCursor(std::string_view text, const std::string& path)
      : begin_(text.data()), position_(begin_), end_(begin_ + text.size()), path_(path) {}

  const char* position() const noexcept { return position_; }
  bool at_end() const noexcept { return position_ == end_; }
  bool at_line_end() const noexcept { return at_end() || *position_ == '\n'; }
  char peek() const noexcept { return *position_; }
  void advance() noexcept { ++position_; }

  void skip_blanks() noexcept {
    const char* position = position_;
    while (position != end_ && is_blank(*position)) ++position;
    position_ = position;
  }
  /// To the first character that is neither blank, line end nor separator.
  void skip_separators(char separator) noexcept {
    while (position_ != end_ && (is_blank(*position_) || *position_ == '\n' || *position_ == separator)) ++position_;
  }
  /// To the first non-blank character outside of blank lines and of lines whose first non-blank character is '%'.
  void skip_blank_and_comment_lines() noexcept {
    skip_separators(' ');
    while (position_ != end_ && *position_ == '%') {
      while (position_ != end_ && *position_ != '\n') ++position_;
      skip_separators(' ');
    }
  }
  /// The characters up to the next blank or line end; may be empty.
  std::string_view read_word() noexcept;

  /// Integers and reals must be followed by a blank, a line end or `separator`. Leading blanks are skipped.
  /// `expected` is what a message says was expected, e.g. "a row index".
  std::int64_t read_integer(const char* expected, char separator = ' ') {
    skip_blanks();
    // Nearly every number of a file is a short run of digits; the rest is for from_chars.
    constexpr std::ptrdiff_t kMostDigits = 18;  // that fit 64 bits whatever they are
    const char* digit = position_;
    const char* last = end_ - digit > kMostDigits ? digit + kMostDigits : end_;
    std::int64_t value = 0;
    for (; digit != last; ++digit) {
      const auto next = static_cast<unsigned>(*digit) - static_cast<unsigned>('0');
      if (next > 9) break;
      value = 10 * value + next;
    }
    if (digit == position_ || !ends_token(digit, separator)) return read_any_integer(expected, separator);
    position_ = digit;
    return value;
  }
  std::uint64_t read_unsigned(const char* expected);
  double read_real(const char* expected);
  /// Skips blanks and the line end. Anything else is an error.
  void expect_line_end(const char* expected) {
    skip_blanks();
    if (!at_line_end()) fail_expected(expected);
    if (!at_end()) ++position_;
  }

  /// Throws FileError{file_format} at the position, or at another one.
  [[noreturn]] void fail(const std::string& message) const { fail_at(position_, message); }
  [[noreturn]] void fail_at(const char* position, const std::string& message) const;
  /// Throws "found ..., expected ...".
  [[noreturn]] void fail_expected(std::string_view expected) const;

 private:
  static bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }
  bool ends_token(const char* position, char separator) const noexcept {
    return position == end_ || is_blank(*position) || *position == '\n' || *position == separator;
  }
  std::int64_t read_any_integer(const char* expected, char separator);
  template <class Number>
  Number read_number(const char* expected, const char* type, char separator);

  const char* begin_;
  const char* position_;
  const char* end_;
  const std::string& path_;
};

/// A word as a message shows it: in quotes, printable, at most 40 characters.
std::string quoted(std::string_view word);

}  // namespace cobble::detail
