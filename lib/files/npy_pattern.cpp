#include "files/npy_pattern.hpp"

#include <algorithm>
#include <vector>

#include "cobble/error.hpp"
#include "files/npy.hpp"

namespace cobble::detail {
namespace {

NpyArray parse_matrix(std::span<const std::byte> bytes, const std::string& path) {
  NpyArray array = parse_npy(bytes, {path, {}});
  if (array.header.shape.size() != 2) {
    array.fail("found an array of shape " + shape_text(array.header.shape) + ", expected a matrix: 2 axes");
  }
  return array;
}

}  // namespace

FileEntries read_dense_npy(std::span<const std::byte> bytes, const std::string& path, ValuesWanted wanted) {
  const NpyArray array = parse_matrix(bytes, path);
  FileEntries result;
  CooMatrix<double>& entries = result.entries;
  entries.rows = array.header.shape[0];
  entries.columns = array.header.shape[1];
  require_plausible_sizes(entries.rows, entries.columns, bytes.size(), path, 0, 0);
  const std::vector<std::uint8_t> nonzeros = to_nonzeros(array);
  std::vector<double> values;
  if (wanted == ValuesWanted::exact) {
    values.resize(nonzeros.size());
    to_reals(array, values.data());
  }
  const auto count = static_cast<std::size_t>(std::count(nonzeros.begin(), nonzeros.end(), std::uint8_t{1}));
  entries.row_indices.reserve(count);
  entries.column_indices.reserve(count);
  const std::vector<std::int64_t> strides = npy_strides(array.header);
  for (std::int64_t row = 0; row < entries.rows; ++row) {
    for (std::int64_t column = 0; column < entries.columns; ++column) {
      const auto at = static_cast<std::size_t>(row * strides[0] + column * strides[1]);
      if (nonzeros[at] == 0) continue;
      entries.row_indices.push_back(static_cast<std::int32_t>(row));
      entries.column_indices.push_back(static_cast<std::int32_t>(column));
      if (wanted != ValuesWanted::none) entries.values.push_back(values.empty() ? 1.0 : values[at]);
    }
  }
  return result;
}

FileEntries read_padded_lists(std::span<const std::byte> bytes, const std::string& path, std::int64_t columns,
                              ValuesWanted wanted) {
  if (columns < 0) {
    throw Error(ErrorCode::invalid_argument, "list_columns = " + std::to_string(columns) +
                                                 ", expected a number of columns, or 0 for as many as rows");
  }
  const NpyArray array = parse_matrix(bytes, path);
  FileEntries result;
  CooMatrix<double>& entries = result.entries;
  entries.rows = array.header.shape[0];
  entries.columns = columns == 0 ? entries.rows : columns;
  const std::int64_t per_row = array.header.shape[1];
  require_plausible_sizes(entries.rows, entries.rows, bytes.size(), path, 0, 0);
  require_plausible_sizes(0, per_row, bytes.size(), path, 0, 0);
  if (entries.columns > 2147483647) {
    throw Error(ErrorCode::invalid_argument,
                "list_columns = " + std::to_string(columns) + ", expected at most 2147483647");
  }
  const std::vector<std::int64_t> lists = to_integers(array);
  const std::vector<std::int64_t> strides = npy_strides(array.header);
  for (std::int64_t row = 0; row < entries.rows; ++row) {
    for (std::int64_t k = 0; k < per_row; ++k) {
      const std::int64_t column = lists[static_cast<std::size_t>(row * strides[0] + k * strides[1])];
      if (column == -1) continue;
      if (column < 0 || column >= entries.columns) {
        array.fail("list[" + std::to_string(row) + ", " + std::to_string(k) + "] = " + std::to_string(column) +
                   ", expected -1 or a column in [0, " + std::to_string(entries.columns) + ")");
      }
      entries.row_indices.push_back(static_cast<std::int32_t>(row));
      entries.column_indices.push_back(static_cast<std::int32_t>(column));
    }
  }
  if (wanted != ValuesWanted::none) entries.values.assign(static_cast<std::size_t>(entries.entries()), 1.0);
  return result;
}

}  // namespace cobble::detail
