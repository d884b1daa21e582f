#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include "cobble/error.hpp"

// Arithmetic on sizes that throws instead of wrapping.

namespace cobble {

/// The product of sizes; 0 when one of them is, whatever the others. Throws Error{overflow} naming `what` beyond
/// 2^63 - 1, Error{invalid_argument} on a negative size.
inline std::int64_t checked_product(std::initializer_list<std::int64_t> sizes, std::string_view what) {
  bool zero = false;
  for (const std::int64_t size : sizes) {
    if (size < 0) {
      throw Error(ErrorCode::invalid_argument, std::string(what) + " has a negative factor, " + std::to_string(size));
    }
    zero = zero || size == 0;
  }
  if (zero) return 0;
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(product, size, &product)) {
      throw Error(ErrorCode::overflow, std::string(what) + " does not fit 64 bits");
    }
  }
  return product;
}

/// The sum of two sizes. Throws Error{overflow} naming `what`.
inline std::int64_t checked_sum(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw Error(ErrorCode::overflow, std::string(what) + " does not fit 64 bits");
  }
  return sum;
}

/// `count` elements of `element_bytes` each as a size in bytes. Throws Error{overflow} naming `what`.
inline std::size_t checked_bytes(std::int64_t count, std::size_t element_bytes, std::string_view what) {
  return static_cast<std::size_t>(checked_product({count, static_cast<std::int64_t>(element_bytes)}, what));
}

/// A number of rows or columns, or a column index bound: must lie in [0, 2^31 - 1].
inline std::int32_t checked_index(std::int64_t value, std::string_view what) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::overflow,
                std::string(what) + " = " + std::to_string(value) + " does not fit the range [0, 2147483647]");
  }
  return static_cast<std::int32_t>(value);
}

/// Integer division that rounds up; both operands non-negative, the divisor positive.
constexpr std::int64_t divide_up(std::int64_t numerator, std::int64_t denominator) {
  return numerator / denominator + (numerator % denominator != 0 ? 1 : 0);
}

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return divide_up(value, multiple) * multiple;
}

}  // namespace cobble
