#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cobble/bsr.hpp"
#include "cobble/csr.hpp"
#include "cobble/pattern.hpp"

namespace cobble::detail {

/// Where the values of a matrix on a stored pattern stand. Refers to the pattern.
class StoredValues {
 public:
  /// Throws Error{invalid_argument} naming `what` for a pattern that is not held as a matrix, or as blocks with bits.
  StoredValues(const Pattern& pattern, const char* what);

  std::int64_t size() const noexcept { return size_; }
  /// The place of the pair's value, -1 for a pair that is not stored.
  std::int64_t index(std::int64_t row, std::int64_t column) const noexcept;

  /// Calls visit(first_column, count, place) for the stored pairs of `row` in columns [begin, end), in ascending order:
  /// columns first_column + [0, count) have their values at place + [0, count). A block gives a run for each of its
  /// rows, compressed rows give one for each stretch of neighbours.
  template <class Visit>
  void for_each_run(std::int64_t row, std::int64_t begin, std::int64_t end, Visit visit) const {
    rows_ != nullptr ? for_each_run_of_rows(row, begin, end, visit) : for_each_run_of_blocks(row, begin, end, visit);
  }

 private:
  template <class Visit>
  void for_each_run_of_rows(std::int64_t row, std::int64_t begin, std::int64_t end, Visit& visit) const {
    const std::int32_t* const columns = rows_->column_indices.data();
    const std::int64_t* const offsets = rows_->row_offsets.data() + row;
    const std::int32_t* const last = std::lower_bound(columns + offsets[0], columns + offsets[1], end);
    const std::int32_t* run = std::lower_bound(columns + offsets[0], last, begin);
    while (run != last) {
      const std::int32_t* next = run + 1;
      while (next != last && *next == *run + (next - run)) ++next;
      visit(std::int64_t{*run}, next - run, run - columns);
      run = next;
    }
  }

  template <class Visit>
  void for_each_run_of_blocks(std::int64_t row, std::int64_t begin, std::int64_t end, Visit& visit) const {
    const std::int64_t height = blocks_->block_rows;
    const std::int64_t width = blocks_->block_columns;
    const std::int64_t panel = row / height;
    const std::int32_t* const columns = blocks_->block_column_indices.data();
    const std::int64_t* const offsets = blocks_->block_row_offsets.data() + panel;
    const std::int32_t* const last = columns + offsets[1];
    for (const auto* block = std::lower_bound(columns + offsets[0], last, begin / width); block != last; ++block) {
      const std::int64_t column = *block * width;
      const std::int64_t first = std::max(column, begin);
      const std::int64_t count = std::min(column + width, end) - first;
      if (count <= 0) return;
      visit(first, count, ((block - columns) * height + row - panel * height) * width + (first - column));
    }
  }

  const CsrPattern* rows_ = nullptr;
  const BsrPattern* blocks_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace cobble::detail
