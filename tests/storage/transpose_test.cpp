#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "cobble/convert.hpp"
#include "support/error_of.hpp"
#include "support/sparse.hpp"

using namespace cobble;
using cobble::test::error_of;

TEST_CASE_TEMPLATE("transposing CSR turns the dense matrix around, twice is the identity", T, float, double) {
  test::Random random(5);
  for (const test::Size size : {test::Size{0, 0}, {0, 7}, {7, 0}, {1, 1}, {17, 33}, {65, 16}}) {
    for (const double density : {0.0, 0.2, 1.0}) {
      const auto matrix = test::random_csr<T>(random, size.rows, size.columns, density, 2);
      const CsrMatrix<T> turned = transpose(matrix);
      REQUIRE(error_of([&] { validate(turned); }) == "no error");
      CHECK(turned.rows == size.columns);
      CHECK(turned.columns == size.rows);
      CHECK(test::dense_of(turned) == test::transposed(test::dense_of(matrix), size.rows, size.columns));
      CHECK(transpose(turned) == matrix);
      CHECK(transpose(static_cast<const CsrPattern&>(matrix)) == static_cast<const CsrPattern&>(turned));
    }
  }
}

TEST_CASE_TEMPLATE("transposing BSR gives the blocks of the transpose, twice is the identity", T, float, double) {
  test::Random random(6);
  for (const test::Size size : {test::Size{0, 0}, {0, 7}, {7, 0}, {17, 33}, {70, 131}}) {
    for (const double density : {0.0, 0.05, 1.0}) {
      const auto matrix = test::random_csr<T>(random, size.rows, size.columns, density, density == 0.05 ? 1 : 0);
      for (const test::Size block : {test::Size{1, 1}, {3, 5}, {16, 16}, {64, 64}, {2, 70}}) {
        INFO(test::to_string(size) << ", density " << density << ", blocks of " << test::to_string(block));
        const BsrMatrix<T> blocks = to_bsr(matrix, block.rows, block.columns);
        const BsrMatrix<T> turned = transpose(blocks);
        REQUIRE(turned == to_bsr(transpose(matrix), block.columns, block.rows));
        REQUIRE(transpose(turned) == blocks);
        REQUIRE(transpose(static_cast<const BsrPattern&>(blocks)) == static_cast<const BsrPattern&>(turned));
      }
    }
  }
}

TEST_CASE("a broken matrix is not transposed") {
  CHECK(error_of([] {
          transpose(CsrPattern{1, 1, {0, 1}, {1}});
        }) == "invalid_structure: column_indices[0] = 1 in row 0 is outside [0, 1)");
  CHECK(error_of([] {
          transpose(BsrPattern{1, 1, 2, 2, {0, 1}, {0}, {2}});
        }) == "invalid_structure: bits of block 0: pair (0, 1) of the block is set but lies right of the last column");
}
