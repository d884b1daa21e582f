#pragma once

#include <cstdint>

#include "cobble/half.hpp"
#include "kernels/tile_kernels.hpp"

// Products of bfloat16 by AVX-512 BF16 (vdpbf16ps: two products and their sum with a float, rounded to nearest;
// subnormal numbers count as 0), twice as fast as FMA on floats where the processor has whole units for it. Two
// neighbouring inner indices make a pair.

namespace cobble::kernels {

/// a(i, l) and a(i, l + 1), l even, stand side by side, and a_inner_stride leads from pair to pair; a row of b holds
/// the elements of rows l and l + 1, the first in the lower bits. Pairs are taken whole: where `inner` is odd, the
/// elements behind the last are zeros in a and b, and an interval of inner_of_row may be exceeded by one at either end.
using Bf16PairProduct = Product<float, bfloat16, std::uint32_t>;

/// Whether this processor and kernel have AVX-512 BF16.
bool has_avx512_bf16();
/// Whether what follows may be called: the instruction set in use is avx512_bf16.
bool uses_avx512_bf16();

void multiply_bf16_pairs(const Bf16PairProduct& product);

/// to[i] holds even[i] and odd[i], the first in the lower bits. `odd` null: zeros.
void interleave(std::int64_t count, const bfloat16* even, const bfloat16* odd, std::uint32_t* to);
/// A dense tile of keys x queries, padded to `stride`, rounded to nearest, ties to even, as Bf16PairProduct takes it:
/// to(p, i) holds keys 2 p and 2 p + 1 of query i, or 0 for a key that is not there.
void round_key_pairs(std::int64_t keys, std::int64_t stride, const float* tile, std::uint32_t* to);
/// The same by pairs of neighbouring queries: to(j, i) holds query i of key j. What follows an odd number of queries is
/// 0.
void round_query_pairs(std::int64_t keys, std::int64_t queries, std::int64_t stride, const float* tile, bfloat16* to);

}  // namespace cobble::kernels
