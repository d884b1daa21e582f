#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "cobble/tensor.hpp"
#include "support/random.hpp"

// Tensors for tests: any memory layout, seeded contents, comparisons.

namespace cobble::test {

/// How a tensor lies in memory.
enum class Layout {
  contiguous,       ///< batch, heads, tokens, features
  tokens_first,     ///< batch, tokens, heads, features, as most frameworks keep it
  feature_stride,   ///< every second element, and a gap after each token
  reversed,         ///< tokens and features run backwards
  broadcast_heads,  ///< stride 0 along batch and heads
  broadcast_all,    ///< stride 0 along all axes: one element, as the gradient of a sum
};
inline constexpr std::array kInputLayouts{Layout::contiguous, Layout::tokens_first,    Layout::feature_stride,
                                          Layout::reversed,   Layout::broadcast_heads, Layout::broadcast_all};
inline constexpr std::array kOutputLayouts{Layout::contiguous, Layout::tokens_first, Layout::feature_stride,
                                           Layout::reversed};

inline std::string to_string(Layout layout) {
  switch (layout) {
    case Layout::contiguous: return "contiguous";
    case Layout::tokens_first: return "tokens_first";
    case Layout::feature_stride: return "feature_stride";
    case Layout::reversed: return "reversed";
    case Layout::broadcast_heads: return "broadcast_heads";
    case Layout::broadcast_all: return "broadcast_all";
  }
  return "unknown";
}

/// Owns its memory, which is as long as the layout needs and not an element longer, so that a sanitizer sees any
/// access outside.
template <class T>
class LaidOut {
 public:
  LaidOut() = default;
  LaidOut(const TensorShape& shape, Layout layout) {
    const auto [batch, heads, tokens, features] = shape;
    std::int64_t first = 0;
    TensorStrides strides = contiguous_strides(shape);
    switch (layout) {
      case Layout::contiguous: break;
      case Layout::tokens_first: strides = {tokens * heads * features, features, heads * features, 1}; break;
      case Layout::feature_stride: {
        const std::int64_t token = 2 * features + 3;
        strides = {heads * tokens * token, tokens * token, token, 2};
        break;
      }
      case Layout::reversed:
        strides = {heads * tokens * features, tokens * features, -features, -1};
        first = tokens * features - 1;
        break;
      case Layout::broadcast_heads: strides = {0, 0, features, 1}; break;
      case Layout::broadcast_all: strides = {0, 0, 0, 0}; break;
    }
    if (shape.size() == 0) {
      view_ = TensorView<T>(nullptr, shape, strides);
      return;
    }
    std::int64_t last = first;
    const auto extend = [&last](std::int64_t stride, std::int64_t size) {
      if (stride > 0) last += stride * (size - 1);
    };
    extend(strides.batch, batch);
    extend(strides.heads, heads);
    extend(strides.tokens, tokens);
    extend(strides.features, features);
    memory_.assign(static_cast<std::size_t>(last + 1), std::numeric_limits<T>::quiet_NaN());
    view_ = TensorView<T>(memory_.data() + first, shape, strides);
  }
  LaidOut(LaidOut&&) noexcept = default;
  LaidOut& operator=(LaidOut&&) noexcept = default;

  const TensorView<T>& view() const { return view_; }
  operator TensorView<T>() const { return view_; }
  operator TensorView<const T>() const { return view_; }
  T& operator()(std::int64_t batch, std::int64_t head, std::int64_t token, std::int64_t feature) const {
    return view_(batch, head, token, feature);
  }
  const std::vector<T>& memory() const { return memory_; }

 private:
  std::vector<T> memory_;
  TensorView<T> view_;
};

/// Calls f(batch, head, token, feature) for each element.
template <class F>
void for_each_index(const TensorShape& shape, F f) {
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      for (std::int64_t token = 0; token < shape.tokens; ++token) {
        for (std::int64_t feature = 0; feature < shape.features; ++feature) f(batch, head, token, feature);
      }
    }
  }
}

template <class T>
void fill_normal(const TensorView<T>& tensor, Random& random) {
  for_each_index(tensor.shape(),
                 [&](auto b, auto h, auto t, auto f) { tensor(b, h, t, f) = static_cast<T>(random.normal()); });
}

template <class T>
LaidOut<T> normal_tensor(const TensorShape& shape, Random& random, Layout layout = Layout::contiguous) {
  LaidOut<T> tensor(shape, layout);
  fill_normal(tensor.view(), random);
  return tensor;
}

/// The largest |actual - expected| over the largest finite |expected|. A tensor whose entries all cancel to (nearly)
/// nothing is compared with 1, the size of the terms of normal data. Infinity when one holds a NaN or an infinity where
/// the other does not.
template <class A, class B>
double max_relative_error(const TensorView<A>& actual, const TensorView<B>& expected) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kCancelled = 1e-2;
  if (actual.shape() != expected.shape()) return kInfinity;
  double difference = 0;
  double largest = 0;
  for_each_index(expected.shape(), [&](auto batch, auto head, auto token, auto feature) {
    const auto a = static_cast<double>(actual(batch, head, token, feature));
    const auto e = static_cast<double>(expected(batch, head, token, feature));
    if (std::isfinite(e) && std::isfinite(a)) {
      difference = std::max(difference, std::abs(a - e));
      largest = std::max(largest, std::abs(e));
    } else if (!(a == e || (std::isnan(a) && std::isnan(e)))) {
      difference = kInfinity;
    }
  });
  return difference / (largest < kCancelled ? 1 : largest);
}

template <class A, class B>
double max_relative_error(const Tensor<A>& actual, const Tensor<B>& expected) {
  return max_relative_error(actual.view(), expected.view());
}

template <class T>
bool equal_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Whether all elements have the same bits.
template <class A, class B>
bool same_bits(const TensorView<A>& a, const TensorView<B>& b) {
  if (a.shape() != b.shape()) return false;
  bool same = true;
  for_each_index(a.shape(), [&](auto batch, auto head, auto token, auto feature) {
    const std::remove_const_t<A> x = a(batch, head, token, feature);
    const std::remove_const_t<B> y = b(batch, head, token, feature);
    same = same && equal_bits(x, y);
  });
  return same;
}

template <class T>
bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return same_bits(a.view(), b.view());
}

/// Whether all elements equal `value`.
template <class T>
bool all_equal(const TensorView<T>& tensor, std::remove_const_t<T> value) {
  bool equal = true;
  for_each_index(tensor.shape(), [&](auto b, auto h, auto t, auto f) { equal = equal && tensor(b, h, t, f) == value; });
  return equal;
}

/// A copy in another element type, dense in C order.
template <class To, class From>
Tensor<To> converted(const TensorView<From>& tensor) {
  Tensor<To> copy(tensor.shape());
  for_each_index(tensor.shape(),
                 [&](auto b, auto h, auto t, auto f) { copy(b, h, t, f) = static_cast<To>(tensor(b, h, t, f)); });
  return copy;
}

}  // namespace cobble::test
