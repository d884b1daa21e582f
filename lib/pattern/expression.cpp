#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cobble/error.hpp"
#include "cobble/pattern.hpp"
#include "pattern/expression_kinds.hpp"

// Recursive descent over
//   sum      = product { ("|" | "-") product }
//   product  = prefixed { "&" prefixed }
//   prefixed = { "!" } ( "(" sum ")" | name "(" [ argument { "," argument } ] ")" )
//   argument = number [ "x" number ] | "[" [ number { "," number } ] "]"

namespace cobble {
namespace detail {
namespace {

/// Parentheses deeper than this are refused, so that no input can exhaust the stack.
constexpr int kDeepestParentheses = 200;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, std::uint64_t seed) : text_(text), seed_(seed) {}

  Pattern parse() {
    Pattern pattern = sum();
    if (!at_end()) fail(position_, "expected &, |, - or the end, found " + found());
    return pattern;
  }

 private:
  [[noreturn]] void fail(std::size_t position, const std::string& message) const {
    throw Error(ErrorCode::invalid_argument,
                "pattern expression, column " + std::to_string(position + 1) + ": " + message);
  }

  /// What stands at the position, for messages.
  std::string found() const {
    if (position_ >= text_.size()) return "the end";
    const char c = text_[position_];
    if (c < ' ' || c > '~') return "a byte that is not printable ASCII";
    return std::string("'") + c + "'";
  }

  void skip_blanks() {
    while (position_ < text_.size() && is_blank(text_[position_])) ++position_;
  }
  bool at_end() {
    skip_blanks();
    return position_ == text_.size();
  }
  bool next_is(char c) {
    skip_blanks();
    return position_ < text_.size() && text_[position_] == c;
  }
  bool accept(char c) {
    if (!next_is(c)) return false;
    ++position_;
    return true;
  }

  /// Calls `make` and lets its errors say where in the expression they arose.
  template <class Make>
  Pattern located(std::size_t position, const std::string& context, Make make) const {
    try {
      return make();
    } catch (const ArgumentFault& fault) {
      fail(fault.position, context + fault.message);
    } catch (const Error& error) {
      fail(position, context + error.what());
    }
  }

  Pattern sum() {
    Pattern result = product();
    while (next_is('|') || next_is('-')) {
      const std::size_t position = position_++;
      const Pattern other = product();
      result = located(position, "", [&] { return text_[position] == '|' ? result | other : result - other; });
    }
    return result;
  }

  Pattern product() {
    Pattern result = prefixed();
    while (next_is('&')) {
      const std::size_t position = position_++;
      const Pattern other = prefixed();
      result = located(position, "", [&] { return result & other; });
    }
    return result;
  }

  Pattern prefixed() {
    skip_blanks();
    const std::size_t position = position_;
    bool complement = false;
    while (accept('!')) complement = !complement;
    const Pattern pattern = primary();
    return complement ? located(position, "", [&] { return !pattern; }) : pattern;
  }

  Pattern primary() {
    skip_blanks();
    const std::size_t position = position_;
    if (accept('(')) {
      if (++depth_ > kDeepestParentheses) {
        fail(position, "parentheses nest deeper than " + std::to_string(kDeepestParentheses));
      }
      Pattern pattern = sum();
      if (!accept(')')) fail(position_, "expected &, |, - or ), found " + found());
      --depth_;
      return pattern;
    }
    if (position_ == text_.size() || !is_letter(text_[position_])) {
      fail(position, "expected a pattern such as causal(1024), found " + found());
    }
    return call();
  }

  Pattern call() {
    const std::size_t position = position_;
    while (position_ < text_.size() && (is_letter(text_[position_]) || is_digit(text_[position_]))) ++position_;
    const ExpressionKind& kind = kind_named(text_.substr(position, position_ - position), position);
    const std::string usage = std::string(kind.usage);
    if (!accept('(')) fail(position_, "expected ( as in " + usage + ", found " + found());
    const std::vector<Argument> arguments = argument_list(usage);
    if (arguments.size() < kind.fewest_arguments || arguments.size() > kind.most_arguments) {
      fail(position, "found " + std::to_string(arguments.size()) + " arguments, expected " + usage);
    }
    return located(position, std::string(kind.name) + ": ", [&] {
      Arguments in(arguments, seed_);
      return kind.make(in);
    });
  }

