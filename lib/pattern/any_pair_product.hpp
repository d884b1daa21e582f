#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "cobble/csr.hpp"
#include "cobble/pattern.hpp"

namespace cobble::detail {

/// Some rows of a product: offsets from 0 on, sorted columns.
struct ProductRows {
  std::int64_t row_begin = 0;
  std::int64_t pairs = 0;
  /// Empty when only the count was wanted.
  std::span<const std::uint64_t> row_offsets;
  std::span<const std::uint64_t> columns;
};

enum class ProductWanted { count, pairs };

/// Calls visit for one panel of rows after the other with the pairs (i, j) such that row i of a and row j of b share a
/// column, under a mask unless that is null. All three are valid and fit each other. Throws Error{overflow} when
/// memory is out, Error{unsupported} when GraphBLAS fails otherwise.
void any_pair_product(const CsrPatternView& a, const CsrPatternView& b, const Pattern* mask, ProductWanted wanted,
                      const std::function<void(const ProductRows&)>& visit);

}  // namespace cobble::detail
