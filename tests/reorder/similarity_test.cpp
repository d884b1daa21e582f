#include "reorder/similarity.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "cobble/convert.hpp"
#include "cobble/reorder.hpp"
#include "support/random.hpp"
#include "support/shuffled.hpp"

namespace cobble::detail {
namespace {

TEST_CASE("rows and columns of shuffled blocks stand block by block") {
  constexpr std::int32_t kBlock = 16;
  test::Random random(5);
  const Pattern blocks = random_blocks(512, kBlock, 3, 2);
  const Reordering shuffle = test::random_reordering(blocks, random);
  const CsrPattern matrix = permute(blocks, shuffle).to_csr();
  const RowColumnOrder order = order_by_similarity(matrix, transpose(matrix));
  CHECK(tile_fill(permute(from_csr(matrix), {ReorderMethod::similarity, order.rows, order.columns}), kBlock) == 1);
}

TEST_CASE("tokens without pairs stand last, in their order") {
  const CsrPattern matrix{4, 4, {0, 0, 1, 1, 2}, {3, 3}};
  const RowColumnOrder order = order_by_similarity(matrix, transpose(matrix));
  CHECK(order.rows == std::vector<std::int32_t>{1, 3, 0, 2});
  CHECK(order.columns == std::vector<std::int32_t>{3, 0, 1, 2});
}

TEST_CASE("within a group of similar rows those with neighbouring columns stand together") {
  // Windows so wide that many rows share a group.
  test::Random random(6);
  const std::vector<std::int32_t> permutation = test::random_permutation(400, random);
  const Pattern pattern = permute(window(400, 60, 60), {ReorderMethod::identity, permutation, permutation});
  const CsrPattern matrix = pattern.to_csr();
  const RowColumnOrder order = order_by_similarity(matrix, transpose(matrix));
  CHECK(tile_fill(permute(pattern, {ReorderMethod::similarity, order.rows, order.columns}), 16) > 0.7);
}

}  // namespace
}  // namespace cobble::detail
