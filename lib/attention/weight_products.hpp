#pragma once

#include <algorithm>

#include "cobble/tensor.hpp"
#include "kernels/tile_kernels.hpp"
#include "plan/walk.hpp"

// Products with the weights of the parameter gradients. Matrices are one head of a tensor, with any strides.

namespace cobble::detail {

/// One head of a tensor: rows x features.
template <class T>
struct HeadMatrix {
  T* data = nullptr;
  std::int64_t row_distance = 0;
  std::int64_t feature_distance = 1;

  T* at(std::int64_t row, std::int64_t feature) const noexcept {
    return data + row * row_distance + feature * feature_distance;
  }
};

template <class T>
HeadMatrix<T> head_matrix(const TensorView<T>& tensor, std::int64_t batch, std::int64_t head) {
  return {tensor.row(batch, head, 0), tensor.strides().tokens, tensor.strides().features};
}

/// y += alpha x over `count` elements.
template <class T>
void add_scaled(std::int64_t count, T alpha, const T* x, std::int64_t x_distance, T* y, std::int64_t y_distance) {
  if (x_distance == 1 && y_distance == 1) return kernels::tile_kernels<T>().axpy(count, alpha, x, y);
  for (std::int64_t i = 0; i < count; ++i) y[i * y_distance] += alpha * x[i * x_distance];
}

template <class T>
void set_zero(const HeadMatrix<T>& matrix, Range rows, Range features) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    if (matrix.feature_distance == 1) {
      std::fill(matrix.at(row, features.begin), matrix.at(row, features.end), T{0});
      continue;
    }
    for (std::int64_t f = features.begin; f < features.end; ++f) *matrix.at(row, f) = T{0};
  }
}

/// result[rows, outer] += input[rows, inner] weights[inner, outer]
template <class T>
void add_projection(const HeadMatrix<const T>& input, const HeadMatrix<const T>& weights, const HeadMatrix<T>& result,
                    Range rows, Range inner, Range outer) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t a = inner.begin; a < inner.end; ++a) {
      add_scaled<T>(outer.size(), *input.at(row, a), weights.at(a, outer.begin), weights.feature_distance,
                    result.at(row, outer.begin), result.feature_distance);
    }
  }
}

/// weights[all inner, outer] += input[rows, all inner]^T sums[rows, outer]; sums.at(row, feature) counts as the tensors
/// do.
template <class T>
void add_fold(const HeadMatrix<const T>& input, const HeadMatrix<const T>& sums, const HeadMatrix<T>& weights,
              Range rows, std::int64_t inner, Range outer) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t a = 0; a < inner; ++a) {
      add_scaled<T>(outer.size(), *input.at(row, a), sums.at(row, outer.begin), sums.feature_distance,
                    weights.at(a, outer.begin), weights.feature_distance);
    }
  }
}

}  // namespace cobble::detail
