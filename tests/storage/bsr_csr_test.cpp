#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "cobble/convert.hpp"
#include "support/error_of.hpp"
#include "support/sparse.hpp"

using namespace cobble;
using cobble::test::error_of;

TEST_CASE_TEMPLATE("CSR survives the way to BSR and back for any block size", T, float, double) {
  test::Random random(3);
  for (const test::Size size : {test::Size{0, 0}, {0, 9}, {9, 0}, {1, 1}, {16, 64}, {17, 65}, {70, 131}}) {
    for (const double density : {0.0, 0.02, 0.6, 1.0}) {
      const auto matrix = test::random_csr<T>(random, size.rows, size.columns, density, density == 0.6 ? 3 : 0);
      for (const test::Size block :
           {test::Size{1, 1}, {3, 5}, {5, 3}, {16, 16}, {64, 64}, {1, 128}, {100, 1}, {200, 200}}) {
        INFO(test::to_string(size) << ", density " << density << ", blocks of " << test::to_string(block));
        const BsrMatrix<T> blocks = to_bsr(matrix, block.rows, block.columns);
        REQUIRE(error_of([&] { validate(blocks); }) == "no error");
        REQUIRE(blocks.block_rows == block.rows);
        REQUIRE(blocks.block_columns == block.columns);
        REQUIRE(to_csr(blocks) == matrix);
        REQUIRE(to_bsr(static_cast<const CsrPattern&>(matrix), block.rows, block.columns) ==
                static_cast<const BsrPattern&>(blocks));
        REQUIRE(to_csr(static_cast<const BsrPattern&>(blocks)) == static_cast<const CsrPattern&>(matrix));
        if (density == 1.0) REQUIRE(blocks.bits.empty());
      }
    }
  }
}

TEST_CASE("blocks, bits and values are where the format says") {
  // 3 x 4 in blocks of 2 x 3:  1 . 2 | .
  //                            . . . | 3
  //                            -----------
  //                            . 4 . | .
  const CsrMatrix<double> matrix{{3, 4, {0, 2, 3, 4}, {0, 2, 3, 1}}, {1, 2, 3, 4}};
  const BsrMatrix<double> expected{{3, 4, 2, 3, {0, 2, 3}, {0, 1, 0}, {0b101, 0b1000, 0b10}},
                                   {1, 0, 2, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0}};
  CHECK(to_bsr(matrix, 2, 3) == expected);
  const BsrPatternView view = expected;
  CHECK(view.bit(1, 1, 0));
  CHECK_FALSE(view.bit(1, 0, 0));
}

TEST_CASE("bits are dropped when every block is whole, ragged ones by what is inside the matrix") {
  const CsrPattern matrix{3, 3, {0, 2, 4, 5}, {0, 1, 0, 1, 2}};
  CHECK(to_bsr(matrix, 2, 2) == BsrPattern{3, 3, 2, 2, {0, 1, 2}, {0, 1}, {}});
}

TEST_CASE("padding of ragged blocks is ignored, whatever it holds") {
  const BsrMatrix<float> matrix{{1, 3, 2, 2, {0, 2}, {0, 1}, {}}, {1, 2, 99, 99, 3, 99, 99, 99}};
  CHECK(to_csr(matrix) == CsrMatrix<float>{{1, 3, {0, 3}, {0, 1, 2}}, {1, 2, 3}});
}

TEST_CASE("a stored 0 stays an entry, a block without a set bit gives none") {
  const BsrMatrix<float> matrix{{2, 4, 2, 2, {0, 2}, {0, 1}, {0b0110, 0}}, {8, 0, 5, 8, 8, 8, 8, 8}};
  CHECK(to_csr(matrix) == CsrMatrix<float>{{2, 4, {0, 1, 2}, {1, 0}}, {0, 5}});
}

TEST_CASE("block sizes that are not positive are rejected") {
  const CsrPattern matrix{1, 1, {0, 1}, {0}};
  CHECK(error_of([&] { to_bsr(matrix, 0, 4); }) == "invalid_argument: blocks of 0 x 4, expected at least 1 x 1");
  CHECK(error_of([&] { to_bsr(matrix, 4, -1); }) == "invalid_argument: blocks of 4 x -1, expected at least 1 x 1");
}

TEST_CASE("what does not fit in memory is an error, not a crash") {
  const CsrMatrix<double> matrix{{1, 1, {0, 1}, {0}}, {1}};
  CHECK(error_of([&] { to_bsr(matrix, 2147483647, 2147483647); }) ==
        "overflow: no memory for bits, 576460751766552584 bytes");
  const BsrPattern blocks{1 << 20, 2147483647, 1 << 20, 2147483647, {0, 1}, {0}, {}};
  CHECK(error_of([&] { to_csr(blocks); }) == "overflow: no memory for column_indices, 9007199250546688 bytes");
}
