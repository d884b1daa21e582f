#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <string>

#include "cobble/bsr.hpp"
#include "cobble/coo.hpp"
#include "cobble/csr.hpp"
#include "core/checked.hpp"
#include "storage/bit_range.hpp"

namespace cobble {
namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorCode::invalid_structure, message); }

/// "name[index] = value"
template <class Array>
std::string element(const std::string& name, const Array& array, std::int64_t index) {
  return name + "[" + std::to_string(index) + "] = " + std::to_string(array[static_cast<std::size_t>(index)]);
}

/// What the arrays of a compressed storage are called in messages.
struct Names {
  std::string row, rows, offsets, indices;
};

const Names kCsrNames{"row", "rows", "row_offsets", "column_indices"};
const Names kBsrNames{"block row", "block rows", "block_row_offsets", "block_column_indices"};

/// After this, every slice of `indices` that the offsets describe is inside it.
void validate_offsets(std::int64_t rows, std::span<const std::int64_t> offsets, std::size_t entries,
                      const Names& names) {
  if (offsets.size() != static_cast<std::size_t>(rows) + 1) {
    fail(names.offsets + " has " + std::to_string(offsets.size()) + " entries, expected " + names.rows +
         " + 1 = " + std::to_string(rows + 1));
  }
  if (offsets[0] != 0) fail(element(names.offsets, offsets, 0) + ", expected 0");
  for (std::int64_t row = 1; row <= rows; ++row) {
    const auto index = static_cast<std::size_t>(row);
    if (offsets[index] < offsets[index - 1]) {
      fail(element(names.offsets, offsets, row) + " is less than " + element(names.offsets, offsets, row - 1));
    }
  }
  if (offsets.back() != static_cast<std::int64_t>(entries)) {
    fail(element(names.offsets, offsets, rows) + ", expected the size of " + names.indices + ", " +
         std::to_string(entries));
  }
}

void validate_row(std::int64_t row, std::int64_t begin, std::int64_t end, std::int64_t columns,
                  std::span<const std::int32_t> indices, const Names& names) {
  std::int64_t previous = -1;
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int32_t column = indices[static_cast<std::size_t>(k)];
    if (column > previous && column < columns) {
      previous = column;
      continue;
    }
    const std::string where = element(names.indices, indices, k) + " in " + names.row + " " + std::to_string(row);
    if (column < 0 || column >= columns) fail(where + " is outside [0, " + std::to_string(columns) + ")");
    fail(where + (column == previous ? " repeats " : " comes after ") + element(names.indices, indices, k - 1) +
         "; columns must increase within a row");
  }
}

void validate_compressed(std::int64_t rows, std::int64_t columns, std::span<const std::int64_t> offsets,
                         std::span<const std::int32_t> indices, const Names& names) {
  validate_offsets(rows, offsets, indices.size(), names);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto index = static_cast<std::size_t>(row);
    validate_row(row, offsets[index], offsets[index + 1], columns, indices, names);
  }
}

void validate_sizes(std::int64_t rows, std::int64_t columns) {
  static_cast<void>(checked_index(rows, "rows"));
  static_cast<void>(checked_index(columns, "columns"));
}

void validate_size_of(const std::string& name, std::size_t found, std::int64_t expected, const std::string& why) {
  if (static_cast<std::int64_t>(found) != expected) {
    fail(name + " has " + std::to_string(found) + " entries, expected " + why + " = " + std::to_string(expected));
  }
}

[[noreturn]] void fail_bit(std::int64_t block, std::int64_t row, std::int64_t column, const std::string& where) {
  fail("bits of block " + std::to_string(block) + ": pair (" + std::to_string(row) + ", " + std::to_string(column) +
       ") of the block is set but lies " + where);
}

/// The bits of one block of which only `height` x `width` pairs are inside the matrix.
void validate_block_bits(const BsrPatternView& matrix, std::int64_t block, std::int64_t height, std::int64_t width) {
  const std::int64_t words = matrix.words_per_block();
  const auto bits = matrix.bits.subspan(static_cast<std::size_t>(block * words), static_cast<std::size_t>(words));
  if (count_bits(bits, matrix.block_area(), words * 64 - matrix.block_area()) != 0) {
    fail("bits of block " + std::to_string(block) + " are set beyond its " + std::to_string(matrix.block_rows) + " x " +
         std::to_string(matrix.block_columns) + " pairs");
  }
  if (height == matrix.block_rows && width == matrix.block_columns) return;
  for_each_set_bit(bits, 0, matrix.block_area(), [&](std::int64_t index) {
    const std::int64_t row = index / matrix.block_columns;
    const std::int64_t column = index % matrix.block_columns;
    if (row >= height) fail_bit(block, row, column, "below the last row");
    if (column >= width) fail_bit(block, row, column, "right of the last column");
  });
}

