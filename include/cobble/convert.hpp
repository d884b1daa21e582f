#pragma once

#include <cstdint>
#include <vector>

#include "cobble/bsr.hpp"
#include "cobble/coo.hpp"
#include "cobble/csr.hpp"

// Conversions between storages, and transposes. Every function validates its input first and throws what validate()
// throws. T is float or double.

namespace cobble {

/// What to do with entries at the same place.
enum class Duplicates {
  merge,  ///< keep one; values are added up (in the order in which they stand)
  reject  ///< Error{invalid_structure} naming row and column
};

/// What to_csr(CooPattern) met on the way.
struct CanonicalReport {
  std::int64_t duplicates_merged = 0;
  bool sorted_rows = false;  ///< the entries were not in row-major order
};

/// Rows sorted, duplicates merged. O(entries + rows) time and memory: a counting pass for each 11 bits of an index,
/// none when the entries stand in row-major order.
CsrPattern to_csr(const CooPattern& matrix, Duplicates duplicates = Duplicates::merge,
                  CanonicalReport* report = nullptr);
template <class T>
CsrMatrix<T> to_csr(const CooMatrix<T>& matrix, Duplicates duplicates = Duplicates::merge,
                    CanonicalReport* report = nullptr);

CooPattern to_coo(const CsrPatternView& matrix);
template <class T>
CooMatrix<T> to_coo(const CsrView<T>& matrix);
template <class T>
CooMatrix<T> to_coo(const CsrMatrix<T>& matrix) {
  return to_coo(matrix.view());
}

/// The pairs of stored blocks (those whose bit is set, where there are bits), without padding.
CsrPattern to_csr(const BsrPatternView& matrix);
template <class T>
CsrMatrix<T> to_csr(const BsrView<T>& matrix);
template <class T>
CsrMatrix<T> to_csr(const BsrMatrix<T>& matrix) {
  return to_csr(matrix.view());
}

/// Blocks of block_rows x block_columns that hold at least one entry. Bits are kept unless every block is whole
/// (ragged blocks count as whole when all pairs inside the matrix are there). Absent entries have the value 0.
BsrPattern to_bsr(const CsrPatternView& matrix, std::int32_t block_rows, std::int32_t block_columns);
template <class T>
BsrMatrix<T> to_bsr(const CsrView<T>& matrix, std::int32_t block_rows, std::int32_t block_columns);
template <class T>
BsrMatrix<T> to_bsr(const CsrMatrix<T>& matrix, std::int32_t block_rows, std::int32_t block_columns) {
  return to_bsr(matrix.view(), block_rows, block_columns);
}

/// A dense boolean matrix: `data[row * row_stride + column * column_stride]` is not 0 where a pair is. Strides count
/// elements.
struct DenseBooleanView {
  const std::uint8_t* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};
CsrPattern to_csr(const DenseBooleanView& matrix);
/// rows x columns bytes in C order, 1 where a pair is. Throws Error{overflow} when that does not fit.
std::vector<std::uint8_t> to_dense_boolean(const CsrPatternView& matrix);

CsrPattern transpose(const CsrPatternView& matrix);
template <class T>
CsrMatrix<T> transpose(const CsrView<T>& matrix);
template <class T>
CsrMatrix<T> transpose(const CsrMatrix<T>& matrix) {
  return transpose(matrix.view());
}
/// Block sizes are exchanged and each block is transposed.
BsrPattern transpose(const BsrPatternView& matrix);
template <class T>
BsrMatrix<T> transpose(const BsrView<T>& matrix);
template <class T>
BsrMatrix<T> transpose(const BsrMatrix<T>& matrix) {
  return transpose(matrix.view());
}

}  // namespace cobble
