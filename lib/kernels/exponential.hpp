#pragma once

#include <bit>
#include <cstdint>

// exp for loops that a compiler turns into vector code: no branches, no library call. Cody-Waite reduction to
// |r| <= log(2) / 2, a polynomial, and the power of two put together from its bits.

namespace cobble::kernels {

/// Within 2 ulp of exp(x); results below the smallest normal number lose bits gradually; NaN stays NaN.
inline float exponential(float x) {
  constexpr float kLowest = -104.0F;  // exp is 0 below, infinite above
  constexpr float kHighest = 89.0F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  x = x < kLowest ? kLowest : x;
  x = x > kHighest ? kHighest : x;
  const float shifted = x * 1.44269504F + kRound;
  const auto exponent =
      static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRound));
  const float whole = shifted - kRound;
  const float r = (x - whole * 0.693359375F) - whole * -2.12194440e-4F;
  float polynomial = 1.9875691500e-4F;
  polynomial = polynomial * r + 1.3981999507e-3F;
  polynomial = polynomial * r + 8.3334519073e-3F;
  polynomial = polynomial * r + 4.1665795894e-2F;
  polynomial = polynomial * r + 1.6666665459e-1F;
  polynomial = polynomial * r + 5.0000001201e-1F;
  const float fraction = polynomial * (r * r) + r + 1.0F;
  // Two factors, because 2^exponent alone may not be a normal number.
  const std::int32_t half = exponent >> 1;
  const auto low = std::bit_cast<float>(static_cast<std::uint32_t>(half + 127) << 23);
  const auto high = std::bit_cast<float>(static_cast<std::uint32_t>(exponent - half + 127) << 23);
  return fraction * low * high;
}

/// Within 2 ulp of exp(x); results below the smallest normal number lose bits gradually; NaN stays NaN.
inline double exponential(double x) {
  constexpr double kLowest = -746.0;
  constexpr double kHighest = 710.0;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  x = x < kLowest ? kLowest : x;
  x = x > kHighest ? kHighest : x;
  const double shifted = x * 1.4426950408889634 + kRound;
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(kRound);
  const double whole = shifted - kRound;
  const double r = (x - whole * 6.93147180369123816490e-01) - whole * 1.90821492927058770002e-10;
  double polynomial = 1.0 / 6227020800.0;  // 1 / 13!
  polynomial = polynomial * r + 1.0 / 479001600.0;
  polynomial = polynomial * r + 1.0 / 39916800.0;
  polynomial = polynomial * r + 1.0 / 3628800.0;
  polynomial = polynomial * r + 1.0 / 362880.0;
  polynomial = polynomial * r + 1.0 / 40320.0;
  polynomial = polynomial * r + 1.0 / 5040.0;
  polynomial = polynomial * r + 1.0 / 720.0;
  polynomial = polynomial * r + 1.0 / 120.0;
  polynomial = polynomial * r + 1.0 / 24.0;
  polynomial = polynomial * r + 1.0 / 6.0;
  polynomial = polynomial * r + 0.5;
  const double fraction = polynomial * (r * r) + r + 1.0;
  // Shifted and subtracted without sign, which may wrap: a NaN's exponent can be any number.
  const std::uint64_t half = ((exponent + 4096) >> 1) - 2048;
  const auto low = std::bit_cast<double>((half + 1023) << 52);
  const auto high = std::bit_cast<double>((exponent - half + 1023) << 52);
  return fraction * low * high;
}

}  // namespace cobble::kernels
