#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cobble/pattern.hpp"
#include "cobble/tensor.hpp"

// Attention as one would write it down, in the element type T and in natural order: the yardstick for the rounding
// errors of a computation in float32. One batch entry, one head.

namespace cobble::test {

template <class T>
struct PlainAttention {
  Tensor<T> output;
  Tensor<T> grad_query;
  Tensor<T> grad_key;
  Tensor<T> grad_value;
};

template <class T>
PlainAttention<T> plain_attention(const Pattern& pattern, const TensorView<const T>& query,
                                  const TensorView<const T>& key, const TensorView<const T>& value,
                                  const TensorView<const T>& grad_output) {
  const std::int64_t d = query.shape().features;
  const std::int64_t d_v = value.shape().features;
  const T scale = T{1} / std::sqrt(static_cast<T>(d));
  const auto zeros = [](const TensorShape& shape) {
    Tensor<T> tensor(shape);
    for (T& x : tensor.values()) x = 0;
    return tensor;
  };
  PlainAttention<T> result{zeros(grad_output.shape()), zeros(query.shape()), zeros(key.shape()), zeros(value.shape())};
  std::vector<T> p;
  std::vector<std::int64_t> keys;
  std::vector<ColumnRun> runs;
  for (std::int64_t i = 0; i < pattern.rows(); ++i) {
    p.clear();
    keys.clear();
    T maximum = -std::numeric_limits<T>::infinity();
    runs.clear();
    pattern.append_runs(i, 0, pattern.columns(), runs);
    for (const ColumnRun& run : runs) {
      for (std::int64_t j = run.begin; j < run.end; ++j) keys.push_back(j);
    }
    for (const std::int64_t j : keys) {
      T score = 0;
      for (std::int64_t f = 0; f < d; ++f) score += query(0, 0, i, f) * key(0, 0, j, f);
      p.push_back(score * scale);
      maximum = std::max(maximum, p.back());
    }
    T sum = 0;
    for (T& x : p) sum += x = std::exp(x - maximum);
    for (std::size_t pair = 0; pair < p.size(); ++pair) {
      p[pair] /= sum;
      for (std::int64_t f = 0; f < d_v; ++f) result.output(0, 0, i, f) += p[pair] * value(0, 0, keys[pair], f);
    }
    T delta = 0;
    for (std::int64_t f = 0; f < d_v; ++f) delta += grad_output(0, 0, i, f) * result.output(0, 0, i, f);
    for (std::size_t pair = 0; pair < p.size(); ++pair) {
      const std::int64_t j = keys[pair];
      T dp = 0;
      for (std::int64_t f = 0; f < d_v; ++f) dp += grad_output(0, 0, i, f) * value(0, 0, j, f);
      const T ds = scale * p[pair] * (dp - delta);
      for (std::int64_t f = 0; f < d_v; ++f) result.grad_value(0, 0, j, f) += p[pair] * grad_output(0, 0, i, f);
      for (std::int64_t f = 0; f < d; ++f) {
        result.grad_query(0, 0, i, f) += ds * key(0, 0, j, f);
        result.grad_key(0, 0, j, f) += ds * query(0, 0, i, f);
      }
    }
  }
  return result;
}

}  // namespace cobble::test
