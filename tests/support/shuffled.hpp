#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "cobble/csr.hpp"
#include "cobble/pattern.hpp"
#include "cobble/reorder.hpp"
#include "support/random.hpp"

// Patterns whose tokens stand in a random order.

namespace cobble::test {

inline std::vector<std::int32_t> random_permutation(std::int64_t size, Random& random) {
  std::vector<std::int32_t> permutation(static_cast<std::size_t>(size));
  std::iota(permutation.begin(), permutation.end(), 0);
  for (std::size_t left = permutation.size(); left > 1; --left) {
    std::swap(permutation[left - 1],
              permutation[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(left)))]);
  }
  return permutation;
}

inline Reordering random_reordering(const Pattern& pattern, Random& random) {
  std::vector<std::int32_t> queries = random_permutation(pattern.rows(), random);
  std::vector<std::int32_t> keys = random_permutation(pattern.columns(), random);
  return {ReorderMethod::identity, std::move(queries), std::move(keys)};
}

/// Queries and keys permuted, each pair kept with probability `kept`.
inline Pattern shuffled(const Pattern& pattern, Random& random, double kept = 1) {
  const CsrPattern all = permute(pattern, random_reordering(pattern, random)).to_csr();
  CsrPattern some;
  some.rows = all.rows;
  some.columns = all.columns;
  for (std::int64_t row = 0; row < all.rows; ++row) {
    for (const std::int32_t column : all.view().row(row)) {
      if (random.uniform() < kept) some.column_indices.push_back(column);
    }
    some.row_offsets.push_back(static_cast<std::int64_t>(some.column_indices.size()));
  }
  return from_csr(std::move(some));
}

}  // namespace cobble::test
