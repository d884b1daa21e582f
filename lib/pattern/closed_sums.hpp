#pragma once

#include <cstdint>

// Sums over consecutive rows in closed form, for the pair counts of analytic patterns. Intermediate terms may pass
// 2^63; they are computed modulo 2^64, and differences that fit come out exact.

namespace cobble::detail {

/// Sum of clamp(t, 0, limit) for t in [begin, end), 0 <= limit < 2^31.
inline std::int64_t sum_clamped(std::int64_t begin, std::int64_t end, std::int64_t limit) {
  // The sum over [0, end); terms below 0 are 0.
  const auto up_to = [limit](std::int64_t bound) -> std::uint64_t {
    if (bound <= 0) return 0;
    if (bound <= limit + 1) return static_cast<std::uint64_t>(bound * (bound - 1) / 2);
    return static_cast<std::uint64_t>(limit * (limit + 1) / 2) +
           static_cast<std::uint64_t>(bound - limit - 1) * static_cast<std::uint64_t>(limit);
  };
  return begin >= end ? 0 : static_cast<std::int64_t>(up_to(end) - up_to(begin));
}

/// Sum of clamp(t, low, high) for t in [begin, end), low <= high.
inline std::int64_t sum_clamped(std::int64_t begin, std::int64_t end, std::int64_t low, std::int64_t high) {
  return begin >= end ? 0 : sum_clamped(begin - low, end - low, high - low) + (end - begin) * low;
}

/// Sum of floor(t / divisor) for t in [begin, end), 0 <= begin.
inline std::int64_t sum_quotients(std::int64_t begin, std::int64_t end, std::int64_t divisor) {
  const auto up_to = [divisor](std::int64_t bound) {
    const std::int64_t quotient = bound / divisor;
    return quotient * (quotient - 1) / 2 * divisor + bound % divisor * quotient;
  };
  return begin >= end ? 0 : up_to(end) - up_to(begin);
}

/// Sum of t for t in [begin, end).
inline std::int64_t sum_range(std::int64_t begin, std::int64_t end) {
  return begin >= end ? 0 : (end * (end - 1) - begin * (begin - 1)) / 2;
}

}  // namespace cobble::detail
