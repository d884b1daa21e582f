#include "kernels/bf16_pairs.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/tile_kernels.hpp"

namespace cobble::kernels {

void pair_features(std::int64_t rows, std::int64_t features, const bfloat16* from, std::int64_t row_distance,
                   std::int64_t feature_distance, std::uint32_t* to, std::int64_t to_stride) {
  const std::int64_t padded = (rows + kPaddedElements - 1) / kPaddedElements * kPaddedElements;
  const std::int64_t pairs = features / 2;
  constexpr std::int64_t kSquare = kPaddedElements;
  // Squares, so that what is read and written stays in the first level of cache.
  for (std::int64_t first = 0; first < padded; first += kSquare) {
    const std::int64_t end = std::min(first + kSquare, rows);
    for (std::int64_t p = 0; p < paired_rows(features); ++p) {
      std::uint32_t* const row = to + p * to_stride;
      const bfloat16* const source = from + 2 * p * feature_distance;
      if (std::endian::native == std::endian::little && feature_distance == 1 && p < pairs && end == first + kSquare) {
        for (std::int64_t i = 0; i < kSquare; ++i) {
          std::memcpy(row + first + i, source + (first + i) * row_distance, sizeof(std::uint32_t));
        }
        continue;
      }
      for (std::int64_t i = first; i < first + kSquare; ++i) {
        std::uint32_t pair = 0;
        if (i < end && 2 * p < features) pair = source[i * row_distance].bits;
        if (i < end && p < pairs) pair |= std::uint32_t{source[i * row_distance + feature_distance].bits} << 16;
        row[i] = pair;
      }
    }
  }
}

}  // namespace cobble::kernels
