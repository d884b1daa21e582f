#pragma once

#include <cstdint>

#include "cobble/half.hpp"

// Halves in memory to and from the floats that are computed with.

namespace cobble::kernels {

/// What a port must fill in. Half is bfloat16 or float16; all have the bits of the scalar conversions of half.hpp.
template <class Half>
struct HalfKernels {
  /// to[i] = from[i], exact.
  void (*widen)(std::int64_t n, const Half* from, float* to);
  /// to[i] = from[i], rounded to nearest, ties to even.
  void (*narrow)(std::int64_t n, const float* from, Half* to);
  bool (*all_finite)(std::int64_t n, const Half* x);
};

/// The kernels of the instruction set in use.
template <class Half>
const HalfKernels<Half>& half_kernels();

}  // namespace cobble::kernels
