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

/// What an exponential takes that cuts log 2 into 2^kPartBits parts: the coefficients, highest power first, of a
/// polynomial for exp(r) whose last two are 1, minimax from Remez' algorithm on |r| <= log(2) / 2 / 2^kPartBits; and
/// the mantissas of 2^(j / 2^kPartBits), less j in their upper bits.
template <class T, int kPartBits>
struct ExponentialTerms;

template <>
struct ExponentialTerms<float, 0> {
  static constexpr float kCoefficients[] = {1.3814613090e-3F, 8.3687098318e-3F, 4.1668387365e-2F, 1.6666520690e-1F,
                                            4.9999993452e-1F};
};

template <>
struct ExponentialTerms<double, 0> {
  static constexpr double kCoefficients[] = {2.5000072292151244e-08, 2.7630233914958636e-07, 2.7557586266408486e-06,
                                             2.4801493136197254e-05, 1.9841269506779664e-04, 1.388888894359769e-03,
                                             8.333333333494333e-03,  4.1666666666530267e-02, 1.6666666666666413e-01,
                                             5.000000000000011e-01};
};

template <>
struct ExponentialTerms<float, 4> {
  static constexpr float kCoefficients[] = {1.6666718467e-1F, 5.00016157481e-1F};
  HWY_ALIGN static constexpr std::uint32_t kMantissas[] = {
      0x00000000U, 0xFFFDAAC3U, 0xFFFB95C2U, 0xFFF9C3D3U, 0xFFF837F0U, 0xFFF6F532U, 0xFFF5FED7U, 0xFFF5583FU,
      0xFFF504F3U, 0xFFF508A4U, 0xFFF5672AU, 0xFFF6248CU, 0xFFF744FDU, 0xFFF8CCDFU, 0xFFFAC0C7U, 0xFFFD257DU};
};

template <>
struct ExponentialTerms<double, 3> {
  static constexpr double kCoefficients[] = {1.9840565997321708e-04, 1.3889780495502386e-03, 8.33333337110958e-03,
                                             4.1666666570111976e-02, 1.6666666666663726e-01, 5.000000000000296e-01};
  HWY_ALIGN static constexpr std::uint64_t kMantissas[] = {
      0x0000000000000000U, 0xFFFF72B83C7D517BU, 0xFFFF06FE0A31B715U, 0xFFFEBFDAD5362A27U,
      0xFFFEA09E667F3BCDU, 0xFFFEACE5422AA0DBU, 0xFFFEE89F995AD3ADU, 0xFFFF5818DCFBA487U};
};

/// Constants of a type: where results count as 0 and where they are infinite; 1.5 * 2^(mantissa bits), which rounds to
/// an integer in the low bits when it is added; what makes n the exponent of 2^(n - 1); and log 2 in two parts.
template <class T>
struct ExponentialRange;

template <>
struct ExponentialRange<float> {
  static constexpr float kLowest = -86.6F;  // 2^-125
  static constexpr float kHighest = 89.0F;
  static constexpr float kRound = 12582912.0F;
  static constexpr float kBias = 126.0F;
  static constexpr float kLogHigh = 0.693145751953125F;
  static constexpr float kLogLow = 1.42860682030941723212e-6F;
};

template <>
struct ExponentialRange<double> {
  static constexpr double kLowest = -707.7;  // 2^-1021
  static constexpr double kHighest = 710.0;
  static constexpr double kRound = 6755399441055744.0;
  static constexpr double kBias = 1022.0;
  static constexpr double kLogHigh = 6.93147180369123816490e-01;
  static constexpr double kLogLow = 1.90821492927058770002e-10;
};

/// Into how many parts exponential() cuts log 2: as many as a vector looks up at once, or one.
template <class D>
constexpr int part_bits() {
  constexpr bool kIsFloat = sizeof(hn::TFromD<D>) == sizeof(float);
  return HWY_TARGET == HWY_AVX3 && hn::MaxLanes(D()) == (kIsFloat ? 16 : 8) ? (kIsFloat ? 4 : 3) : 0;
}

/// Within 2 ulp of exp(x); 0 below twice the smallest normal number, infinite beyond the largest unless told that it
/// cannot be, NaN stays NaN.
///
/// Cody-Waite reduction x = (n + j / parts) log 2 + r. The polynomial is doubled, so that 2^(n - 1), which is a normal
/// number for every result that is one, completes it with 2^(j / parts). What comes out of an x so low that n is no
/// exponent is not used.
template <bool kMayOverflow = true, class D>
HWY_INLINE hn::Vec<D> exponential(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  using Range = ExponentialRange<T>;
  constexpr int kPartBits = part_bits<D>();
  constexpr T kParts = T{1 << kPartBits};
  constexpr int kMantissaBits = sizeof(T) == sizeof(float) ? 23 : 52;
  using Terms = ExponentialTerms<T, kPartBits>;
  const hn::RebindToUnsigned<D> du;
  const auto limited = kMayOverflow ? at_most(d, Range::kHighest, x) : x;
  const auto round = hn::Set(d, Range::kRound + kParts * Range::kBias);
  const auto shifted = hn::MulAdd(limited, hn::Set(d, kParts * static_cast<T>(1.4426950408889634074)), round);
  const auto whole = hn::Sub(shifted, round);
  auto r = hn::NegMulAdd(whole, hn::Set(d, Range::kLogHigh / kParts), limited);
  r = hn::NegMulAdd(whole, hn::Set(d, Range::kLogLow / kParts), r);
  constexpr int kCount = static_cast<int>(sizeof(Terms::kCoefficients) / sizeof(T));
  auto p = hn::Set(d, T{2} * Terms::kCoefficients[0]);
#pragma GCC unroll 16
  for (int k = 1; k < kCount; ++k) p = hn::MulAdd(p, r, hn::Set(d, T{2} * Terms::kCoefficients[k]));
  p = hn::MulAdd(p, r, hn::Set(d, T{2}));
  p = hn::MulAdd(p, r, hn::Set(d, T{2}));
  const auto bits = hn::BitCast(du, shifted);
  auto power = hn::ShiftLeft<kMantissaBits - kPartBits>(bits);
  if constexpr (kPartBits > 0) {
    using Bits = hn::TFromD<decltype(du)>;
    const auto part = hn::IndicesFromVec(du, hn::And(bits, hn::Set(du, Bits{(1U << kPartBits) - 1})));
    power = hn::Add(power, hn::TableLookupLanes(hn::Load(du, Terms::kMantissas), part));
  }
  return hn::IfThenElseZero(hn::Not(hn::Lt(x, hn::Set(d, Range::kLowest))), hn::Mul(p, hn::BitCast(d, power)));
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
