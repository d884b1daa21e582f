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

/// min(limit, x), but NaN where x is.
template <class D>
HWY_INLINE hn::Vec<D> at_most(D d, hn::TFromD<D> limit, hn::Vec<D> x) {
  const auto most = hn::Set(d, limit);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Min(most, x);  // the second operand is what a NaN survives in
#else
  return hn::IfThenElse(hn::Lt(most, x), most, x);  // Min would pass a NaN over
#endif
}

/// Cody-Waite reduction x = n log 2 + r, |r| <= log(2) / 2, and a polynomial whose coefficients are 2 / k!, so that
/// 2^(n - 1), which is a normal number for every result that is one, completes it. The coefficients are minimax, from
/// Remez' algorithm on [-log(2) / 2, log(2) / 2]. What comes out of an x so low that n is no exponent is not used.
template <bool kMayExceedOne, class D>
HWY_INLINE hn::Vec<D> exponential_f32(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  constexpr float kLowest = -86.6F;  // 2^-125 and below count as 0
  const auto limited = kMayExceedOne ? at_most(d, 89.0F, x) : x;
  // Adding 1.5 * 2^23 rounds to an integer in the low bits; 126 more make it the exponent of 2^(n - 1).
  const auto round = hn::Set(d, 12582912.0F + 126.0F);
  const auto shifted = hn::MulAdd(limited, hn::Set(d, 1.44269504088896341F), round);
  const auto whole = hn::Sub(shifted, round);
  auto r = hn::NegMulAdd(whole, hn::Set(d, 0.693145751953125F), limited);
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

/// The same in double.
template <bool kMayExceedOne, class D>
HWY_INLINE hn::Vec<D> exponential_f64(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  constexpr double kLowest = -707.7;  // 2^-1021 and below count as 0
  const auto limited = kMayExceedOne ? at_most(d, 710.0, x) : x;
  const auto round = hn::Set(d, 6755399441055744.0 + 1022.0);  // 1.5 * 2^52, and what makes it the exponent
  const auto shifted = hn::MulAdd(limited, hn::Set(d, 1.4426950408889634074), round);
  const auto whole = hn::Sub(shifted, round);
  auto r = hn::NegMulAdd(whole, hn::Set(d, 6.93147180369123816490e-01), limited);
  r = hn::NegMulAdd(whole, hn::Set(d, 1.90821492927058770002e-10), r);
  auto p = hn::Set(d, 2.0 * 2.5000072292151244e-08);
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 * 2.7630233914958636e-07));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 * 2.7557586266408486e-06));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 * 2.4801493136197254e-05));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 * 0.00019841269506779664));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 * 0.001388888894359769));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 * 0.008333333333494333));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 * 0.041666666666530267));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 * 0.16666666666666413));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0 * 0.5000000000000011));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0));
  p = hn::MulAdd(p, r, hn::Set(d, 2.0));
  const auto power = hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(di, shifted)));
  return hn::IfThenElseZero(hn::Not(hn::Lt(x, hn::Set(d, kLowest))), hn::Mul(p, power));
}

/// Within 2 ulp of exp(x); 0 below twice the smallest normal number, infinite beyond the largest, NaN stays NaN. Of
/// x > 0 only where it may exceed one.
template <bool kMayExceedOne = true, class D>
HWY_INLINE hn::Vec<D> exponential(D d, hn::Vec<D> x) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(float)) {
    return exponential_f32<kMayExceedOne>(d, x);
  } else {
    return exponential_f64<kMayExceedOne>(d, x);
  }
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
