#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cobble/pattern.hpp"

// The kinds that an expression can call, and what they find between the parentheses.

namespace cobble::detail {

/// One argument as written: a whole number, two of them with an x between, a decimal number, or a list in brackets.
struct Argument {
  enum class Form { integer, size, real, list };

  Form form = Form::integer;
  std::size_t position = 0;  ///< in the expression
  bool negative = false;
  std::uint64_t magnitude = 0;  ///< integer: its absolute value
  std::int64_t n_q = 0;
  std::int64_t n_k = 0;
  double real = 0;
  std::vector<std::int32_t> list;
};

/// Thrown for an argument that is not what the kind expects there; the parser adds the expression to the message.
struct ArgumentFault {
  std::size_t position;
  std::string message;
};

/// Hands out a call's arguments in turn, each as what the kind expects.
class Arguments {
 public:
  Arguments(std::span<const Argument> arguments, std::uint64_t default_seed)
      : arguments_(arguments), default_seed_(default_seed) {}

  struct Size {
    std::int64_t n_q;
    std::int64_t n_k;
  };

  bool empty() const noexcept { return next_ == arguments_.size(); }
  bool next_is_list() const noexcept { return !empty() && arguments_[next_].form == Argument::Form::list; }
  /// n, or n_q x n_k.
  Size size();
  /// n of a kind that is always square.
  std::int64_t length();
  std::int64_t integer(std::string_view what);
  double real(std::string_view what);
  std::vector<std::int32_t> list(std::string_view what);
  /// The last argument, or the default when there is none left.
  std::uint64_t seed();

 private:
  const Argument& take() { return arguments_[next_++]; }

  std::span<const Argument> arguments_;
  std::uint64_t default_seed_;
  std::size_t next_ = 0;
};

struct ExpressionKind {
  std::string_view name;
  std::string_view usage;
  std::size_t fewest_arguments;
  std::size_t most_arguments;
  Pattern (*make)(Arguments& arguments);
};

std::span<const ExpressionKind> expression_kinds();

}  // namespace cobble::detail
