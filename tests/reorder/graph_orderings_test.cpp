#include "reorder/graph_orderings.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "cobble/convert.hpp"
#include "cobble/pattern.hpp"
#include "cobble/reorder.hpp"
#include "support/random.hpp"
#include "support/shuffled.hpp"

namespace cobble::detail {
namespace {

/// Entries of the Cholesky factor below the diagonal when the graph's nodes are eliminated in this order: each joins
/// its later neighbours to one another.
std::int64_t fill_in(const CsrPattern& graph, const std::vector<std::int32_t>& order) {
  const std::vector<std::int32_t> place = inverse_permutation(order);
  std::vector<std::set<std::int32_t>> later(order.size());
  for (std::int64_t node = 0; node < graph.rows; ++node) {
    const std::int32_t at = place[static_cast<std::size_t>(node)];
    for (const std::int32_t other : graph.view().row(node)) {
      const std::int32_t other_at = place[static_cast<std::size_t>(other)];
      if (other_at > at) later[static_cast<std::size_t>(at)].insert(other_at);
    }
  }
  std::int64_t entries = 0;
  for (const std::set<std::int32_t>& node : later) {
    entries += static_cast<std::int64_t>(node.size());
    if (node.empty()) continue;
    const std::int32_t parent = *node.begin();
    later[static_cast<std::size_t>(parent)].insert(std::next(node.begin()), node.end());
  }
  return entries;
}

/// A grid of n x n nodes, each tied to its four neighbours, in random order.
CsrPattern shuffled_grid(std::int64_t n) {
  const Pattern grid = from_predicate(n * n, n * n, [n](std::int64_t a, std::int64_t b) {
    const std::int64_t rows = a / n - b / n;
    const std::int64_t columns = a % n - b % n;
    return rows * rows + columns * columns == 1;
  });
  test::Random random(4);
  const std::vector<std::int32_t> permutation = test::random_permutation(n * n, random);
  return permute(grid, {ReorderMethod::identity, permutation, permutation}).to_csr();
}

TEST_CASE("graph orderings lower the fill-in of a factorisation") {
  const CsrPattern grid = shuffled_grid(16);
  std::vector<std::int32_t> natural(256);
  for (std::int32_t i = 0; i < 256; ++i) natural[static_cast<std::size_t>(i)] = i;
  const std::int64_t before = fill_in(grid, natural);
  CHECK(3 * fill_in(grid, amd_order(grid)) < before);
  CHECK(3 * fill_in(grid, nested_dissection_order(grid)) < before);
  // COLAMD orders for the factor of A^T A.
  CHECK(2 * fill_in(grid, colamd_column_order(grid)) < before);
}

TEST_CASE("graphs without nodes and without edges have orders too") {
  const CsrPattern none;
  CHECK(amd_order(none).empty());
  CHECK(nested_dissection_order(none).empty());
  CHECK(colamd_column_order(none).empty());
  const CsrPattern loose{5, 5, std::vector<std::int64_t>(6, 0), {}};
  for (const std::vector<std::int32_t>& order :
       {amd_order(loose), nested_dissection_order(loose), colamd_column_order(loose)}) {
    CHECK(order.size() == 5);
    CHECK_NOTHROW(inverse_permutation(order));
  }
  const CsrPattern wide{2, 5, {0, 1, 2}, {4, 0}};
  CHECK(colamd_column_order(wide).size() == 5);
  CHECK(colamd_column_order(transpose(wide)).size() == 2);
}

}  // namespace
}  // namespace cobble::detail
