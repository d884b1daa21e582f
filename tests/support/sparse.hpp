#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cobble/csr.hpp"
#include "support/random.hpp"

// Sparse matrices and their plain dense counterparts.

namespace cobble::test {

/// Rows x columns, of a matrix or a block.
struct Size {
  std::int32_t rows;
  std::int32_t columns;
};

inline std::string to_string(Size size) { return std::to_string(size.rows) + " x " + std::to_string(size.columns); }

/// Each pair with probability `density`, values in [1, 2); `empty_rows` of each 4 rows are left empty.
template <class T>
CsrMatrix<T> random_csr(Random& random, std::int64_t rows, std::int64_t columns, double density, int empty_rows = 0) {
  CsrMatrix<T> matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns && row % 4 >= empty_rows; ++column) {
      if (random.uniform() >= density) continue;
      matrix.column_indices.push_back(static_cast<std::int32_t>(column));
      matrix.values.push_back(static_cast<T>(1 + random.uniform()));
    }
    matrix.row_offsets.push_back(static_cast<std::int64_t>(matrix.column_indices.size()));
  }
  return matrix;
}

/// In C order, 0 where no entry is.
template <class T>
std::vector<T> dense_of(const CsrView<T>& matrix) {
  std::vector<T> dense(static_cast<std::size_t>(matrix.rows * matrix.columns));
  std::size_t entry = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (const std::int32_t column : matrix.row(row)) {
      dense[static_cast<std::size_t>(row * matrix.columns + column)] = matrix.values[entry++];
    }
  }
  return dense;
}
template <class T>
std::vector<T> dense_of(const CsrMatrix<T>& matrix) {
  return dense_of(matrix.view());
}

/// Rows x columns in C order, turned around.
template <class T>
std::vector<T> transposed(const std::vector<T>& dense, std::int64_t rows, std::int64_t columns) {
  std::vector<T> result(dense.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      result[static_cast<std::size_t>(column * rows + row)] = dense[static_cast<std::size_t>(row * columns + column)];
    }
  }
  return result;
}

}  // namespace cobble::test
