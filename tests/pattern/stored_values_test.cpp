#include "pattern/stored_values.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "support/random.hpp"
#include "support/sparse.hpp"

using namespace cobble;
using cobble::detail::StoredValues;
using cobble::test::Random;

TEST_CASE("each entry of compressed rows is found at its place, and no other") {
  Random random(1);
  const CsrMatrix<double> matrix = test::random_csr<double>(random, 17, 23, 0.3, 1);
  const Pattern pattern = from_csr(matrix);
  const StoredValues stored(pattern, "pattern");
  CHECK(stored.size() == matrix.view().entries());
  std::int64_t next = 0;
  for (std::int64_t row = 0; row < 17; ++row) {
    for (std::int64_t column = 0; column < 23; ++column) {
      CAPTURE(row);
      CAPTURE(column);
      CHECK(stored.index(row, column) == (pattern.contains(row, column) ? next++ : -1));
    }
  }
}

TEST_CASE("each element of blocks is found at its place, and no other") {
  // Blocks of 2 x 3 over 5 x 7: (0, 1), (1, 0), (1, 2), (2, 2).
  BsrPattern blocks;
  blocks.rows = 5;
  blocks.columns = 7;
  blocks.block_rows = 2;
  blocks.block_columns = 3;
  blocks.block_row_offsets = {0, 1, 3, 4};
  blocks.block_column_indices = {1, 0, 2, 2};
  const Pattern pattern = from_bsr(blocks);
  const StoredValues stored(pattern, "pattern");
  CHECK(stored.size() == 24);
  const std::vector<std::vector<std::int64_t>> expected = {{-1, -1, -1, 0, 1, 2, -1},
                                                           {-1, -1, -1, 3, 4, 5, -1},
                                                           {6, 7, 8, -1, -1, -1, 12},
                                                           {9, 10, 11, -1, -1, -1, 15},
                                                           {-1, -1, -1, -1, -1, -1, 18}};
  for (std::size_t row = 0; row < 5; ++row) {
    for (std::size_t column = 0; column < 7; ++column) {
      CAPTURE(row);
      CAPTURE(column);
      CHECK(stored.index(static_cast<std::int64_t>(row), static_cast<std::int64_t>(column)) == expected[row][column]);
    }
  }
}
