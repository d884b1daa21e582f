#include "kernels/bf16_product.hpp"

#include "cobble/isa.hpp"
#include "kernels/isa_tables.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bf16_product.cpp"
#include <hwy/foreach_target.h>

#include "kernels/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_AVX3
void multiply_pairs(const Bf16PairProduct& product) { multiply(product); }
#else
void multiply_pairs(const Bf16PairProduct&) {}  // never called
#endif
}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cobble::kernels {
namespace {
HWY_EXPORT(multiply_pairs);
}

void multiply_bf16_pairs(const Bf16PairProduct& product) {
  HWY_DISPATCH_TABLE(multiply_pairs)[chosen_target().GetIndex()](product);
}

#ifdef COBBLE_HAS_BF16_BLOCK

bool has_avx512_bf16() { return __builtin_cpu_supports("avx512bf16") != 0; }
bool uses_avx512_bf16() { return isa() == Isa::avx512_bf16; }

COBBLE_AVX512_BF16 void interleave(std::int64_t count, const bfloat16* even, const bfloat16* odd, std::uint32_t* to) {
  constexpr std::int64_t kLanes = 16;
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const std::int64_t left = count - i;
    const auto mask = static_cast<__mmask16>(left < kLanes ? (1U << left) - 1U : 0xFFFFU);
    __m512i pairs = _mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, even + i));
    if (odd != nullptr) {
      const __m512i upper = _mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, odd + i));
      pairs = _mm512_or_si512(pairs, _mm512_maskz_slli_epi32(mask, upper, 16));
    }
    _mm512_mask_storeu_epi32(to + i, mask, pairs);
  }
}

COBBLE_AVX512_BF16 void round_key_pairs(std::int64_t keys, std::int64_t stride, const float* tile, std::uint32_t* to) {
  alignas(64) static constexpr std::uint16_t kInterleaved[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                                 21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                                 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i interleaved = _mm512_load_si512(kInterleaved);
  for (std::int64_t key = 0; key < keys; key += 2) {
    const float* const even = tile + key * stride;
    std::uint32_t* const pairs = to + key / 2 * stride;
    for (std::int64_t i = 0; i < stride; i += 16) {
      const __m512 odd = key + 1 < keys ? _mm512_loadu_ps(even + stride + i) : _mm512_setzero_ps();
      const auto rounded = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, _mm512_loadu_ps(even + i)));
      _mm512_storeu_si512(pairs + i, _mm512_permutexvar_epi16(interleaved, rounded));
    }
  }
}

COBBLE_AVX512_BF16 void round_query_pairs(std::int64_t keys, std::int64_t queries, std::int64_t stride,
                                          const float* tile, bfloat16* to) {
  for (std::int64_t key = 0; key < keys; ++key, tile += stride, to += stride) {
    std::int64_t i = 0;
    for (; i + 32 <= stride; i += 32) {
      const auto rounded = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(tile + i + 16), _mm512_loadu_ps(tile + i));
      _mm512_storeu_si512(to + i, reinterpret_cast<__m512i>(rounded));
    }
    if (i < stride) {
      const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(tile + i)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), rounded);
    }
    if (queries % 2 != 0) to[queries] = bfloat16::from_bits(0);
  }
}

#else

bool has_avx512_bf16() { return false; }
bool uses_avx512_bf16() { return false; }
void interleave(std::int64_t, const bfloat16*, const bfloat16*, std::uint32_t*) {}
void round_key_pairs(std::int64_t, std::int64_t, const float*, std::uint32_t*) {}
void round_query_pairs(std::int64_t, std::int64_t, std::int64_t, const float*, bfloat16*) {}

#endif

}  // namespace cobble::kernels
#endif
