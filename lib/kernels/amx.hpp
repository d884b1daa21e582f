#pragma once

#include <cstdint>

#include "cobble/half.hpp"
#include "kernels/bf16_pairs.hpp"
#include "kernels/tile_kernels.hpp"

// Products of bfloat16 on the tile registers of AMX (tdpbf16ps: products exact, sums in float; subnormal numbers count
// as 0).

namespace cobble::kernels {

/// The most features that multiply_bf16 takes, and the fewest that are worth it.
inline constexpr std::int64_t kMostAmxFeatures = 512;
inline constexpr std::int64_t kLeastAmxFeatures = 16;

/// c = alpha a b.
struct Bf16Product {
  std::int64_t rows = 0;     ///< of a and c
  std::int64_t columns = 0;  ///< of b and c; a multiple of kPaddedElements
  std::int64_t inner = 0;    ///< from kLeastAmxFeatures to kMostAmxFeatures
  float alpha = 1;
  const bfloat16* a = nullptr;  ///< rows of `inner` elements side by side
  std::int64_t a_stride = 0;
  const std::uint32_t* b = nullptr;  ///< as pair_features leaves it
  std::int64_t b_stride = 0;
  float* c = nullptr;
  std::int64_t c_stride = 0;
  const Interval* columns_of_row = nullptr;  ///< as in Product
};

/// Whether this processor and kernel have AMX; asks the kernel for the permission to use it (for the process).
bool has_amx();
/// Whether multiply_bf16 may be called: the instruction set in use has AMX.
bool uses_amx();

void multiply_bf16(const Bf16Product& product);

}  // namespace cobble::kernels