  const ExpressionKind& kind_named(std::string_view name, std::size_t position) const {
    const auto kinds = expression_kinds();
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& each) { return each.name == name; });
    if (kind != kinds.end()) return *kind;
    constexpr std::size_t kShown = 40;
    std::string message = "unknown pattern '" + std::string(name.substr(0, kShown)) +
                          (name.size() > kShown ? "..." : "") + "', expected one of";
    for (const ExpressionKind& each : kinds) message += " " + std::string(each.name);
    fail(position, message);
  }

  /// Up to and with the closing parenthesis.
  std::vector<Argument> argument_list(const std::string& usage) {
    std::vector<Argument> arguments;
    if (accept(')')) return arguments;
    do {
      arguments.push_back(argument());
    } while (accept(','));
    if (!accept(')')) fail(position_, "expected , or ) as in " + usage + ", found " + found());
    return arguments;
  }

  Argument argument() {
    skip_blanks();
    if (next_is('[')) return list();
    Argument argument = number();
    const bool is_size = argument.form == Argument::Form::integer && (next_is('x') || next_is('X'));
    if (!is_size) return argument;
    argument.n_q = signed_size(argument);
    ++position_;
    skip_blanks();
    const Argument columns = number();
    if (columns.form != Argument::Form::integer) fail(columns.position, "expected a whole number after x");
    argument.n_k = signed_size(columns);
    argument.form = Argument::Form::size;
    return argument;
  }

  std::int64_t signed_size(const Argument& number) const {
    if (number.magnitude > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(number.position, "the size does not fit 64 bits");
    }
    const auto value = static_cast<std::int64_t>(number.magnitude);
    return number.negative ? -value : value;
  }

  Argument list() {
    Argument list;
    list.form = Argument::Form::list;
    list.position = position_;
    accept('[');
    if (accept(']')) return list;
    do {
      skip_blanks();
      const Argument entry = number();
      const bool fits = entry.magnitude <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
      if (entry.form != Argument::Form::integer || entry.negative || !fits) {
        fail(entry.position, "expected a whole number in [0, 2147483647] in a list");
      }
      list.list.push_back(static_cast<std::int32_t>(entry.magnitude));
    } while (accept(','));
    if (!accept(']')) fail(position_, "expected , or ] in a list, found " + found());
    return list;
  }

  /// A whole number, or a decimal one when a point or an exponent follows the digits.
  Argument number() {
    Argument argument;
    argument.position = position_;
    const char* const begin = text_.data() + position_;
    const char* const end = text_.data() + text_.size();
    argument.negative = begin != end && *begin == '-';
    const char* const digits = begin + (argument.negative ? 1 : 0);
    if (digits == end || !is_digit(*digits)) fail(position_, "expected a number, found " + found());
    const auto whole = std::from_chars(digits, end, argument.magnitude);
    if (whole.ptr != end && (*whole.ptr == '.' || *whole.ptr == 'e' || *whole.ptr == 'E')) {
      const auto decimal = std::from_chars(begin, end, argument.real);
      if (decimal.ec != std::errc{}) fail(position_, "the number does not fit a double");
      argument.form = Argument::Form::real;
      position_ += static_cast<std::size_t>(decimal.ptr - begin);
      return argument;
    }
    if (whole.ec != std::errc{}) fail(position_, "the number does not fit 64 bits");
    position_ += static_cast<std::size_t>(whole.ptr - begin);
    return argument;
  }

  std::string_view text_;
  std::uint64_t seed_;
  std::size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace
}  // namespace detail

Pattern parse_pattern(std::string_view expression, std::uint64_t seed) {
  return detail::ExpressionParser(expression, seed).parse();
}

}  // namespace cobble
