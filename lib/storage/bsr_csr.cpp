#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "cobble/convert.hpp"
#include "core/checked.hpp"
#include "storage/allocate.hpp"
#include "storage/bit_range.hpp"

namespace cobble {
namespace {

constexpr auto kNothing = [](std::size_t /*from*/, std::size_t /*to*/) {};

std::int64_t panel_height(const BsrPatternView& matrix, std::int64_t panel) {
  return std::min<std::int64_t>(matrix.block_rows, matrix.rows - panel * matrix.block_rows);
}
std::int64_t block_width(const BsrPatternView& matrix, std::int64_t block) {
  const std::int64_t panel = matrix.block_column_indices[static_cast<std::size_t>(block)];
  return std::min<std::int64_t>(matrix.block_columns, matrix.columns - panel * matrix.block_columns);
}
std::span<const std::uint64_t> block_bits(const BsrPatternView& matrix, std::int64_t block) {
  const auto words = static_cast<std::size_t>(matrix.words_per_block());
  return matrix.bits.subspan(static_cast<std::size_t>(block) * words, words);
}

std::vector<std::int64_t> count_rows(const BsrPatternView& matrix) {
  auto offsets = allocate_vector<std::int64_t>({matrix.rows + 1}, "row_offsets");
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto panel = static_cast<std::size_t>(row / matrix.block_rows);
    const std::int64_t first_bit = row % matrix.block_rows * matrix.block_columns;
    std::int64_t entries = offsets[static_cast<std::size_t>(row)];
    for (std::int64_t block = matrix.block_row_offsets[panel]; block < matrix.block_row_offsets[panel + 1]; ++block) {
      const std::int64_t width = block_width(matrix, block);
      entries += matrix.bits.empty() ? width : count_bits(block_bits(matrix, block), first_bit, width);
    }
    offsets[static_cast<std::size_t>(row) + 1] = entries;
  }
  return offsets;
}

/// Fills `result` and calls move(from, to) with each entry's places among the values of both.
template <class Move>
void expand_blocks(const BsrPatternView& matrix, CsrPattern& result, Move move) {
  std::size_t next = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto panel = static_cast<std::size_t>(row / matrix.block_rows);
    const std::int64_t first_bit = row % matrix.block_rows * matrix.block_columns;
    for (std::int64_t block = matrix.block_row_offsets[panel]; block < matrix.block_row_offsets[panel + 1]; ++block) {
      const std::int64_t first_column =
          std::int64_t{matrix.block_column_indices[static_cast<std::size_t>(block)]} * matrix.block_columns;
      // Unsigned: without values the product may exceed 63 bits, and is not used.
      const auto first_value = static_cast<std::size_t>(block) * static_cast<std::size_t>(matrix.block_area()) +
                               static_cast<std::size_t>(first_bit);
      const std::int64_t width = block_width(matrix, block);
      const auto append = [&](std::int64_t column) {
        result.column_indices[next] = static_cast<std::int32_t>(first_column + column);
        move(first_value + static_cast<std::size_t>(column), next++);
      };
      if (matrix.bits.empty()) {
        for (std::int64_t column = 0; column < width; ++column) append(column);
      } else {
        for_each_set_bit(block_bits(matrix, block), first_bit, width, append);
      }
    }
  }
}

void prepare_rows(const BsrPatternView& matrix, CsrPattern& result) {
  result.rows = matrix.rows;
  result.columns = matrix.columns;
  result.row_offsets = count_rows(matrix);
  result.column_indices = allocate_vector<std::int32_t>({result.row_offsets.back()}, "column_indices");
}

/// The distinct non-empty blocks, as compressed rows over block rows and block columns.
CsrPattern find_blocks(const CsrPatternView& matrix, std::int32_t block_rows, std::int32_t block_columns) {
  CooPattern blocks;
  blocks.rows = divide_up(matrix.rows, block_rows);
  blocks.columns = divide_up(matrix.columns, block_columns);
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    std::int64_t block_end = 0;  // columns below it are in blocks that this row has already listed
    for (const std::int32_t column : matrix.row(row)) {
      if (column < block_end) continue;
      const std::int32_t panel = column / block_columns;
      block_end = (std::int64_t{panel} + 1) * block_columns;
      blocks.row_indices.push_back(static_cast<std::int32_t>(row / block_rows));
      blocks.column_indices.push_back(panel);
    }
  }
  return to_csr(blocks);
}

