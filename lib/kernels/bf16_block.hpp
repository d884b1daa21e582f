#pragma once

// The inner loop of products of bfloat16 by vdpbf16ps, which Highway has no target for.
#if defined(__x86_64__)
#define COBBLE_HAS_BF16_BLOCK 1

#include <immintrin.h>

#include <cstdint>

#include "kernels/bf16_product.hpp"

#define COBBLE_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))

namespace cobble::kernels {
namespace {

/// c = alpha a b (+ c) for kRows rows and kVectors vectors of columns over `steps` pairs, the sums in registers.
template <int kRows, int kVectors>
COBBLE_AVX512_BF16 __attribute__((noinline)) void multiply_bf16_block(const Bf16PairProduct& p, std::int64_t steps,
                                                                      const bfloat16* a,
                                                                      const std::uint32_t* __restrict__ b,
                                                                      float* __restrict__ c) {
  constexpr std::int64_t kLanes = 16;
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  }
  const std::int64_t a_stride = p.a_stride;
  const std::int64_t a_inner_stride = p.a_inner_stride;
  const std::int64_t b_stride = p.b_stride;
  LineWalk ahead = walk_ahead(p.ahead, steps, b);
  for (std::int64_t step = 0; step < steps; ++step) {
    ahead.fetch();
    __m512bh columns[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) columns[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + v * kLanes));
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
      int pair;
      __builtin_memcpy(&pair, a + r * a_stride, sizeof(pair));
      const auto row = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], row, columns[v]);
    }
    a += a_inner_stride;
    b += b_stride;
  }
  const __m512 alpha = _mm512_set1_ps(p.alpha);
  const bool scaled = p.alpha != 1.0F;
  const bool add = p.add;
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      float* const to = c + r * p.c_stride + v * kLanes;
      __m512 product = scaled ? _mm512_mul_ps(alpha, sums[r][v]) : sums[r][v];
      if (add) product = _mm512_add_ps(product, _mm512_loadu_ps(to));
      _mm512_storeu_ps(to, product);
    }
  }
}

}  // namespace
}  // namespace cobble::kernels

#endif
