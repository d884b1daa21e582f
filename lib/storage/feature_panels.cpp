#include "storage/feature_panels.hpp"

#include <algorithm>
#include <cstddef>

namespace cobble::detail {
namespace {

/// Calls visit(row - row_begin, feature, entry) for every stored entry, `entry` its place among the values.
template <class Visit>
void for_each_entry(const CsrPatternView& matrix, std::int64_t row_begin, std::int64_t row_end, Visit visit) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const std::int64_t end = matrix.row_offsets[static_cast<std::size_t>(row) + 1];
    for (std::int64_t k = matrix.row_offsets[static_cast<std::size_t>(row)]; k < end; ++k) {
      visit(row - row_begin, std::int64_t{matrix.column_indices[static_cast<std::size_t>(k)]}, k);
    }
  }
}

template <class Visit>
void for_each_entry(const BsrPatternView& matrix, std::int64_t row_begin, std::int64_t row_end, Visit visit) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const auto panel = static_cast<std::size_t>(row / matrix.block_rows);
    const std::int64_t row_in_block = row % matrix.block_rows;
    for (std::int64_t block = matrix.block_row_offsets[panel]; block < matrix.block_row_offsets[panel + 1]; ++block) {
      const std::int64_t first =
          std::int64_t{matrix.block_column_indices[static_cast<std::size_t>(block)]} * matrix.block_columns;
      const std::int64_t width = std::min<std::int64_t>(matrix.block_columns, matrix.columns - first);
      const std::int64_t entry = block * matrix.block_area() + row_in_block * matrix.block_columns;
      for (std::int64_t c = 0; c < width; ++c) visit(row - row_begin, first + c, entry + c);
    }
  }
}

template <class Matrix, class T>
void densify(const Matrix& matrix, std::int64_t row_begin, std::int64_t row_end, T* panel, std::int64_t stride) {
  for (std::int64_t row = 0; row < row_end - row_begin; ++row) std::fill_n(panel + row * stride, matrix.columns, T{0});
  const T* values = matrix.values.data();
  for_each_entry(matrix, row_begin, row_end, [&](std::int64_t row, std::int64_t feature, std::int64_t entry) {
    panel[row * stride + feature] = values[entry];
  });
}

template <class Matrix, class T>
void densify_transposed(const Matrix& matrix, std::int64_t row_begin, std::int64_t row_end, T* panel,
                        std::int64_t stride) {
  for (std::int64_t feature = 0; feature < matrix.columns; ++feature) {
    std::fill_n(panel + feature * stride, row_end - row_begin, T{0});
  }
  const T* values = matrix.values.data();
  for_each_entry(matrix, row_begin, row_end, [&](std::int64_t row, std::int64_t feature, std::int64_t entry) {
    panel[feature * stride + row] = values[entry];
  });
}

template <class Matrix, class T>
void gather(const Matrix& matrix, std::int64_t row_begin, std::int64_t row_end, const T* panel, std::int64_t stride,
            T* values) {
  for_each_entry(matrix, row_begin, row_end, [&](std::int64_t row, std::int64_t feature, std::int64_t entry) {
    values[entry] = panel[row * stride + feature];
  });
}

}  // namespace

template <class T>
void densify_rows(const CsrView<T>& matrix, std::int64_t row_begin, std::int64_t row_end, T* panel,
                  std::int64_t stride) {
  densify(matrix, row_begin, row_end, panel, stride);
}
template <class T>
void densify_rows(const BsrView<T>& matrix, std::int64_t row_begin, std::int64_t row_end, T* panel,
                  std::int64_t stride) {
  densify(matrix, row_begin, row_end, panel, stride);
}

template <class T>
void densify_rows_transposed(const CsrView<T>& matrix, std::int64_t row_begin, std::int64_t row_end, T* panel,
                             std::int64_t stride) {
  densify_transposed(matrix, row_begin, row_end, panel, stride);
}
template <class T>
void densify_rows_transposed(const BsrView<T>& matrix, std::int64_t row_begin, std::int64_t row_end, T* panel,
                             std::int64_t stride) {
  densify_transposed(matrix, row_begin, row_end, panel, stride);
}

template <class T>
void gather_rows(const CsrPatternView& matrix, std::int64_t row_begin, std::int64_t row_end, const T* panel,
                 std::int64_t stride, T* values) {
  gather(matrix, row_begin, row_end, panel, stride, values);
}
template <class T>
void gather_rows(const BsrPatternView& matrix, std::int64_t row_begin, std::int64_t row_end, const T* panel,
                 std::int64_t stride, T* values) {
  gather(matrix, row_begin, row_end, panel, stride, values);
}

#define COBBLE_INSTANTIATE(T)                                                                               \
  template void densify_rows(const CsrView<T>&, std::int64_t, std::int64_t, T*, std::int64_t);              \
  template void densify_rows(const BsrView<T>&, std::int64_t, std::int64_t, T*, std::int64_t);              \
  template void densify_rows_transposed(const CsrView<T>&, std::int64_t, std::int64_t, T*, std::int64_t);   \
  template void densify_rows_transposed(const BsrView<T>&, std::int64_t, std::int64_t, T*, std::int64_t);   \
  template void gather_rows(const CsrPatternView&, std::int64_t, std::int64_t, const T*, std::int64_t, T*); \
  template void gather_rows(const BsrPatternView&, std::int64_t, std::int64_t, const T*, std::int64_t, T*);
COBBLE_INSTANTIATE(float)
COBBLE_INSTANTIATE(double)
#undef COBBLE_INSTANTIATE

}  // namespace cobble::detail
