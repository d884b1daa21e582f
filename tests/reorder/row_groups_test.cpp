#include "reorder/row_groups.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cobble/pattern.hpp"
#include "support/random.hpp"
#include "support/shuffled.hpp"

namespace cobble::detail {
namespace {

TEST_CASE("equal rows share a group, disjoint ones do not, empty ones have none") {
  const CsrPattern matrix{6, 5, {0, 2, 2, 4, 6, 7, 9}, {0, 3, 1, 4, 0, 3, 2, 1, 4}};
  const RowGroups groups = group_similar_rows(matrix);
  CHECK(groups.group_of == std::vector<std::int32_t>{0, -1, 1, 0, 2, 1});
  CHECK(groups.groups == 3);
  CHECK(group_similar_rows(CsrPattern{}).groups == 0);
}

TEST_CASE("rows of a block that lost some of their pairs still share a group") {
  constexpr std::int32_t kBlock = 32;
  test::Random random(3);
  const Pattern pattern = random_blocks(1024, kBlock, 4, 5);
  CsrPattern matrix = pattern.to_csr();
  CsrPattern thinned{1024, 1024, {0}, {}};
  for (std::int64_t row = 0; row < 1024; ++row) {
    for (const std::int32_t column : matrix.view().row(row)) {
      if (random.uniform() < 0.95) thinned.column_indices.push_back(column);
    }
    thinned.row_offsets.push_back(static_cast<std::int64_t>(thinned.column_indices.size()));
  }
  const RowGroups groups = group_similar_rows(thinned);
  std::int64_t strays = 0;
  for (std::size_t row = 0; row < groups.group_of.size(); ++row) {
    strays += groups.group_of[row] == groups.group_of[row / kBlock * kBlock] ? 0 : 1;
  }
  CHECK(strays == 0);
}

TEST_CASE("rows without anything in common are groups of their own") {
  const RowGroups groups = group_similar_rows(random_pairs(500, 4000, 10, 1).to_csr());
  CHECK(groups.groups == 500);
}

}  // namespace
}  // namespace cobble::detail