void validate_bits(const BsrPatternView& matrix) {
  if (matrix.bits.empty()) return;
  validate_size_of("bits", matrix.bits.size(),
                   checked_product({matrix.blocks(), matrix.words_per_block()}, "the size of bits"),
                   "blocks x words per block");
  for (std::int64_t panel = 0; panel < matrix.row_panels(); ++panel) {
    const std::int64_t height = std::min<std::int64_t>(matrix.block_rows, matrix.rows - panel * matrix.block_rows);
    const auto index = static_cast<std::size_t>(panel);
    for (std::int64_t block = matrix.block_row_offsets[index]; block < matrix.block_row_offsets[index + 1]; ++block) {
      const std::int64_t column_panel = matrix.block_column_indices[static_cast<std::size_t>(block)];
      const std::int64_t width =
          std::min<std::int64_t>(matrix.block_columns, matrix.columns - column_panel * matrix.block_columns);
      validate_block_bits(matrix, block, height, width);
    }
  }
}

template <class T>
void validate_with_values(const CsrView<T>& matrix) {
  validate(static_cast<const CsrPatternView&>(matrix));
  validate_size_of("values", matrix.values.size(), matrix.entries(), "the size of column_indices");
}

template <class T>
void validate_with_values(const BsrView<T>& matrix) {
  validate(static_cast<const BsrPatternView&>(matrix));
  validate_size_of("values", matrix.values.size(),
                   checked_product({matrix.blocks(), matrix.block_area()}, "the size of values"),
                   "blocks x block rows x block columns");
}

void validate_indices(const std::vector<std::int32_t>& indices, std::int64_t bound, const std::string& name) {
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(indices.size()); ++k) {
    const std::int32_t index = indices[static_cast<std::size_t>(k)];
    if (index < 0 || index >= bound) {
      fail(element(name, indices, k) + " is outside [0, " + std::to_string(bound) + ")");
    }
  }
}

template <class T>
void validate_with_values(const CooMatrix<T>& matrix) {
  validate(static_cast<const CooPattern&>(matrix));
  validate_size_of("values", matrix.values.size(), matrix.entries(), "the size of row_indices");
}

}  // namespace

void validate(const CsrPatternView& matrix) {
  validate_sizes(matrix.rows, matrix.columns);
  validate_compressed(matrix.rows, matrix.columns, matrix.row_offsets, matrix.column_indices, kCsrNames);
}
void validate(const CsrView<float>& matrix) { validate_with_values(matrix); }
void validate(const CsrView<double>& matrix) { validate_with_values(matrix); }

void validate(const BsrPatternView& matrix) {
  validate_sizes(matrix.rows, matrix.columns);
  if (matrix.block_rows < 1 || matrix.block_columns < 1) {
    throw Error(ErrorCode::invalid_argument, "blocks of " + std::to_string(matrix.block_rows) + " x " +
                                                 std::to_string(matrix.block_columns) + ", expected at least 1 x 1");
  }
  validate_compressed(matrix.row_panels(), matrix.column_panels(), matrix.block_row_offsets,
                      matrix.block_column_indices, kBsrNames);
  validate_bits(matrix);
}
void validate(const BsrView<float>& matrix) { validate_with_values(matrix); }
void validate(const BsrView<double>& matrix) { validate_with_values(matrix); }

void validate(const CooPattern& matrix) {
  validate_sizes(matrix.rows, matrix.columns);
  validate_size_of("column_indices", matrix.column_indices.size(), matrix.entries(), "the size of row_indices");
  validate_indices(matrix.row_indices, matrix.rows, "row_indices");
  validate_indices(matrix.column_indices, matrix.columns, "column_indices");
}
void validate(const CooMatrix<float>& matrix) { validate_with_values(matrix); }
void validate(const CooMatrix<double>& matrix) { validate_with_values(matrix); }

}  // namespace cobble
