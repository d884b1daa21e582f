#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cobble/compressed.hpp"
#include "cobble/error.hpp"
#include "core/checked.hpp"
#include "storage/allocate.hpp"

namespace cobble {
namespace {

void require_count(std::int64_t k, std::int64_t most, const char* what) {
  if (k < 1 || k > most) {
    throw Error(ErrorCode::invalid_argument,
                "k = " + std::to_string(k) + ", expected 1 to the number of " + what + ", " + std::to_string(most));
  }
}

void require_sizes(const TensorShape& shape) {
  static_cast<void>(shape.size());
  static_cast<void>(checked_index(shape.tokens, "tokens"));
  static_cast<void>(checked_index(shape.features, "features"));
}

/// What is compared: NaN above infinity.
template <class T>
T magnitude(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::infinity() : std::abs(value);
}

/// The numbers of the k largest in ascending order, those with lower numbers first among equals. `numbers` is scratch.
template <class IsLarger>
void select_largest(std::int64_t k, std::vector<std::int32_t>& numbers, IsLarger is_larger) {
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto end = numbers.begin() + k;
  std::nth_element(numbers.begin(), end - 1, numbers.end(), [&](std::int32_t a, std::int32_t b) {
    if (is_larger(a, b)) return true;
    if (is_larger(b, a)) return false;
    return a < b;
  });
  std::sort(numbers.begin(), end);
}

/// Whether a stands before b among the largest: NaN first.
template <class T>
bool is_larger(T a, T b) {
  if (std::isnan(a) != std::isnan(b)) return std::isnan(a);
  return magnitude(a) > magnitude(b);
}

/// Calls make(batch, head) for each matrix.
template <class Matrix, class Make>
CompressedTensor<Matrix> for_each_matrix(const TensorShape& shape, Make make) {
  std::vector<Matrix> matrices;
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (std::int64_t head = 0; head < shape.heads; ++head) matrices.push_back(make(batch, head));
  }
  return {std::move(matrices), shape.batch, shape.heads};
}

}  // namespace

template <class T>
CsrTensor<T> compress_top_k(const TensorView<const T>& tensor, std::int64_t k) {
  const TensorShape& shape = tensor.shape();
  require_sizes(shape);
  require_count(k, shape.features, "features");
  std::vector<std::int32_t> features(static_cast<std::size_t>(shape.features));
  return for_each_matrix<CsrMatrix<T>>(shape, [&](std::int64_t batch, std::int64_t head) {
    CsrMatrix<T> matrix;
    matrix.rows = shape.tokens;
    matrix.columns = shape.features;
    matrix.column_indices = allocate_vector<std::int32_t>({shape.tokens, k}, "column_indices");
    matrix.values = allocate_vector<T>({shape.tokens, k}, "values");
    std::size_t entry = 0;
    for (std::int64_t token = 0; token < shape.tokens; ++token) {
      const auto value = [&](std::int32_t feature) { return tensor(batch, head, token, feature); };
      select_largest(k, features, [&](std::int32_t a, std::int32_t b) { return is_larger(value(a), value(b)); });
      for (std::int64_t i = 0; i < k; ++i, ++entry) {
        const std::int32_t feature = features[static_cast<std::size_t>(i)];
        matrix.column_indices[entry] = feature;
        matrix.values[entry] = value(feature);
      }
      matrix.row_offsets.push_back((token + 1) * k);
    }
    return matrix;
  });
}

template <class T>
CsrTensor<T> compress_threshold(const TensorView<const T>& tensor, T threshold) {
  const TensorShape& shape = tensor.shape();
  require_sizes(shape);
  if (!(threshold >= 0)) {
    throw Error(ErrorCode::invalid_argument, "threshold = " + std::to_string(threshold) + ", expected at least 0");
  }
  return for_each_matrix<CsrMatrix<T>>(shape, [&](std::int64_t batch, std::int64_t head) {
    CsrMatrix<T> matrix;
    matrix.rows = shape.tokens;
    matrix.columns = shape.features;
    for (std::int64_t token = 0; token < shape.tokens; ++token) {
      for (std::int64_t feature = 0; feature < shape.features; ++feature) {
        const T value = tensor(batch, head, token, feature);
        if (std::abs(value) <= threshold) continue;  // false for NaN
        matrix.column_indices.push_back(static_cast<std::int32_t>(feature));
        matrix.values.push_back(value);
      }
      matrix.row_offsets.push_back(static_cast<std::int64_t>(matrix.column_indices.size()));
    }
    return matrix;
  });
}

