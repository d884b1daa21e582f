#include "pattern/stored_values.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "core/checked.hpp"
#include "pattern/stored_patterns.hpp"

namespace cobble::detail {
namespace {

/// The place of `index` among indices [begin, end), which increase; -1 when it is not there.
std::int64_t find(std::span<const std::int32_t> indices, std::int64_t begin, std::int64_t end, std::int64_t index) {
  const auto first = indices.begin() + begin;
  const auto last = indices.begin() + end;
  const auto at = std::lower_bound(first, last, index);
  return at != last && *at == index ? at - indices.begin() : -1;
}

}  // namespace

StoredValues::StoredValues(const Pattern& pattern, const char* what)
    : rows_(stored_rows(pattern)), blocks_(stored_blocks(pattern)) {
  if (rows_ != nullptr) {
    size_ = rows_->view().entries();
  } else if (blocks_ == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                std::string(what) + " is " + pattern.describe() + ", expected a pattern held as a CSR or BSR matrix");
  } else if (!blocks_->bits.empty()) {
    throw Error(ErrorCode::invalid_argument,
                std::string(what) + " has blocks with bits, expected whole blocks or a CSR matrix");
  } else {
    size_ = checked_product({blocks_->view().blocks(), blocks_->view().block_area()}, "the number of stored values");
  }
}

std::int64_t StoredValues::index(std::int64_t row, std::int64_t column) const noexcept {
  if (rows_ != nullptr) {
    const auto at = static_cast<std::size_t>(row);
    return find(rows_->column_indices, rows_->row_offsets[at], rows_->row_offsets[at + 1], column);
  }
  const std::int64_t height = blocks_->block_rows;
  const std::int64_t width = blocks_->block_columns;
  const auto panel = static_cast<std::size_t>(row / height);
  const std::int64_t block = find(blocks_->block_column_indices, blocks_->block_row_offsets[panel],
                                  blocks_->block_row_offsets[panel + 1], column / width);
  return block < 0 ? -1 : (block * height + row % height) * width + column % width;
}

}  // namespace cobble::detail
