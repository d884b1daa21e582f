// Hulls of intervals. Included once for each target.
#if defined(COBBLE_KERNELS_HULL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef COBBLE_KERNELS_HULL_INL
#undef COBBLE_KERNELS_HULL_INL
#else
#define COBBLE_KERNELS_HULL_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/tile_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {

/// The smallest interval that holds those of `count` rows; empty ones do not count.
HWY_INLINE Interval hull(const Interval* intervals, std::int64_t count) {
  Interval result{INT32_MAX, 0};
  for (std::int64_t r = 0; r < count; ++r) {
    if (intervals[r].begin >= intervals[r].end) continue;
    result.begin = intervals[r].begin < result.begin ? intervals[r].begin : result.begin;
    result.end = intervals[r].end > result.end ? intervals[r].end : result.end;
  }
  return result.begin < result.end ? result : Interval{0, 0};
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
