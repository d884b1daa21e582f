#include "cobble/score_terms.hpp"

#include <doctest/doctest.h>

#include "support/error_of.hpp"

using namespace cobble;
using cobble::test::error_of;

TEST_CASE("the slopes of eight heads are the powers of two of the ALiBi paper") {
  CHECK(alibi_slopes(8) == std::vector<double>{0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625});
  CHECK(alibi_slopes(1) == std::vector<double>{0.00390625});
  CHECK(alibi_slopes(0).empty());
  CHECK(error_of([] { alibi_slopes(-1); }) == "invalid_argument: heads = -1, expected at least 0");
}

TEST_CASE("a bias has a value for each entry of a matrix, and for the padding of blocks") {
  CHECK(bias_values(from_csr({2, 3, {0, 1, 3}, {0, 1, 2}})) == 3);
  BsrPattern blocks;
  blocks.rows = blocks.columns = 3;
  blocks.block_rows = blocks.block_columns = 2;
  blocks.block_row_offsets = {0, 1, 2};
  blocks.block_column_indices = {0, 1};
  CHECK(bias_values(from_bsr(blocks)) == 8);
  CHECK(bias_values(random_pairs(10, 10, 3)) == 30);
}

TEST_CASE("a structure that keeps no matrix is refused") {
  CHECK(error_of([] { bias_values(causal(4)); }) ==
        "invalid_argument: structure is causal(4), expected a pattern held as a CSR or BSR matrix");
  CHECK(error_of([] { bias_values(from_bsr(causal(4).to_bsr(2, 2))); }) ==
        "invalid_argument: structure has blocks with bits, expected whole blocks or a CSR matrix");
}
