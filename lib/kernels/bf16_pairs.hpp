#pragma once

#include <cstdint>

#include "cobble/half.hpp"

// What the instructions that multiply bfloat16 take: two neighbouring elements of the inner dimension side by side.

namespace cobble::kernels {

/// Pairs that `features` take, rounded up to whole tiles of AMX.
constexpr std::int64_t paired_rows(std::int64_t features) { return (features + 31) / 32 * 16; }
/// to(p, i) holds features 2 p and 2 p + 1 of row i, the first in the lower bits; zeros from the last feature and the
/// last row on. `to` has paired_rows(features) rows of `rows` elements, padded to kPaddedElements.
void pair_features(std::int64_t rows, std::int64_t features, const bfloat16* from, std::int64_t row_distance,
                   std::int64_t feature_distance, std::uint32_t* to, std::int64_t to_stride);

}  // namespace cobble::kernels
