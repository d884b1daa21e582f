// exp on vectors. Included once for each target.
#if defined(COBBLE_KERNELS_EXPONENTIAL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef COBBLE_KERNELS_EXPONENTIAL_INL
#undef COBBLE_KERNELS_EXPONENTIAL_INL
#else
#define COBBLE_KERNELS_EXPONENTIAL_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// min(limit, x) and max(limit, x), but NaN where x is.
template <class D>
HWY_INLINE hn::Vec<D> at_most(D d, hn::TFromD<D> limit, hn::Vec<D> x) {
  const auto most = hn::Set(d, limit);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Min(most, x);  // the second operand is what a NaN survives in
#else
  return hn::IfThenElse(hn::Lt(most, x), most, x);  // Min would pass a NaN over
#endif
}
template <class D>
HWY_INLINE hn::Vec<D> at_least(D d, hn::TFromD<D> limit, hn::Vec<D> x) {
  const auto least = hn::Set(d, limit);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Max(least, x);
#else
  return hn::IfThenElse(hn::Lt(x, least), least, x);
#endif
}

/// Cody-Waite reduction x = n log 2 + r, |r| <= log(2) / 2, and a polynomial whose coefficients are 2 / k!, so that
/// 2^(n - 1), which is a normal number for every result that is one, completes it. The coefficients are minimax, from
/// Remez' algorithm on [-log(2) / 2, log(2) / 2].
template <class D>
HWY_INLINE hn::Vec<D> exponential_f32(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  constexpr float kLowest = -86.6F;  // 2^-125 and below count as 0
  const auto clamped = at_least(d, kLowest, at_most(d, 89.0F, x));
  // Adding 1.5 * 2^23 rounds to an integer in the low bits; 126 more make it the exponent of 2^(n - 1).
  const auto round = hn::Set(d, 12582912.0F + 126.0F);
  const auto shifted = hn::MulAdd(clamped, hn::Set(d, 1.44269504088896341F), round);
  const auto whole = hn::Sub(shifted, round);
  auto r = hn::NegMulAdd(whole, hn::Set(d, 0.693145751953125F), clamped);
  r = hn::NegMulAdd(whole, hn::Set(d, 1.42860682030941723212e-6F), r);
  auto p = hn::Set(d, 2.0F * 1.3814613090e-3F);
  p = hn::MulAdd(p, r, hn::Set(d, 2.0F * 8.3687098318e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0F * 4.1668387365e-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0F * 1.6666520690e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0F * 4.9999993452e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0F));
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::IfThenElseZero(hn::Not(hn::Lt(x, hn::Set(d, kLowest))), hn::Mul(p, power));
}

/// The same in double, with the Taylor polynomial.
template <class D>
HWY_INLINE hn::Vec<D> exponential_f64(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  constexpr double kLowest = -707.7;  // 2^-1021 and below count as 0
  const auto clamped = at_least(d, kLowest, at_most(d, 710.0, x));
  const auto kRound = hn::Set(d, 6755399441055744.0);  // 1.5 * 2^52: adding it rounds to an integer in the low bits
  const auto shifted = hn::MulAdd(clamped, hn::Set(d, 1.4426950408889634074), kRound);
  const auto whole = hn::Sub(shifted, kRound);
  auto r = hn::NegMulAdd(whole, hn::Set(d, 6.93147180369123816490e-01), clamped);
  r = hn::NegMulAdd(whole, hn::Set(d, 1.90821492927058770002e-10), r);
  auto p = hn::Set(d, 2.0 / 6227020800.0);  // 1 / 13!
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 / 479001600.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 / 39916800.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 / 3628800.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 / 362880.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 / 40320.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 / 5040.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 / 720.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 / 120.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 / 24.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 / 6.0));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0));
  const auto whole_bits = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, kRound));
  const auto exponent = hn::ShiftLeft<52>(hn::Add(whole_bits, hn::Set(di, std::int64_t{1022})));
  return hn::IfThenElseZero(hn::Not(hn::Lt(x, hn::Set(d, kLowest))), hn::Mul(p, hn::BitCast(d, exponent)));
}

/// Within 2 ulp of exp(x); 0 below twice the smallest normal number, infinite beyond the largest, NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> exponential(D d, hn::Vec<D> x) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(float)) {
    return exponential_f32(d, x);
  } else {
    return exponential_f64(d, x);
  }
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