bool every_block_is_whole(const BsrPatternView& matrix) {
  for (std::int64_t panel = 0; panel < matrix.row_panels(); ++panel) {
    const auto index = static_cast<std::size_t>(panel);
    for (std::int64_t block = matrix.block_row_offsets[index]; block < matrix.block_row_offsets[index + 1]; ++block) {
      const std::int64_t pairs = panel_height(matrix, panel) * block_width(matrix, block);
      if (count_bits(block_bits(matrix, block), 0, matrix.words_per_block() * 64) != pairs) return false;
    }
  }
  return true;
}

/// Calls place(entry, block, index within the block) for every entry.
template <class Place>
void for_each_entry(const CsrPatternView& matrix, const BsrPattern& blocks, Place place) {
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto panel = static_cast<std::size_t>(row / blocks.block_rows);
    const auto end = blocks.block_column_indices.begin() + blocks.block_row_offsets[panel + 1];
    auto block = blocks.block_column_indices.begin() + blocks.block_row_offsets[panel];
    std::int64_t entry = matrix.row_offsets[static_cast<std::size_t>(row)];
    for (const std::int32_t column : matrix.row(row)) {
      const std::int32_t column_panel = column / blocks.block_columns;
      if (*block != column_panel) block = std::lower_bound(block, end, column_panel);
      place(entry++, block - blocks.block_column_indices.begin(),
            row % blocks.block_rows * blocks.block_columns + column % blocks.block_columns);
    }
  }
}

void build_blocks(const CsrPatternView& matrix, std::int32_t block_rows, std::int32_t block_columns,
                  BsrPattern& result) {
  if (block_rows < 1 || block_columns < 1) {
    throw Error(ErrorCode::invalid_argument, "blocks of " + std::to_string(block_rows) + " x " +
                                                 std::to_string(block_columns) + ", expected at least 1 x 1");
  }
  CsrPattern blocks = find_blocks(matrix, block_rows, block_columns);
  result.rows = matrix.rows;
  result.columns = matrix.columns;
  result.block_rows = block_rows;
  result.block_columns = block_columns;
  result.block_row_offsets = std::move(blocks.row_offsets);
  result.block_column_indices = std::move(blocks.column_indices);
  const std::int64_t words = result.view().words_per_block();
  result.bits = allocate_vector<std::uint64_t>({result.view().blocks(), words}, "bits");
  for_each_entry(matrix, result, [&](std::int64_t /*entry*/, std::int64_t block, std::int64_t index) {
    set_bit(result.bits, block * words * 64 + index);
  });
  if (every_block_is_whole(result)) result.bits = {};
}

}  // namespace

CsrPattern to_csr(const BsrPatternView& matrix) {
  validate(matrix);
  CsrPattern result;
  prepare_rows(matrix, result);
  expand_blocks(matrix, result, kNothing);
  return result;
}
template <class T>
CsrMatrix<T> to_csr(const BsrView<T>& matrix) {
  validate(matrix);
  CsrMatrix<T> result;
  prepare_rows(matrix, result);
  result.values = allocate_vector<T>({result.row_offsets.back()}, "values");
  expand_blocks(matrix, result, [&](std::size_t from, std::size_t to) { result.values[to] = matrix.values[from]; });
  return result;
}
template CsrMatrix<float> to_csr(const BsrView<float>&);
template CsrMatrix<double> to_csr(const BsrView<double>&);

BsrPattern to_bsr(const CsrPatternView& matrix, std::int32_t block_rows, std::int32_t block_columns) {
  validate(matrix);
  BsrPattern result;
  build_blocks(matrix, block_rows, block_columns, result);
  return result;
}
template <class T>
BsrMatrix<T> to_bsr(const CsrView<T>& matrix, std::int32_t block_rows, std::int32_t block_columns) {
  validate(matrix);
  BsrMatrix<T> result;
  build_blocks(matrix, block_rows, block_columns, result);
  const std::int64_t area = result.view().block_area();
  result.values = allocate_vector<T>({result.view().blocks(), area}, "values");
  for_each_entry(matrix, result, [&](std::int64_t entry, std::int64_t block, std::int64_t index) {
    result.values[static_cast<std::size_t>(block * area + index)] = matrix.values[static_cast<std::size_t>(entry)];
  });
  return result;
}
template BsrMatrix<float> to_bsr(const CsrView<float>&, std::int32_t, std::int32_t);
template BsrMatrix<double> to_bsr(const CsrView<double>&, std::int32_t, std::int32_t);

}  // namespace cobble
