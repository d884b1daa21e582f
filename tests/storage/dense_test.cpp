#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "cobble/convert.hpp"
#include "support/error_of.hpp"
#include "support/sparse.hpp"

using namespace cobble;
using cobble::test::error_of;

TEST_CASE("CSR survives the way to a dense boolean matrix and back") {
  test::Random random(4);
  for (const auto& [rows, columns] : {std::pair{0, 0}, {0, 5}, {5, 0}, {1, 1}, {17, 65}}) {
    for (const double density : {0.0, 0.3, 1.0}) {
      const CsrPattern matrix = test::random_csr<float>(random, rows, columns, density, 1);
      const std::vector<std::uint8_t> dense = to_dense_boolean(matrix);
      REQUIRE(dense.size() == static_cast<std::size_t>(rows * columns));
      CHECK(to_csr(DenseBooleanView{dense.data(), rows, columns, columns, 1}) == matrix);
      CHECK(to_csr(DenseBooleanView{dense.data(), columns, rows, 1, columns}) == transpose(matrix));
    }
  }
}

TEST_CASE("any value but 0 is a pair, strides may be wide, negative or 0") {
  const std::vector<std::uint8_t> data{0, 255, 9, 2, 0, 9};
  CHECK(to_csr(DenseBooleanView{data.data(), 2, 2, 3, 1}) == CsrPattern{2, 2, {0, 1, 2}, {1, 0}});
  CHECK(to_csr(DenseBooleanView{data.data() + 4, 2, 2, -3, -1}) == CsrPattern{2, 2, {0, 1, 2}, {1, 0}});
  CHECK(to_csr(DenseBooleanView{data.data(), 3, 2, 0, 1}) == CsrPattern{3, 2, {0, 1, 2, 3}, {1, 1, 1}});
}

TEST_CASE("dense matrices of impossible sizes are rejected") {
  CHECK(error_of([] {
          to_csr(DenseBooleanView{nullptr, 2, 3, 3, 1});
        }) == "invalid_argument: data is null, expected 2 x 3 elements");
  CHECK(error_of([] {
          to_csr(DenseBooleanView{nullptr, -2, 3, 3, 1});
        }) == "overflow: rows = -2 does not fit the range [0, 2147483647]");
  CHECK(error_of([] {
          to_csr(DenseBooleanView{nullptr, 0, 2147483648, 0, 1});
        }) == "overflow: columns = 2147483648 does not fit the range [0, 2147483647]");
  CsrPattern wide{1 << 20, 2147483647, std::vector<std::int64_t>((1 << 20) + 1), {}};
  CHECK(error_of([&] { to_dense_boolean(wide); }) ==
        "overflow: no memory for a dense boolean matrix, 2251799812636672 bytes");
}
