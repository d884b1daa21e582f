#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>

#include "cobble/error.hpp"
#include "core/checked.hpp"
#include "files/npy.hpp"
#include "files/text_cursor.hpp"

namespace cobble::detail {
namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr std::int64_t kMostAxes = 32;  // as in NumPy

/// Reads what numpy.lib.format writes: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const NpySource& source) : text_(text), source_(source) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_type = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = parse_string("a key");
      expect(':');
      if (key == "descr" && !has_type) {
        has_type = true;
        header.type = parse_type();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran_order = parse_boolean();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = parse_shape();
      } else {
        fail_here("found the key " + quoted(key) + ", expected each of descr, fortran_order and shape once");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (position_ != text_.size()) fail_here("the header goes on after its end");
    if (!has_type || !has_order || !has_shape) {
      fail_here(std::string("the header has no ") + (!has_type ? "descr" : !has_order ? "fortran_order" : "shape"));
    }
    return header;
  }

 private:
  [[noreturn]] void fail_here(const std::string& message) const {
    source_.fail(message + " (at character " + std::to_string(position_ + 1) + " of the .npy header)");
  }
  [[noreturn]] void fail_expected(const std::string& expected) const {
    fail_here(position_ == text_.size() ? "found the end of the header, expected " + expected
                                        : "found " + quoted(text_.substr(position_, 12)) + ", expected " + expected);
  }

  void skip_blanks() noexcept {
    while (position_ != text_.size() && std::strchr(" \t\r\n\f", text_[position_]) != nullptr &&
           text_[position_] != '\0') {
      ++position_;
    }
  }
  bool accept(char c) noexcept {
    skip_blanks();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail_expected(std::string("'") + c + "'");
  }
  bool accept_word(std::string_view word) noexcept {
    skip_blanks();
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }

  std::string parse_string(const char* what) {
    skip_blanks();
    const char quote = position_ == text_.size() ? '\0' : text_[position_];
    if (quote != '\'' && quote != '"') fail_expected(std::string(what) + " in quotes");
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) fail_here("a string has no end");
    const std::string value(text_.substr(position_ + 1, end - position_ - 1));
    if (value.find('\\') != std::string::npos) fail_here("found a backslash in a string, expected plain text");
    position_ = end + 1;
    return value;
  }

  bool parse_boolean() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    fail_expected("True or False");
  }

  std::vector<std::int64_t> parse_shape() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      std::int64_t size = 0;
      const char* first = text_.data() + position_;
      const std::from_chars_result result = std::from_chars(first, text_.data() + text_.size(), size);
      if (result.ec == std::errc::result_out_of_range) fail_expected("a size that fits 64 bits");
      if (result.ec != std::errc{}) fail_expected("a size");
      if (size < 0) fail_expected("a size that is not negative");
      if (std::ssize(shape) == kMostAxes) fail_expected("at most 32 axes");
      shape.push_back(size);
      position_ += static_cast<std::size_t>(result.ptr - first);
      accept('L');  // Python 2 wrote long integers so
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  NpyType parse_type() {
    skip_blanks();
    if (position_ != text_.size() && text_[position_] == '[') {
      fail_here("found a structured element type, expected a plain one such as '<f4'");
    }
    NpyType type;
    type.description = parse_string("an element type");
    std::string_view rest = type.description;
    char order = '|';
    if (!rest.empty() && std::string_view("<>=|").find(rest.front()) != std::string_view::npos) {
      order = rest.front();
      rest.remove_prefix(1);
    }
    const char kind = rest.empty() ? '\0' : rest.front();
    if (kind == 'O') fail_here("found an array of Python objects, expected plain elements such as '<f4'");
    std::int64_t count = 0;
    const char* end = rest.data() + rest.size();
    if (rest.size() < 2 || std::from_chars(rest.data() + 1, end, count).ptr != end) unknown_type(type.description);
    type.bytes = count;
    switch (kind) {
      case 'b': type.kind = NpyType::Kind::boolean; break;
      case 'i': type.kind = NpyType::Kind::signed_integer; break;
      case 'u': type.kind = NpyType::Kind::unsigned_integer; break;
      case 'f': type.kind = NpyType::Kind::real; break;
      case 'c': type.kind = NpyType::Kind::complex; break;
      case 'S': type.kind = NpyType::Kind::bytes; break;
      case 'U': type.kind = NpyType::Kind::text; break;
      default: unknown_type(type.description);
    }
    if (!is_known_size(type.kind, count)) unknown_type(type.description);
    if (type.kind == NpyType::Kind::text) type.bytes = 4 * count;  // UCS-4
    type.swapped = order == (std::endian::native == std::endian::little ? '>' : '<');
    return type;
  }

  static bool is_known_size(NpyType::Kind kind, std::int64_t count) {
    switch (kind) {
      case NpyType::Kind::boolean: return count == 1;
      case NpyType::Kind::signed_integer:
      case NpyType::Kind::unsigned_integer: return count == 1 || count == 2 || count == 4 || count == 8;
      case NpyType::Kind::real: return count == 2 || count == 4 || count == 8;
      case NpyType::Kind::complex: return count == 8 || count == 16;
      case NpyType::Kind::bytes:
      case NpyType::Kind::text: return count >= 1 && count <= std::numeric_limits<std::int32_t>::max();
    }
    return false;
  }

  [[noreturn]] void unknown_type(const std::string& description) const {
    fail_here("found the element type " + quoted(description) +
              ", expected a bool, integer, float16, float32, float64 or complex one");
  }

  std::string_view text_;
  const NpySource& source_;
  std::size_t position_ = 0;
};

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) value = value << 8U | std::to_integer<std::uint64_t>(bytes[i - 1]);
  return value;
}

}  // namespace

