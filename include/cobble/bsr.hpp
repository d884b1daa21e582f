#pragma once

#include <cstdint>
#include <span>
#include <vector>

// Block-sparse rows: blocks of block_rows x block_columns, the last of each axis ragged when the size is no multiple.
// As with CSR, Pattern types hold no values.
//
// A block's `bits` are optional. Without them every pair of a stored block takes part. With them there are
// words_per_block() words a block; bit (r * block_columns + c) % 64 of word (r * block_columns + c) / 64 says whether
// pair (r, c) of the block does. Bits outside the matrix (ragged blocks) and beyond the block's area must be 0.
//
// Values are stored block by block, each in C order and whole: ragged blocks are padded, the padding is ignored.
//
// Invariants, checked by validate(): as for CSR, over blocks; block sizes positive; sizes of bits and values.

namespace cobble {

/// Does not own.
struct BsrPatternView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int32_t block_rows = 1;
  std::int32_t block_columns = 1;
  std::span<const std::int64_t> block_row_offsets;
  std::span<const std::int32_t> block_column_indices;
  std::span<const std::uint64_t> bits;

  std::int64_t blocks() const noexcept { return static_cast<std::int64_t>(block_column_indices.size()); }
  std::int64_t block_area() const noexcept { return std::int64_t{block_rows} * block_columns; }
  std::int64_t words_per_block() const noexcept { return (block_area() + 63) / 64; }
  /// The number of block rows, and of block columns.
  std::int64_t row_panels() const noexcept { return (rows + block_rows - 1) / block_rows; }
  std::int64_t column_panels() const noexcept { return (columns + block_columns - 1) / block_columns; }
  /// Whether pair (row, column) of stored block `block` takes part.
  bool bit(std::int64_t block, std::int64_t row, std::int64_t column) const noexcept {
    if (bits.empty()) return true;
    const std::int64_t index = row * block_columns + column;
    return (bits[static_cast<std::size_t>(block * words_per_block() + index / 64)] >> (index % 64) & 1U) != 0;
  }
};

/// Does not own; with values. T is float or double.
template <class T>
struct BsrView : BsrPatternView {
  std::span<const T> values;
};

/// Owns the structure.
struct BsrPattern {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int32_t block_rows = 1;
  std::int32_t block_columns = 1;
  std::vector<std::int64_t> block_row_offsets{0};
  std::vector<std::int32_t> block_column_indices;
  std::vector<std::uint64_t> bits;

  BsrPatternView view() const noexcept {
    return {rows, columns, block_rows, block_columns, block_row_offsets, block_column_indices, bits};
  }
  operator BsrPatternView() const noexcept { return view(); }
  bool operator==(const BsrPattern&) const = default;
};

/// Owns structure and values. T is float or double.
template <class T>
struct BsrMatrix : BsrPattern {
  std::vector<T> values;

  BsrView<T> view() const noexcept { return {BsrPattern::view(), values}; }
  operator BsrView<T>() const noexcept { return view(); }
  bool operator==(const BsrMatrix&) const = default;
};

/// Throws Error{invalid_structure, invalid_argument, overflow} with the first broken invariant. Never reads out of
/// bounds, whatever the arrays hold.
void validate(const BsrPatternView& matrix);
void validate(const BsrView<float>& matrix);
void validate(const BsrView<double>& matrix);
/// An owning matrix converts to either view: this says which one is meant.
template <class T>
void validate(const BsrMatrix<T>& matrix) {
  validate(matrix.view());
}

}  // namespace cobble
