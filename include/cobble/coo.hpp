#pragma once

#include <cstdint>
#include <span>
#include <vector>

// Coordinates: one (row, column) an entry, in any order, duplicates allowed until converted.

namespace cobble {

/// Owns the structure.
struct CooPattern {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::int32_t> row_indices;
  std::vector<std::int32_t> column_indices;

  std::int64_t entries() const noexcept { return static_cast<std::int64_t>(row_indices.size()); }
  bool operator==(const CooPattern&) const = default;
};

/// Owns structure and values. T is float or double.
template <class T>
struct CooMatrix : CooPattern {
  std::vector<T> values;

  bool operator==(const CooMatrix&) const = default;
};

/// Throws Error{invalid_structure, overflow}: sizes in [0, 2^31 - 1], as many rows as columns (and values) given,
/// every index in range. Order and duplicates are free.
void validate(const CooPattern& matrix);
void validate(const CooMatrix<float>& matrix);
void validate(const CooMatrix<double>& matrix);

}  // namespace cobble
