#pragma once

#include <cstdint>

#include "cobble/half.hpp"
#include "kernels/tile_kernels.hpp"

// Products of bfloat16 on the tile registers of AMX (tdpbf16ps: products exact, sums in float; subnormal numbers count
// as 0). The other instruction that multiplies bfloat16, vdpbf16ps of AVX-512, is no faster than FMA on floats.

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

/// Rows of b that `features` take: pairs of features, in whole tiles.
constexpr std::int64_t paired_rows(std::int64_t features) { return (features + 31) / 32 * 16; }
/// to(p, i) holds features 2 p and 2 p + 1 of row i, the first in the lower bits; zeros from the last feature and the
/// last row on. `to` has paired_rows(features) rows of `rows` elements, padded to kPaddedElements.
void pair_features(std::int64_t rows, std::int64_t features, const bfloat16* from, std::int64_t row_distance,
                   std::int64_t feature_distance, std::uint32_t* to, std::int64_t to_stride);
void multiply_bf16(const Bf16Product& product);

}  // namespace cobble::kernels
