#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "cobble/convert.hpp"
#include "storage/allocate.hpp"
#include "storage/bit_range.hpp"

namespace cobble {
namespace {

/// Transposes compressed rows by counting and calls move(from, to) for every entry.
template <class Move>
void transpose_compressed(std::int64_t rows, std::int64_t columns, std::span<const std::int64_t> offsets,
                          std::span<const std::int32_t> indices, std::vector<std::int64_t>& transposed_offsets,
                          std::vector<std::int32_t>& transposed_indices, Move move) {
  transposed_offsets = allocate_vector<std::int64_t>({columns + 1}, "row_offsets of the transpose");
  transposed_indices = allocate_vector<std::int32_t>({static_cast<std::int64_t>(indices.size())}, "column_indices");
  for (const std::int32_t column : indices) ++transposed_offsets[static_cast<std::size_t>(column) + 1];
  std::partial_sum(transposed_offsets.begin(), transposed_offsets.end(), transposed_offsets.begin());
  // Filling moves each offset on to the end of its row, which is where the next row begins.
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto end = static_cast<std::size_t>(offsets[static_cast<std::size_t>(row) + 1]);
    for (auto from = static_cast<std::size_t>(offsets[static_cast<std::size_t>(row)]); from < end; ++from) {
      const auto to = static_cast<std::size_t>(transposed_offsets[static_cast<std::size_t>(indices[from])]++);
      transposed_indices[to] = static_cast<std::int32_t>(row);
      move(from, to);
    }
  }
  transposed_offsets.insert(transposed_offsets.begin(), 0);
  transposed_offsets.pop_back();
}

template <class Move>
void transpose_structure(const CsrPatternView& matrix, CsrPattern& result, Move move) {
  result.rows = matrix.columns;
  result.columns = matrix.rows;
  transpose_compressed(matrix.rows, matrix.columns, matrix.row_offsets, matrix.column_indices, result.row_offsets,
                       result.column_indices, move);
}

/// Transposes blocks and their bits and calls move(from, to) for every block.
template <class Move>
void transpose_structure(const BsrPatternView& matrix, BsrPattern& result, Move move) {
  result.rows = matrix.columns;
  result.columns = matrix.rows;
  result.block_rows = matrix.block_columns;
  result.block_columns = matrix.block_rows;
  result.bits = allocate_vector<std::uint64_t>({static_cast<std::int64_t>(matrix.bits.size())}, "bits");
  const auto words = static_cast<std::size_t>(matrix.words_per_block());
  const auto transpose_bits = [&](std::size_t from, std::size_t to) {
    const std::span<std::uint64_t> target = std::span(result.bits).subspan(to * words, words);
    for_each_set_bit(matrix.bits.subspan(from * words, words), 0, matrix.block_area(), [&](std::int64_t index) {
      const std::int64_t row = index / matrix.block_columns;
      const std::int64_t column = index % matrix.block_columns;
      set_bit(target, column * matrix.block_rows + row);
    });
  };
  transpose_compressed(matrix.row_panels(), matrix.column_panels(), matrix.block_row_offsets,
                       matrix.block_column_indices, result.block_row_offsets, result.block_column_indices,
                       [&](std::size_t from, std::size_t to) {
                         if (!matrix.bits.empty()) transpose_bits(from, to);
                         move(from, to);
                       });
}

constexpr auto kNothing = [](std::size_t /*from*/, std::size_t /*to*/) {};

}  // namespace

CsrPattern transpose(const CsrPatternView& matrix) {
  validate(matrix);
  CsrPattern result;
  transpose_structure(matrix, result, kNothing);
  return result;
}
template <class T>
CsrMatrix<T> transpose(const CsrView<T>& matrix) {
  validate(matrix);
  CsrMatrix<T> result;
  result.values = allocate_vector<T>({matrix.entries()}, "values");
  transpose_structure(matrix, result,
                      [&](std::size_t from, std::size_t to) { result.values[to] = matrix.values[from]; });
  return result;
}
template CsrMatrix<float> transpose(const CsrView<float>&);
template CsrMatrix<double> transpose(const CsrView<double>&);

BsrPattern transpose(const BsrPatternView& matrix) {
  validate(matrix);
  BsrPattern result;
  transpose_structure(matrix, result, kNothing);
  return result;
}
template <class T>
BsrMatrix<T> transpose(const BsrView<T>& matrix) {
  validate(matrix);
  BsrMatrix<T> result;
  result.values = allocate_vector<T>({matrix.blocks(), matrix.block_area()}, "values");
  const auto area = static_cast<std::size_t>(matrix.block_area());
  const auto block_rows = static_cast<std::size_t>(matrix.block_rows);
  const auto block_columns = static_cast<std::size_t>(matrix.block_columns);
  transpose_structure(matrix, result, [&](std::size_t from, std::size_t to) {
    const T* source = matrix.values.data() + from * area;
    T* target = result.values.data() + to * area;
    for (std::size_t row = 0; row < block_rows; ++row) {
      for (std::size_t column = 0; column < block_columns; ++column) {
        target[column * block_rows + row] = source[row * block_columns + column];
      }
    }
  });
  return result;
}
template BsrMatrix<float> transpose(const BsrView<float>&);
template BsrMatrix<double> transpose(const BsrView<double>&);

}  // namespace cobble
