// Loops over contiguous elements. Included once for each target.
#if defined(COBBLE_KERNELS_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef COBBLE_KERNELS_VECTORS_INL
#undef COBBLE_KERNELS_VECTORS_INL
#else
#define COBBLE_KERNELS_VECTORS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/exponential-inl.hpp"
#include "kernels/pairs-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// x[i] = update(x[i], i) by vectors; of the last one, only what is there is read and written.
template <class T, class Update>
HWY_INLINE void update_each(std::int64_t n, T* x, Update update) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(update(hn::LoadU(d, x + i), i, kLanes), d, x + i);
  if (i < n) store_first(d, update(load_first(d, x + i, n - i), i, n - i), x + i, n - i);
}

/// Element i of a second array beside update_each.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_some(D d, const T* from, std::int64_t count) {
  return count == static_cast<std::int64_t>(hn::MaxLanes(d)) ? hn::LoadU(d, from) : load_first(d, from, count);
}

template <class T>
T dot(std::int64_t n, const T* a, const T* b) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t count = n - i < kLanes ? n - i : kLanes;
    sum = hn::MulAdd(load_some(d, a + i, count), load_some(d, b + i, count), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class T>
void axpy(std::int64_t n, T alpha, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, alpha);
  update_each(n, y, [&](auto value, std::int64_t i, std::int64_t count) HWY_ATTR {
    return hn::MulAdd(factor, load_some(d, x + i, count), value);
  });
}

template <class T>
void scale(std::int64_t n, T alpha, T* x) {
  const auto factor = hn::Set(hn::ScalableTag<T>(), alpha);
  update_each(n, x, [&](auto value, std::int64_t, std::int64_t) HWY_ATTR { return hn::Mul(factor, value); });
}

template <class T>
void exp_shifted(std::int64_t n, T shift, T* x) {
  const hn::ScalableTag<T> d;
  const auto by = hn::Set(d, shift);
  update_each(n, x,
              [&](auto value, std::int64_t, std::int64_t) HWY_ATTR { return exponential(d, hn::Sub(value, by)); });
}

template <class T>
void grad_shifted(std::int64_t n, const T* p, T shift, T* x) {
  const hn::ScalableTag<T> d;
  const auto by = hn::Set(d, shift);
  update_each(n, x, [&](auto value, std::int64_t i, std::int64_t count) HWY_ATTR {
    return hn::Mul(load_some(d, p + i, count), hn::Sub(value, by));
  });
}

/// The largest element; -infinity without any. NaN may be passed over.
template <class T>
T maximum(std::int64_t n, const T* x) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const auto lowest = hn::Neg(hn::Inf(d));
  auto largest = lowest;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) largest = hn::Max(hn::LoadU(d, x + i), largest);
  if (i < n) {
    const auto there = hn::FirstN(d, static_cast<std::size_t>(n - i));
    largest = hn::Max(hn::IfThenElse(there, load_first(d, x + i, n - i), lowest), largest);
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

template <class T>
bool all_finite(std::int64_t n, const T* x) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  auto total = hn::Zero(d);  // 0 times a finite number is 0, times anything else NaN
  for (std::int64_t i = 0; i < n; i += kLanes) {
    total = hn::MulAdd(load_some(d, x + i, n - i < kLanes ? n - i : kLanes), hn::Zero(d), total);
  }
  return hn::AllTrue(d, hn::Eq(total, hn::Zero(d)));
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
