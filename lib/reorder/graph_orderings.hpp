#pragma once

#include <cstdint>
#include <vector>

#include "cobble/csr.hpp"

// Fill-reducing orderings of SuiteSparse and METIS. They are called directly: CHOLMOD, which also calls them, brings
// along a BLAS whose threads start with every process. All throw Error{overflow} when memory is out.

namespace cobble::detail {

/// Approximate minimum degree (Amestoy, Davis, Duff, TOMS 837) of a graph: a square matrix with a symmetric structure.
std::vector<std::int32_t> amd_order(const CsrPatternView& graph);
/// Nested dissection by METIS (Karypis, Kumar, 1998) of such a graph. Throws Error{unsupported} beyond 2^31 - 1 pairs.
std::vector<std::int32_t> nested_dissection_order(const CsrPatternView& graph);
/// Column approximate minimum degree (Davis, Gilbert, Larimore, Ng, TOMS 836): an order of the columns.
std::vector<std::int32_t> colamd_column_order(const CsrPatternView& matrix);

}  // namespace cobble::detail
