#include "storage/feature_panels.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "cobble/convert.hpp"
#include "support/random.hpp"
#include "support/sparse.hpp"

namespace cobble::detail {
namespace {

constexpr std::int64_t kRows = 13;
constexpr std::int64_t kFeatures = 11;
constexpr double kUntouched = -99;

/// Both panels of rows [begin, end), and what gather_rows makes of the first.
template <class Matrix>
void check_panels(const Matrix& matrix, const std::vector<double>& dense, std::int64_t begin, std::int64_t end) {
  CAPTURE(begin);
  CAPTURE(end);
  const std::int64_t stride = kFeatures + 3;
  std::vector<double> panel(static_cast<std::size_t>((end - begin) * stride), kUntouched);
  densify_rows(matrix.view(), begin, end, panel.data(), stride);
  const std::int64_t height = end - begin + 2;
  std::vector<double> turned(static_cast<std::size_t>(kFeatures * height), kUntouched);
  densify_rows_transposed(matrix.view(), begin, end, turned.data(), height);
  std::int64_t wrong = 0;
  for (std::int64_t row = 0; row < height; ++row) {
    for (std::int64_t feature = 0; feature < stride; ++feature) {
      const bool inside = row < end - begin && feature < kFeatures;
      const double expected =
          inside ? dense[static_cast<std::size_t>((begin + row) * kFeatures + feature)] : kUntouched;
      if (row < end - begin) wrong += panel[static_cast<std::size_t>(row * stride + feature)] == expected ? 0 : 1;
      if (feature < kFeatures) wrong += turned[static_cast<std::size_t>(feature * height + row)] == expected ? 0 : 1;
    }
  }
  CHECK(wrong == 0);

  // Back again, doubled: those rows' entries change, all else remains.
  for (double& value : panel) value *= 2;
  Matrix gathered = matrix;
  gather_rows(matrix.view(), begin, end, panel.data(), stride, gathered.values.data());
  std::vector<double> expected = dense;
  for (std::int64_t i = begin * kFeatures; i < end * kFeatures; ++i) expected[static_cast<std::size_t>(i)] *= 2;
  std::vector<double> found(dense.size());
  densify_rows(gathered.view(), 0, kRows, found.data(), kFeatures);
  CHECK(found == expected);
}

TEST_CASE("panels of any rows, of CSR and BSR of any block size") {
  test::Random random(5);
  const CsrMatrix<double> csr = test::random_csr<double>(random, kRows, kFeatures, 0.2, 1);
  const std::vector<double> dense = test::dense_of(csr);
  for (std::int64_t begin = 0; begin <= kRows; begin += 3) {
    for (std::int64_t end = begin; end <= kRows; end += 2) {
      check_panels(csr, dense, begin, end);
      for (const test::Size block : {test::Size{1, 1}, {2, 3}, {4, 4}, {16, 2}, {3, 16}}) {
        CAPTURE(test::to_string(block));
        BsrMatrix<double> bsr = to_bsr(csr, block.rows, block.columns);
        bsr.bits.clear();
        check_panels(bsr, dense, begin, end);
      }
    }
  }
}

TEST_CASE("the padding of ragged blocks is never read or written") {
  BsrMatrix<double> matrix = to_bsr(CsrMatrix<double>{{3, 3, {0, 0, 0, 1}, {2}}, {5}}, 2, 2);
  matrix.bits.clear();
  matrix.values = {5, 1e300, 1e300, 1e300};
  std::vector<double> panel(9);
  densify_rows(matrix.view(), 0, 3, panel.data(), 3);
  CHECK(panel == std::vector<double>{0, 0, 0, 0, 0, 0, 0, 0, 5});
  panel.back() = 6;
  std::vector<double> values(4, kUntouched);
  gather_rows(matrix.view(), 0, 3, panel.data(), 3, values.data());
  CHECK(values == std::vector<double>{6, kUntouched, kUntouched, kUntouched});
}

}  // namespace
}  // namespace cobble::detail
