// Conversions of halves. Included once for each target.
#if defined(COBBLE_KERNELS_HALF_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef COBBLE_KERNELS_HALF_KERNELS_INL
#undef COBBLE_KERNELS_HALF_KERNELS_INL
#else
#define COBBLE_KERNELS_HALF_KERNELS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "kernels/half_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Both ways by integers, as half.hpp does: Highway's own conversions truncate on some targets.

/// Bits of halves, each in the lower part of 32, to those of floats.
template <class D>
HWY_INLINE hn::Vec<D> widen_bits(bfloat16, D, hn::Vec<D> half) {
  return hn::ShiftLeft<16>(half);
}

template <class D>
HWY_INLINE hn::Vec<D> widen_bits(float16, D d, hn::Vec<D> half) {
  const hn::Rebind<float, D> df;
  const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000)));
  const auto magnitude = hn::And(half, hn::Set(d, 0x7FFF));
  const auto fraction = hn::ShiftLeft<13>(magnitude);
  const auto normal = hn::Add(fraction, hn::Set(d, 0x38000000));
  const auto special = hn::Or(fraction, hn::Set(d, 0x7F800000));
  const auto subnormal = hn::BitCast(d, hn::Mul(hn::ConvertTo(df, magnitude), hn::Set(df, 0x1p-24F)));
  const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x400)), subnormal, normal);
  return hn::Or(sign, hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7BFF)), special, finite));
}

/// Bits of floats to those of halves, each in the lower part of 32.
template <class D>
HWY_INLINE hn::Vec<D> narrow_bits(bfloat16, D d, hn::Vec<D> number) {
  const auto magnitude = hn::And(number, hn::Set(d, 0x7FFFFFFF));
  // In 32 bits: what is not NaN cannot overflow into the sign, as a carry ends in the exponent of infinity.
  const hn::Rebind<std::uint32_t, D> du;
  const auto bits = hn::BitCast(du, number);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFU))));
  const auto nan = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40U));
  return hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7F800000)), hn::BitCast(d, nan), hn::BitCast(d, rounded));
}

template <class D>
HWY_INLINE hn::Vec<D> narrow_bits(float16, D d, hn::Vec<D> number) {
  const hn::Rebind<float, D> df;
  const hn::Rebind<std::uint32_t, D> du;
  const auto sign = hn::BitCast(d, hn::ShiftRight<16>(hn::And(hn::BitCast(du, number), hn::Set(du, 0x80000000U))));
  const auto magnitude = hn::And(number, hn::Set(d, 0x7FFFFFFF));
  const auto fraction = hn::ShiftRight<13>(magnitude);
  const auto odd = hn::And(fraction, hn::Set(d, 1));
  const auto rounded = hn::Add(magnitude, hn::Add(odd, hn::Set(d, 0xFFF - 0x38000000)));
  const auto normal = hn::ShiftRight<13>(rounded);
  // Added to 1/2, whose last bit weighs 2^-24, a number below 2^-14 is rounded to a multiple of that.
  const auto sum = hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5F));
  const auto subnormal = hn::Sub(hn::BitCast(d, sum), hn::Set(d, 0x3F000000));
  const auto nan = hn::Or(hn::And(fraction, hn::Set(d, 0x3FF)), hn::Set(d, 0x7E00));
  auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x38800000)), subnormal, normal);
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x477FEFFF)), hn::Set(d, 0x7C00), result);
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7F800000)), nan, result);
  return hn::Or(sign, result);
}

/// Calls convert(i) for starts of whole vectors that cover [0, n), the last one overlapping; false if there are too few
/// elements for one.
template <std::int64_t kLanes, class Convert>
HWY_INLINE bool for_each_vector(std::int64_t n, Convert convert) {
  if (n < kLanes) return false;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) convert(i);
  if (i < n) convert(n - kLanes);
  return true;
}

template <class Half>
HWY_INLINE const std::uint16_t* bits_of(const Half* halves) {
  return reinterpret_cast<const std::uint16_t*>(halves);
}

template <class Half>
void widen(std::int64_t n, const Half* HWY_RESTRICT from, float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> d;
  const hn::Rebind<std::uint16_t, decltype(d)> narrow_tag;
  const bool done = for_each_vector<static_cast<std::int64_t>(hn::MaxLanes(df))>(n, [&](std::int64_t i) HWY_ATTR {
    const auto half = hn::PromoteTo(d, hn::LoadU(narrow_tag, bits_of(from + i)));
    hn::StoreU(hn::BitCast(df, widen_bits(Half{}, d, half)), df, to + i);
  });
  if (done) return;
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

template <class Half>
void narrow(std::int64_t n, const float* HWY_RESTRICT from, Half* HWY_RESTRICT to) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> d;
  const hn::Rebind<std::uint16_t, decltype(d)> narrow_tag;
  const bool done = for_each_vector<static_cast<std::int64_t>(hn::MaxLanes(df))>(n, [&](std::int64_t i) HWY_ATTR {
    const auto half = narrow_bits(Half{}, d, hn::BitCast(d, hn::LoadU(df, from + i)));
    hn::StoreU(hn::DemoteTo(narrow_tag, half), narrow_tag, reinterpret_cast<std::uint16_t*>(to + i));
  });
  if (done) return;
  for (std::int64_t i = 0; i < n; ++i) to[i] = Half(from[i]);
}

template <class Half>
bool all_finite(std::int64_t n, const Half* x) {
  // NaN and infinity have all bits of the exponent: the float's on top of the 16, and nothing is larger.
  constexpr std::uint16_t kExponent = std::is_same_v<Half, bfloat16> ? 0x7F80 : 0x7C00;
  std::uint16_t largest = 0;
  const hn::ScalableTag<std::uint16_t> d;
  auto magnitudes = hn::Zero(d);
  const bool done = for_each_vector<static_cast<std::int64_t>(hn::MaxLanes(d))>(n, [&](std::int64_t i) HWY_ATTR {
    magnitudes = hn::Max(magnitudes, hn::And(hn::LoadU(d, bits_of(x + i)), hn::Set(d, std::uint16_t{0x7FFF})));
  });
  if (done) return hn::AllTrue(d, hn::Lt(magnitudes, hn::Set(d, kExponent)));
  for (std::int64_t i = 0; i < n; ++i) {
    const auto magnitude = static_cast<std::uint16_t>(x[i].bits & 0x7FFFU);
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest < kExponent;
}

template <class Half>
const HalfKernels<Half>* half_table() {
  static constexpr HalfKernels<Half> kTable = {
      .widen = widen<Half>, .narrow = narrow<Half>, .all_finite = all_finite<Half>};
  return &kTable;
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
