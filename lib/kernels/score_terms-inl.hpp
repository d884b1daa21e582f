// The terms of scores on contiguous elements. Included once for each target.
#if defined(COBBLE_KERNELS_SCORE_TERMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef COBBLE_KERNELS_SCORE_TERMS_INL
#undef COBBLE_KERNELS_SCORE_TERMS_INL
#else
#define COBBLE_KERNELS_SCORE_TERMS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/exponential-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// tanh(x) - x over x^3 for |x| < 0.625, of z = x^2. (Cephes, tanhf.c and tanh.c.)
template <class D>
HWY_INLINE hn::Vec<D> tanh_core(D d, hn::Vec<D> z) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(float)) {
    auto p = hn::Set(d, -5.70498872745e-3F);
    p = hn::MulAdd(p, z, hn::Set(d, 2.06390887954e-2F));
    p = hn::MulAdd(p, z, hn::Set(d, -5.37397155531e-2F));
    p = hn::MulAdd(p, z, hn::Set(d, 1.33314422036e-1F));
    return hn::MulAdd(p, z, hn::Set(d, -3.33332819422e-1F));
  } else {
    auto p = hn::Set(d, -9.64399179425052238628e-1);
    p = hn::MulAdd(p, z, hn::Set(d, -9.92877231001918586564e1));
    p = hn::MulAdd(p, z, hn::Set(d, -1.61468768441708447952e3));
    auto q = hn::Add(z, hn::Set(d, 1.12811678491632931402e2));
    q = hn::MulAdd(q, z, hn::Set(d, 2.23548839060100448583e3));
    q = hn::MulAdd(q, z, hn::Set(d, 4.84406305325125486048e3));
    return hn::Div(p, q);
  }
}

/// Within 4 ulp; NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> hyperbolic_tangent(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto magnitude = hn::Abs(x);
  const auto square = hn::Mul(x, x);
  const auto near = hn::MulAdd(hn::Mul(tanh_core(d, square), square), x, x);
  // 1 - 2 / (exp(2 |x|) + 1). Beyond 22 that is 1 in either type.
  const auto power = exponential(d, hn::Mul(hn::Set(d, T{2}), at_most(d, T{22}, magnitude)));
  const auto one = hn::Set(d, T{1});
  const auto far = hn::CopySign(hn::Sub(one, hn::Div(hn::Set(d, T{2}), hn::Add(power, one))), x);
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, T(0.625))), near, far);
}

template <class T>
void soft_cap(std::int64_t n, T cap, T* x, T* slope) {
  const hn::ScalableTag<T> d;
  const auto by = hn::Set(d, cap);
  const auto inverse = hn::Set(d, T{1} / cap);
  const auto one = hn::Set(d, T{1});
  update_each(n, x, [&](auto value, std::int64_t i, std::int64_t count) HWY_ATTR {
    const auto tanh = hyperbolic_tangent(d, hn::Mul(value, inverse));
    if (slope != nullptr) {
      const auto derivative = hn::NegMulAdd(tanh, tanh, one);
      if (count == static_cast<std::int64_t>(hn::MaxLanes(d))) {
        hn::StoreU(derivative, d, slope + i);
      } else {
        store_first(d, derivative, slope + i, count);
      }
    }
    return hn::Mul(by, tanh);
  });
}

template <class T>
void subtract_distances(std::int64_t n, T slope, std::int64_t first, T* x) {
  const hn::ScalableTag<T> d;
  const auto by = hn::Set(d, slope);
  // Distances below 2^24 are exact in float, and beyond as exact as their product.
  update_each(n, x, [&](auto value, std::int64_t i, std::int64_t) HWY_ATTR {
    const auto distance = hn::Abs(hn::Add(hn::Set(d, static_cast<T>(first + i)), hn::Iota(d, T{0})));
    return hn::NegMulAdd(by, distance, value);
  });
}

template <class T>
void add_bias(std::int64_t n, const T* bias, T* x) {
  const hn::ScalableTag<T> d;
  const auto lowest = hn::Neg(hn::Inf(d));
  update_each(n, x, [&](auto value, std::int64_t i, std::int64_t count) HWY_ATTR {
    const auto b = load_some(d, bias + i, count);
    return hn::IfThenElse(hn::Eq(b, lowest), lowest, hn::Add(value, b));
  });
}

template <class T>
void multiply_by(std::int64_t n, const T* factor, T* x) {
  const hn::ScalableTag<T> d;
  update_each(n, x, [&](auto value, std::int64_t i, std::int64_t count) HWY_ATTR {
    return hn::Mul(value, load_some(d, factor + i, count));
  });
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
