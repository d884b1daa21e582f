#pragma once

#include <cstdint>
#include <vector>

#include "cobble/csr.hpp"

namespace cobble::detail {

/// In which order the rows and the columns of a matrix should stand: order[i] is the one at place i.
struct RowColumnOrder {
  std::vector<std::int32_t> rows;
  std::vector<std::int32_t> columns;
};

/// Rows that share columns near to one another, and columns that share rows: Cuthill and McKee's algorithm (1969) on
/// the graph of rows and columns, from a node at the rim of each connected part. Rows and columns with more than
/// max(16, 10 sqrt(n)) entries would tie everything to everything; as in AMD and COLAMD they count as dense, are left
/// out and stand last. O(entries log entries).
RowColumnOrder cuthill_mckee(const CsrPatternView& matrix);

}  // namespace cobble::detail
