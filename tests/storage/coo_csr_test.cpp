#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "cobble/convert.hpp"
#include "support/error_of.hpp"
#include "support/sparse.hpp"

using namespace cobble;
using cobble::test::error_of;

namespace {

/// The same entries in another order (Fisher-Yates).
template <class T>
void shuffle(test::Random& random, CooMatrix<T>& matrix) {
  for (std::int64_t k = matrix.entries() - 1; k > 0; --k) {
    const auto a = static_cast<std::size_t>(k);
    const auto b = static_cast<std::size_t>(random.below(k + 1));
    std::swap(matrix.row_indices[a], matrix.row_indices[b]);
    std::swap(matrix.column_indices[a], matrix.column_indices[b]);
    std::swap(matrix.values[a], matrix.values[b]);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("CSR survives the way to COO and back, in order, column-major and shuffled", T, float, double) {
  test::Random random(2);
  for (const auto& [rows, columns] :
       {std::pair{0, 0}, {0, 7}, {7, 0}, {1, 1}, {17, 33}, {65, 16}, {3, 5000}, {5000, 3}}) {
    for (const double density : {0.0, 0.1, 1.0}) {
      const auto matrix = test::random_csr<T>(random, rows, columns, density, 1);
      CooMatrix<T> coordinates = to_coo(matrix);
      CanonicalReport report;
      CHECK(to_csr(coordinates, Duplicates::reject, &report) == matrix);
      CHECK_FALSE(report.sorted_rows);
      shuffle(random, coordinates);
      CHECK(to_csr(coordinates, Duplicates::reject, &report) == matrix);
      CHECK(report.sorted_rows == (to_coo(matrix) != coordinates));
      CHECK(to_csr(static_cast<const CooPattern&>(coordinates)) == static_cast<const CsrPattern&>(matrix));

      CooMatrix<T> column_major = to_coo(transpose(matrix));
      std::swap(column_major.rows, column_major.columns);
      std::swap(column_major.row_indices, column_major.column_indices);
      CHECK(to_csr(column_major, Duplicates::reject) == matrix);
    }
  }
}

TEST_CASE("entries with indices of more than one digit are sorted by all of them") {
  CooPattern coordinates{3000000, 2147483647, {}, {}};
  for (std::int32_t k = 0; k < 1000; ++k) {
    coordinates.row_indices.push_back(k * 7919 % 5 * 600000);
    coordinates.column_indices.push_back((k * 104729 % 1000) * 2147483);
  }
  const CsrPattern matrix = to_csr(coordinates);
  CHECK(error_of([&] { validate(matrix); }) == "no error");
  CHECK(matrix.view().entries() == 1000);
  CHECK(matrix.column_indices[0] == 0);
  CHECK(matrix.column_indices.back() % 2147483 == 0);
}

TEST_CASE("duplicates are merged, their values added up in the order in which they stand") {
  const CooMatrix<float> coordinates{{2, 3, {1, 0, 1, 1, 0}, {2, 1, 0, 2, 1}}, {1e8F, 1, 5, -1e8F, 2}};
  CanonicalReport report;
  const CsrMatrix<float> expected{{2, 3, {0, 1, 3}, {1, 0, 2}}, {3, 5, 0}};
  CHECK(to_csr(coordinates, Duplicates::merge, &report) == expected);
  CHECK(report.duplicates_merged == 2);
  CHECK(report.sorted_rows);

  // In float, (1e8 + 1) - 1e8 is 0 and (1e8 - 1e8) + 1 is 1.
  const CooMatrix<float> ordered{{1, 2, {0, 0, 0, 0}, {1, 0, 0, 0}}, {7, 1e8F, 1, -1e8F}};
  CHECK(to_csr(ordered).values == std::vector<float>{0, 7});
  const CooMatrix<float> reordered{{1, 2, {0, 0, 0, 0}, {1, 0, 0, 0}}, {7, 1e8F, -1e8F, 1}};
  CHECK(to_csr(reordered).values == std::vector<float>{1, 7});
}

TEST_CASE("a sorted list with duplicates is merged without a sort") {
  CanonicalReport report;
  CHECK(to_csr(CooPattern{2, 2, {0, 0, 1}, {1, 1, 1}}, Duplicates::merge, &report) ==
        CsrPattern{2, 2, {0, 1, 2}, {1, 1}});
  CHECK(report.duplicates_merged == 1);
  CHECK_FALSE(report.sorted_rows);
}

TEST_CASE("duplicates can be rejected by name") {
  CHECK(error_of([] {
          to_csr(CooPattern{3, 3, {2, 1, 2}, {0, 1, 0}}, Duplicates::reject);
        }) == "invalid_structure: the entry at row 2, column 0 stands more than once");
}

TEST_CASE("a broken COO or CSR matrix is not converted") {
  CHECK(error_of([] {
          to_csr(CooPattern{1, 1, {0}, {1}});
        }) == "invalid_structure: column_indices[0] = 1 is outside [0, 1)");
  CHECK(error_of([] {
          to_coo(CsrPattern{1, 1, {0, 9}, {0}});
        }) == "invalid_structure: row_offsets[1] = 9, expected the size of column_indices, 1");
}
