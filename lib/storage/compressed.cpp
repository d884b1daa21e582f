#include "cobble/compressed.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "cobble/error.hpp"
#include "core/checked.hpp"
#include "storage/feature_panels.hpp"

namespace cobble {
namespace {

template <class T>
void require_no_bits(const CsrView<T>& /*matrix*/) {}
template <class T>
void require_no_bits(const BsrView<T>& matrix) {
  if (!matrix.bits.empty()) {
    throw Error(ErrorCode::unsupported,
                "the blocks of features have bits, expected none: every entry of a stored block is stored, 0 where "
                "there is nothing");
  }
}

template <class T>
std::int64_t entries_of(const CsrView<T>& matrix) {
  return matrix.entries();
}
/// Only the last block row and column may be ragged.
template <class T>
std::int64_t entries_of(const BsrView<T>& matrix) {
  std::int64_t entries = 0;
  for (std::int64_t panel = 0; panel < matrix.row_panels(); ++panel) {
    const std::int64_t begin = matrix.block_row_offsets[static_cast<std::size_t>(panel)];
    const std::int64_t end = matrix.block_row_offsets[static_cast<std::size_t>(panel) + 1];
    if (begin == end) continue;
    const std::int64_t height = std::min<std::int64_t>(matrix.block_rows, matrix.rows - panel * matrix.block_rows);
    const std::int64_t last = matrix.block_column_indices[static_cast<std::size_t>(end - 1)];
    const std::int64_t beyond = std::max<std::int64_t>(0, (last + 1) * matrix.block_columns - matrix.columns);
    entries += height * ((end - begin) * matrix.block_columns - beyond);
  }
  return entries;
}

std::string size_text(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

template <class T, class View>
Tensor<T> densified(const CompressedTensorView<View>& tensor) {
  const TensorShape& shape = tensor.shape();
  Tensor<T> result(shape);
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      T* const panel = result.data() + (batch * shape.heads + head) * shape.tokens * shape.features;
      detail::densify_rows(tensor.at(batch, head), 0, shape.tokens, panel, shape.features);
    }
  }
  return result;
}

}  // namespace

template <class View>
TensorShape detail::compressed_shape(std::span<const View> matrices, std::int64_t batch, std::int64_t heads) {
  const std::int64_t expected = checked_product({batch, heads}, "batch x heads");
  if (std::ssize(matrices) != expected) {
    throw Error(
        ErrorCode::shape_mismatch,
        std::to_string(matrices.size()) + " compressed matrices, expected batch x heads = " + std::to_string(expected));
  }
  TensorShape shape{batch, heads, 0, 0};
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const View& matrix = matrices[i];
    const auto number = static_cast<std::int64_t>(i);
    const std::string where = matrices.size() == 1 ? ""
                                                   : "batch entry " + std::to_string(number / heads) + ", head " +
                                                         std::to_string(number % heads) + ": ";
    try {
      validate(matrix);
      require_no_bits(matrix);
    } catch (const Error& error) {
      throw Error(error.code(), where + error.what());
    }
    if (i == 0) {
      shape.tokens = matrix.rows;
      shape.features = matrix.columns;
    } else if (matrix.rows != shape.tokens || matrix.columns != shape.features) {
      throw Error(ErrorCode::shape_mismatch, where + size_text(matrix.rows, matrix.columns) +
                                                 " tokens x features, expected those of the first matrix, " +
                                                 size_text(shape.tokens, shape.features));
    }
  }
  return shape;
}

template <class View>
std::int64_t detail::count_entries(std::span<const View> matrices) {
  std::int64_t entries = 0;
  for (const View& matrix : matrices) entries = checked_sum(entries, entries_of(matrix), "the number of entries");
  return entries;
}

template <class T>
void detail::drop_bits(BsrMatrix<T>& matrix) {
  if (matrix.bits.empty()) return;
  validate(matrix);
  const BsrView<T> view = matrix;
  for (std::int64_t block = 0; block < view.blocks(); ++block) {
    for (std::int64_t row = 0; row < view.block_rows; ++row) {
      for (std::int64_t column = 0; column < view.block_columns; ++column) {
        if (view.bit(block, row, column)) continue;
        matrix.values[static_cast<std::size_t>(block * view.block_area() + row * view.block_columns + column)] = T{0};
      }
    }
  }
  matrix.bits.clear();
}

template <class T>
Tensor<T> to_dense(const CsrTensorView<T>& tensor) {
  return densified<T>(tensor);
}
template <class T>
Tensor<T> to_dense(const BsrTensorView<T>& tensor) {
  return densified<T>(tensor);
}

#define COBBLE_INSTANTIATE(T)                                                                             \
  template TensorShape detail::compressed_shape(std::span<const CsrView<T>>, std::int64_t, std::int64_t); \
  template TensorShape detail::compressed_shape(std::span<const BsrView<T>>, std::int64_t, std::int64_t); \
  template std::int64_t detail::count_entries(std::span<const CsrView<T>>);                               \
  template std::int64_t detail::count_entries(std::span<const BsrView<T>>);                               \
  template void detail::drop_bits(BsrMatrix<T>&);                                                         \
  template Tensor<T> to_dense(const CsrTensorView<T>&);                                                   \
  template Tensor<T> to_dense(const BsrTensorView<T>&);
COBBLE_INSTANTIATE(float)
COBBLE_INSTANTIATE(double)
#undef COBBLE_INSTANTIATE

}  // namespace cobble
