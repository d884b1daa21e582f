#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

// 16-bit floating-point numbers to store tensors in. Arithmetic is done in float: both convert to it exactly, and from
// it, explicitly, with rounding to nearest, ties to even. They need no support by the processor; attention.hpp says
// what attention makes of one that has it.

namespace cobble {
namespace detail {

/// The float that rounds to any narrower type as `number` itself would: truncated, with an odd last bit if that lost
/// anything (Boldo and Melquiond, "When double rounding is odd", 2005).
constexpr float round_to_odd(double number) {
  const auto nearest = static_cast<float>(number);
  const double back = nearest;
  if (back == number || number != number) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  const bool away = number < 0 ? back < number : back > number;
  if (away) --bits;  // one step towards 0, from infinity to the largest finite float
  return std::bit_cast<float>(bits | 1U);
}

}  // namespace detail

/// The upper half of a float: 8 bits of exponent, 7 of fraction.
struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  constexpr explicit bfloat16(float number) : bits(round(std::bit_cast<std::uint32_t>(number))) {}
  template <class Number>
  requires std::is_arithmetic_v<Number>
  constexpr explicit bfloat16(Number number) : bfloat16(detail::round_to_odd(static_cast<double>(number))) {}
  static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 number{};
    number.bits = bits;
    return number;
  }

  constexpr explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  constexpr explicit operator double() const { return static_cast<float>(*this); }
  friend constexpr bool operator==(bfloat16 a, bfloat16 b) { return static_cast<float>(a) == static_cast<float>(b); }

 private:
  static constexpr std::uint16_t round(std::uint32_t number) {
    const bool is_nan = (number & 0x7FFFFFFFU) > 0x7F800000U;
    if (is_nan) return static_cast<std::uint16_t>(number >> 16 | 0x40U);  // quiet, and no infinity
    return static_cast<std::uint16_t>((number + 0x7FFFU + (number >> 16 & 1U)) >> 16);
  }
};

/// IEEE binary16: 5 bits of exponent, 10 of fraction; numbers of 65520 and above round to infinity.
struct float16 {
  std::uint16_t bits;

  float16() = default;
  constexpr explicit float16(float number) : bits(round(std::bit_cast<std::uint32_t>(number))) {}
  template <class Number>
  requires std::is_arithmetic_v<Number>
  constexpr explicit float16(Number number) : float16(detail::round_to_odd(static_cast<double>(number))) {}
  static constexpr float16 from_bits(std::uint16_t bits) {
    float16 number{};
    number.bits = bits;
    return number;
  }

  constexpr explicit operator float() const { return std::bit_cast<float>(widen(bits)); }
  constexpr explicit operator double() const { return static_cast<float>(*this); }
  friend constexpr bool operator==(float16 a, float16 b) { return static_cast<float>(a) == static_cast<float>(b); }

 private:
  static constexpr std::uint16_t round(std::uint32_t number) {
    const auto sign = static_cast<std::uint16_t>(number >> 16 & 0x8000U);
    const std::uint32_t magnitude = number & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U | (magnitude >> 13 & 0x3FFU));
    if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // 65520
    if (magnitude < 0x38800000U) {                                                    // 2^-14: subnormal
      // Added to 1/2, whose last bit weighs 2^-24, the number is rounded to a multiple of that.
      const float sum = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3F000000U));
    }
    const std::uint32_t rounded = magnitude + 0xFFFU + (magnitude >> 13 & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));  // exponent bias 127 - 15
  }
  static constexpr std::uint32_t widen(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000U) << 16;
    const std::uint32_t magnitude = half & 0x7FFFU;
    if (magnitude >= 0x7C00U) return sign | 0x7F800000U | (magnitude & 0x3FFU) << 13;
    if (magnitude >= 0x400U) return sign | ((magnitude << 13) + 0x38000000U);
    const float subnormal = static_cast<float>(magnitude) * 0x1p-24F;
    return sign | std::bit_cast<std::uint32_t>(subnormal);
  }
};

/// The type in which computations with T are done: float for halves, else T. The log-sum-exp of scores and its gradient
/// have this type, as backward takes exponentials of it.
template <class T>
using ComputeType = std::conditional_t<std::is_same_v<std::remove_const_t<T>, bfloat16> ||
                                           std::is_same_v<std::remove_const_t<T>, float16>,
                                       float, std::remove_const_t<T>>;

static_assert(std::is_trivial_v<bfloat16> && sizeof(bfloat16) == 2);
static_assert(std::is_trivial_v<float16> && sizeof(float16) == 2);

}  // namespace cobble

/// What generic code asks most often.
template <>
class std::numeric_limits<cobble::bfloat16> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int radix = 2;
  static constexpr int digits = 8;
  static constexpr cobble::bfloat16 min() noexcept { return cobble::bfloat16::from_bits(0x0080); }
  static constexpr cobble::bfloat16 max() noexcept { return cobble::bfloat16::from_bits(0x7F7F); }
  static constexpr cobble::bfloat16 lowest() noexcept { return cobble::bfloat16::from_bits(0xFF7F); }
  static constexpr cobble::bfloat16 epsilon() noexcept { return cobble::bfloat16::from_bits(0x3C00); }
  static constexpr cobble::bfloat16 denorm_min() noexcept { return cobble::bfloat16::from_bits(0x0001); }
  static constexpr cobble::bfloat16 infinity() noexcept { return cobble::bfloat16::from_bits(0x7F80); }
  static constexpr cobble::bfloat16 quiet_NaN() noexcept { return cobble::bfloat16::from_bits(0x7FC0); }
};

template <>
class std::numeric_limits<cobble::float16> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int radix = 2;
  static constexpr int digits = 11;
  static constexpr cobble::float16 min() noexcept { return cobble::float16::from_bits(0x0400); }
  static constexpr cobble::float16 max() noexcept { return cobble::float16::from_bits(0x7BFF); }
  static constexpr cobble::float16 lowest() noexcept { return cobble::float16::from_bits(0xFBFF); }
  static constexpr cobble::float16 epsilon() noexcept { return cobble::float16::from_bits(0x1400); }
  static constexpr cobble::float16 denorm_min() noexcept { return cobble::float16::from_bits(0x0001); }
  static constexpr cobble::float16 infinity() noexcept { return cobble::float16::from_bits(0x7C00); }
  static constexpr cobble::float16 quiet_NaN() noexcept { return cobble::float16::from_bits(0x7E00); }
};
