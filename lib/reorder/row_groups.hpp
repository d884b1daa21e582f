#pragma once

#include <cstdint>
#include <vector>

#include "cobble/csr.hpp"

namespace cobble::detail {

/// Which rows have similar columns.
struct RowGroups {
  std::vector<std::int32_t> group_of;  ///< of each row, numbered by the rows that founded them; -1 for empty rows
  std::int32_t groups = 0;
};

/// Rows join the group whose founding row they resemble most, if at least half of the columns of the two are shared
/// (Jaccard similarity 1/2). Candidates are found by min-hash (Broder 1997): two rows agree in each of 16 hashes with a
/// probability that equals their similarity. O(entries) time for bounded rows, O(rows + columns) memory.
RowGroups group_similar_rows(const CsrPatternView& matrix);

}  // namespace cobble::detail
