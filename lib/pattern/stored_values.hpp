#pragma once

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

  const CsrPattern* rows() const noexcept { return rows_; }      ///< null for blocks
  const BsrPattern* blocks() const noexcept { return blocks_; }  ///< null for rows

 private:
  const CsrPattern* rows_ = nullptr;
  const BsrPattern* blocks_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace cobble::detail