template <class T>
BsrTensor<T> compress_top_k_blocks(const TensorView<const T>& tensor, std::int64_t k, std::int32_t block_rows,
                                   std::int32_t block_columns) {
  const TensorShape& shape = tensor.shape();
  require_sizes(shape);
  if (block_rows < 1 || block_columns < 1) {
    throw Error(ErrorCode::invalid_argument, "blocks of " + std::to_string(block_rows) + " x " +
                                                 std::to_string(block_columns) + ", expected at least 1 x 1");
  }
  const std::int64_t block_row_count = divide_up(shape.tokens, block_rows);
  const std::int64_t block_column_count = divide_up(shape.features, block_columns);
  require_count(k, block_column_count, "block columns");
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(block_column_count));
  std::vector<double> squares(blocks.size());

  return for_each_matrix<BsrMatrix<T>>(shape, [&](std::int64_t batch, std::int64_t head) {
    BsrMatrix<T> matrix;
    matrix.rows = shape.tokens;
    matrix.columns = shape.features;
    matrix.block_rows = block_rows;
    matrix.block_columns = block_columns;
    matrix.values = allocate_vector<T>({block_row_count, k, block_rows, block_columns}, "values");
    std::size_t first_entry = 0;
    for (std::int64_t first_token = 0; first_token < shape.tokens; first_token += block_rows) {
      const std::int64_t height = std::min<std::int64_t>(block_rows, shape.tokens - first_token);
      std::fill(squares.begin(), squares.end(), 0.0);
      for (std::int64_t row = 0; row < height; ++row) {
        for (std::int64_t feature = 0; feature < shape.features; ++feature) {
          const auto value = static_cast<double>(tensor(batch, head, first_token + row, feature));
          squares[static_cast<std::size_t>(feature / block_columns)] += value * value;
        }
      }
      const auto square = [&](std::int32_t block) { return squares[static_cast<std::size_t>(block)]; };
      select_largest(k, blocks, [&](std::int32_t a, std::int32_t b) { return is_larger(square(a), square(b)); });
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int32_t block = blocks[static_cast<std::size_t>(i)];
        const std::int64_t first_feature = std::int64_t{block} * block_columns;
        const std::int64_t width = std::min<std::int64_t>(block_columns, shape.features - first_feature);
        matrix.block_column_indices.push_back(block);
        for (std::int64_t row = 0; row < height; ++row) {
          for (std::int64_t column = 0; column < width; ++column) {
            matrix.values[first_entry + static_cast<std::size_t>(row * block_columns + column)] =
                tensor(batch, head, first_token + row, first_feature + column);
          }
        }
        first_entry += static_cast<std::size_t>(block_rows) * static_cast<std::size_t>(block_columns);
      }
      matrix.block_row_offsets.push_back(static_cast<std::int64_t>(matrix.block_column_indices.size()));
    }
    return matrix;
  });
}

#define COBBLE_INSTANTIATE(T)                                                     \
  template CsrTensor<T> compress_top_k(const TensorView<const T>&, std::int64_t); \
  template CsrTensor<T> compress_threshold(const TensorView<const T>&, T);        \
  template BsrTensor<T> compress_top_k_blocks(const TensorView<const T>&, std::int64_t, std::int32_t, std::int32_t);
COBBLE_INSTANTIATE(float)
COBBLE_INSTANTIATE(double)
#undef COBBLE_INSTANTIATE

}  // namespace cobble
