#include <cstddef>
#include <string>
#include <vector>

#include "cobble/convert.hpp"
#include "core/checked.hpp"
#include "storage/allocate.hpp"

namespace cobble {

CsrPattern to_csr(const DenseBooleanView& matrix) {
  static_cast<void>(checked_index(matrix.rows, "rows"));
  static_cast<void>(checked_index(matrix.columns, "columns"));
  if (matrix.data == nullptr && matrix.rows > 0 && matrix.columns > 0) {
    throw Error(ErrorCode::invalid_argument, "data is null, expected " + std::to_string(matrix.rows) + " x " +
                                                 std::to_string(matrix.columns) + " elements");
  }
  CsrPattern result;
  result.rows = matrix.rows;
  result.columns = matrix.columns;
  result.row_offsets = allocate_vector<std::int64_t>({matrix.rows + 1}, "row_offsets");
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return matrix.data[row * matrix.row_stride + column * matrix.column_stride];
  };
  std::int64_t entries = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t column = 0; column < matrix.columns; ++column) entries += at(row, column) != 0 ? 1 : 0;
    result.row_offsets[static_cast<std::size_t>(row) + 1] = entries;
  }
  result.column_indices = allocate_vector<std::int32_t>({entries}, "column_indices");
  std::size_t next = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t column = 0; column < matrix.columns; ++column) {
      if (at(row, column) != 0) result.column_indices[next++] = static_cast<std::int32_t>(column);
    }
  }
  return result;
}

std::vector<std::uint8_t> to_dense_boolean(const CsrPatternView& matrix) {
  validate(matrix);
  auto dense = allocate_vector<std::uint8_t>({matrix.rows, matrix.columns}, "a dense boolean matrix");
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (const std::int32_t column : matrix.row(row))
      dense[static_cast<std::size_t>(row * matrix.columns + column)] = 1;
  }
  return dense;
}

}  // namespace cobble
