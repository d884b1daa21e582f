#pragma once

#include "cobble/csr.hpp"
#include "reorder/group_order.hpp"

namespace cobble::detail {

/// Rows with similar columns side by side, and columns with similar rows. `transposed` is the transpose of `matrix`.
/// O(entries log entries).
RowColumnOrder order_by_similarity(const CsrPatternView& matrix, const CsrPatternView& transposed);

}  // namespace cobble::detail