void NpySource::fail(const std::string& message) const {
  throw FileError(ErrorCode::file_format, path, 0, 0, member.empty() ? message : "member '" + member + "': " + message);
}

NpyHeader parse_npy_header(std::string_view text, const NpySource& source) {
  return HeaderParser(text, source).parse();
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

bool looks_like_npy(std::span<const std::byte> bytes) noexcept { return as_text(bytes).starts_with(kMagic); }

NpyArray parse_npy(std::span<const std::byte> bytes, const NpySource& source) {
  if (!looks_like_npy(bytes)) source.fail("does not start with '\\x93NUMPY' as a .npy array does");
  if (bytes.size() < 10) source.fail("the .npy header is cut off");
  const int version = std::to_integer<int>(bytes[6]);
  if (version < 1 || version > 3 || bytes[7] != std::byte{0}) {
    source.fail(".npy version " + std::to_string(version) + "." + std::to_string(std::to_integer<int>(bytes[7])) +
                ", expected 1.0, 2.0 or 3.0");
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) source.fail("the .npy header is cut off");
  const std::uint64_t length = little_endian(bytes.subspan(8, length_bytes));
  const std::span<const std::byte> rest = bytes.subspan(8 + length_bytes);
  if (length > rest.size()) {
    source.fail("the .npy header has " + std::to_string(length) + " bytes, but only " + std::to_string(rest.size()) +
                " follow");
  }
  NpyArray array;
  array.source = source;
  array.header = parse_npy_header(as_text(rest.first(length)), source);
  array.data = rest.subspan(length);
  try {
    for (const std::int64_t size : array.header.shape) array.size = checked_product({array.size, size}, "the product");
    static_cast<void>(checked_product({array.size, array.header.type.bytes}, "the product"));
  } catch (const Error&) {
    array.fail("the shape " + shape_text(array.header.shape) + " does not fit 64 bits");
  }
  const std::int64_t expected = array.size * array.header.type.bytes;
  if (std::ssize(array.data) != expected) {
    array.fail("found " + std::to_string(array.data.size()) + " bytes of elements, expected " +
               std::to_string(expected) + " for the shape " + shape_text(array.header.shape) + " of '" +
               array.header.type.description + "'");
  }
  return array;
}

std::string npy_preamble(std::string_view description, std::span<const std::int64_t> shape) {
  std::string header =
      "{'descr': '" + std::string(description) + "', 'fortran_order': False, 'shape': " + shape_text(shape) + ", }";
  const std::size_t fixed = kMagic.size() + 4;
  const auto total = static_cast<std::size_t>(round_up(static_cast<std::int64_t>(fixed + header.size() + 1), 64));
  header.resize(total - fixed - 1, ' ');
  header += '\n';
  std::string preamble(kMagic);
  preamble += {'\x01', '\x00', static_cast<char>(header.size() & 0xFFU), static_cast<char>(header.size() >> 8U)};
  return preamble + header;
}

}  // namespace cobble::detail
