#pragma once

#include <cstdint>
#include <vector>

#include "cobble/csr.hpp"

// SuiteSparse's fill-reducing orderings, called through CHOLMOD. All throw Error{overflow} when memory is out.

namespace cobble::detail {

/// Approximate minimum degree (Amestoy, Davis, Duff, TOMS 837) of a graph: a square matrix with a symmetric structure.
std::vector<std::int32_t> amd_order(const CsrPatternView& graph);
/// Nested dissection by METIS of such a graph. Throws Error{unsupported} where CHOLMOD comes without METIS.
std::vector<std::int32_t> nested_dissection_order(const CsrPatternView& graph);
/// Column approximate minimum degree (Davis, Gilbert, Larimore, Ng, TOMS 836): an order of the columns.
std::vector<std::int32_t> colamd_column_order(const CsrPatternView& matrix);

}  // namespace cobble::detail
