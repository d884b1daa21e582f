#pragma once

#include <cstdint>
#include <span>
#include <vector>

// Compressed sparse rows. A type whose name says Pattern holds no values; the one with values derives from it, so
// that whatever needs only the structure takes either.
//
// Invariants, checked by validate(): rows and columns in [0, 2^31 - 1]; row_offsets has rows + 1 entries, starts at
// 0, never decreases and ends at the number of entries; column indices lie in [0, columns) and increase strictly
// within a row (sorted, no duplicates); values, if any, are as many as entries.

namespace cobble {

/// Does not own.
struct CsrPatternView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const std::int64_t> row_offsets;
  std::span<const std::int32_t> column_indices;

  std::int64_t entries() const noexcept { return static_cast<std::int64_t>(column_indices.size()); }
  /// The column indices of one row.
  std::span<const std::int32_t> row(std::int64_t row) const noexcept {
    const auto index = static_cast<std::size_t>(row);
    return column_indices.subspan(static_cast<std::size_t>(row_offsets[index]),
                                  static_cast<std::size_t>(row_offsets[index + 1] - row_offsets[index]));
  }
};

/// Does not own; with values. T is float or double.
template <class T>
struct CsrView : CsrPatternView {
  std::span<const T> values;
};

/// Owns the structure.
struct CsrPattern {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::int64_t> row_offsets{0};
  std::vector<std::int32_t> column_indices;

  CsrPatternView view() const noexcept { return {rows, columns, row_offsets, column_indices}; }
  operator CsrPatternView() const noexcept { return view(); }
  bool operator==(const CsrPattern&) const = default;
};

/// Owns structure and values. T is float or double.
template <class T>
struct CsrMatrix : CsrPattern {
  std::vector<T> values;

  CsrView<T> view() const noexcept { return {CsrPattern::view(), values}; }
  operator CsrView<T>() const noexcept { return view(); }
  bool operator==(const CsrMatrix&) const = default;
};

/// Throws Error{invalid_structure, overflow} with the first broken invariant, e.g. "row_offsets[7] = 12 is less than
/// row_offsets[6] = 15". Never reads out of bounds, whatever the arrays hold.
void validate(const CsrPatternView& matrix);
void validate(const CsrView<float>& matrix);
void validate(const CsrView<double>& matrix);
/// An owning matrix converts to either view: this says which one is meant.
template <class T>
void validate(const CsrMatrix<T>& matrix) {
  validate(matrix.view());
}

}  // namespace cobble
