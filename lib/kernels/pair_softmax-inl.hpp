// Softmax, forward and backward, on the pairs of sparse tiles. Included once for each target.
#if defined(COBBLE_KERNELS_PAIR_SOFTMAX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef COBBLE_KERNELS_PAIR_SOFTMAX_INL
#undef COBBLE_KERNELS_PAIR_SOFTMAX_INL
#else
#define COBBLE_KERNELS_PAIR_SOFTMAX_INL
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "kernels/exponential-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls row(index, number of pairs, first pair) for each row that has pairs.
template <class Visit>
HWY_INLINE void for_each_row(const PairTile& pairs, Visit visit) {
  for (std::int64_t row = 0; row < pairs.rows; ++row) {
    const std::int32_t begin = pairs.row_offsets[row];
    const std::int32_t count = pairs.row_offsets[row + 1] - begin;
    if (count > 0) visit(row, static_cast<std::int64_t>(count), begin);
  }
}

/// exp(x - shift) of n elements into `to`, which may be x, or nowhere; returns their sum.
template <bool kStore, class T>
HWY_INLINE T exponentials(std::int64_t n, T shift, const T* x, T* to) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const auto by = hn::Set(d, shift);
  auto total = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto p = exponential<false>(d, hn::Sub(hn::LoadU(d, x + i), by));
    total = hn::Add(total, p);
    if constexpr (kStore) hn::StoreU(p, d, to + i);
  }
  if (i < n) {
    const auto there = hn::FirstN(d, static_cast<std::size_t>(n - i));
    const auto p = hn::IfThenElseZero(there, exponential<false>(d, hn::Sub(load_first(d, x + i, n - i), by)));
    total = hn::Add(total, p);
    if constexpr (kStore) store_first(d, p, to + i, n - i);
  }
  return hn::GetLane(hn::SumOfLanes(d, total));
}

template <bool kStore, class T>
HWY_INLINE bool pair_statistics(const PairTile& pairs, T* values, T* maximum_of_row, T* sum_of_row, T* rescale) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  bool rescaled = false;
  for_each_row(pairs, [&](std::int64_t row, std::int64_t count, std::int32_t begin) HWY_ATTR {
    const T before = maximum_of_row[row];
    const T largest = maximum(count, values + begin);
    const T after = largest > before + static_cast<T>(kMaximumLag) ? largest : before;
    const T shift = after == kLowest ? T{0} : after;
    const T total = exponentials<kStore>(count, shift, values + begin, values + begin);
    T factor = T{1};
    if (after != before) {
      factor = before;
      exp_shifted(1, shift, &factor);
      rescaled = true;
    }
    if constexpr (kStore) rescale[row] = factor;
    maximum_of_row[row] = after;
    sum_of_row[row] = sum_of_row[row] * factor + total;
  });
  return rescaled;
}

template <class T>
bool pair_online_softmax(const PairTile& pairs, T* values, T* maximum_of_row, T* sum_of_row, T* rescale) {
  for (std::int64_t row = 0; row < pairs.rows; ++row) rescale[row] = T{1};
  return pair_statistics<true>(pairs, values, maximum_of_row, sum_of_row, rescale);
}

template <class T>
void pair_row_statistics(const PairTile& pairs, const T* values, T* maximum_of_row, T* sum_of_row) {
  pair_statistics<false>(pairs, const_cast<T*>(values), maximum_of_row, sum_of_row, static_cast<T*>(nullptr));
}

template <class T>
void pair_probabilities(const PairTile& pairs, T* values, const T* shift) {
  for_each_row(pairs, [&](std::int64_t row, std::int64_t count, std::int32_t begin) HWY_ATTR {
    if (shift[row] == std::numeric_limits<T>::infinity()) {
      for (std::int64_t i = 0; i < count; ++i) values[begin + i] = T{0};
    } else {
      exp_shifted(count, shift[row], values + begin);
    }
  });
}

template <class T>
void pair_grad_scores(const PairTile& pairs, T* grads, const T* probability, const T* shift, const T* delta, T factor) {
  for_each_row(pairs, [&](std::int64_t row, std::int64_t count, std::int32_t begin) HWY_ATTR {
    if (shift[row] == std::numeric_limits<T>::infinity()) {
      for (std::int64_t i = 0; i < count; ++i) grads[begin + i] = T{0};
    } else {
      grad_shifted(count, probability + begin, factor * delta[row], grads + begin);
    }
  });
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
