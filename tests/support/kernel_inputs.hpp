#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cobble/half.hpp"
#include "kernels/tile_kernels.hpp"
#include "support/random.hpp"

// Random operands and intervals for tests of kernels.

namespace cobble::test {

inline std::vector<bfloat16> normal_halves(std::int64_t count, Random& random) {
  std::vector<bfloat16> halves(static_cast<std::size_t>(count));
  for (bfloat16& half : halves) half = bfloat16(random.normal());
  return halves;
}

/// Within [0, size), one in four of them empty.
inline std::vector<kernels::Interval> random_intervals(std::int64_t count, std::int64_t size, Random& random) {
  std::vector<kernels::Interval> intervals;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::int32_t>(random.below(size + 1));
    const auto length = static_cast<std::int32_t>(random.below(size - begin + 1));
    intervals.push_back(random.below(4) == 0 ? kernels::Interval{} : kernels::Interval{begin, begin + length});
  }
  return intervals;
}

}  // namespace cobble::test
