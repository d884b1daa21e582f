#include "cobble/interop/eigen.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/error_of.hpp"
#include "support/sparse.hpp"

using namespace cobble;
using cobble::test::error_of;

namespace {

template <class T, int Order, class StorageIndex>
using Sparse = Eigen::SparseMatrix<T, Order, StorageIndex>;

/// By Eigen's own means.
template <class Matrix, class T>
Matrix eigen_from(const CsrMatrix<T>& matrix) {
  std::vector<Eigen::Triplet<T, typename Matrix::StorageIndex>> triplets;
  const CooMatrix<T> coordinates = to_coo(matrix);
  for (std::size_t k = 0; k < coordinates.values.size(); ++k) {
    triplets.emplace_back(coordinates.row_indices[k], coordinates.column_indices[k], coordinates.values[k]);
  }
  Matrix result(matrix.rows, matrix.columns);
  result.setFromTriplets(triplets.begin(), triplets.end());
  return result;
}

template <class T>
CsrMatrix<T> copy_of(const CsrView<T>& view) {
  return {{view.rows,
           view.columns,
           {view.row_offsets.begin(), view.row_offsets.end()},
           {view.column_indices.begin(), view.column_indices.end()}},
          {view.values.begin(), view.values.end()}};
}

constexpr std::pair<int, int> kSizes[] = {{0, 0}, {0, 7}, {7, 0}, {1, 1}, {17, 33}};

template <class T, class StorageIndex>
void check_round_trips() {
  test::Random random(7);
  for (const auto& [rows, columns] : kSizes) {
    for (const double density : {0.0, 0.3, 1.0}) {
      const auto matrix = test::random_csr<T>(random, rows, columns, density, 1);
      const auto row_major = eigen_from<Sparse<T, Eigen::RowMajor, StorageIndex>>(matrix);
      const auto column_major = eigen_from<Sparse<T, Eigen::ColMajor, StorageIndex>>(matrix);
      CHECK(copy_of(csr_view(row_major).view()) == matrix);
      CHECK(copy_of(transposed_csr_view(column_major).view()) == transpose(matrix));
      CHECK(csr_from_eigen(row_major) == matrix);
      CHECK(csr_from_eigen(column_major) == matrix);
      CHECK(csr_pattern_from_eigen(column_major) == static_cast<const CsrPattern&>(matrix));

      const auto map = eigen_sparse_map<StorageIndex>(matrix);
      CHECK(map.map().rows() == rows);
      CHECK(map.map().cols() == columns);
      CHECK((map.map().toDense().array() == row_major.toDense().array()).all());
      CHECK((map.transposed_map().toDense().array() == row_major.toDense().transpose().array()).all());
      CHECK(copy_of(csr_view(map.map()).view()) == matrix);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("sparse matrices survive the way to Eigen and back", StorageIndex, int, std::int64_t, long long,
                   std::ptrdiff_t, short) {
  check_round_trips<float, StorageIndex>();
  check_round_trips<double, StorageIndex>();
}

TEST_CASE("with int indices, values and column indices are shared both ways") {
  test::Random random(8);
  const auto matrix = test::random_csr<float>(random, 9, 11, 0.4);
  const auto eigen = eigen_from<Sparse<float, Eigen::RowMajor, int>>(matrix);
  const auto holder = csr_view(eigen);
  CHECK(holder.view().values.data() == eigen.valuePtr());
  CHECK(holder.view().column_indices.data() == eigen.innerIndexPtr());

  const auto map = eigen_sparse_map(matrix);
  CHECK(map.map().valuePtr() == matrix.values.data());
  CHECK(map.map().innerIndexPtr() == matrix.column_indices.data());
}

TEST_CASE("with int64 indices, values and row offsets are shared both ways") {
  test::Random random(9);
  const auto matrix = test::random_csr<double>(random, 9, 11, 0.4);
  const auto eigen = eigen_from<Sparse<double, Eigen::ColMajor, std::int64_t>>(matrix);
  const auto holder = transposed_csr_view(eigen);
  CHECK(holder.view().values.data() == eigen.valuePtr());
  CHECK(holder.view().row_offsets.data() == eigen.outerIndexPtr());

  const auto map = eigen_sparse_map<std::int64_t>(matrix);
  CHECK(map.transposed_map().valuePtr() == matrix.values.data());
  CHECK(map.transposed_map().outerIndexPtr() == matrix.row_offsets.data());
}

TEST_CASE("a holder stays valid when it is moved or copied") {
  test::Random random(10);
  const auto matrix = test::random_csr<double>(random, 9, 11, 0.4);
  const auto eigen = eigen_from<Sparse<double, Eigen::RowMajor, short>>(matrix);
  auto holder = csr_view(eigen);
  auto copy = holder;
  const auto moved = std::move(holder);
  CHECK(copy_of(moved.view()) == matrix);
  CHECK(copy_of(copy.view()) == matrix);
  auto map = eigen_sparse_map<short>(matrix);
  const auto moved_map = std::move(map);
  CHECK((moved_map.map().toDense().array() == eigen.toDense().array()).all());
}

TEST_CASE("Map, Ref and runs of rows are taken as they are") {
  test::Random random(11);
  const auto matrix = test::random_csr<double>(random, 10, 12, 0.5);
  const auto eigen = eigen_from<Sparse<double, Eigen::RowMajor, std::int64_t>>(matrix);
  const Eigen::Map<const Sparse<double, Eigen::RowMajor, std::int64_t>> map(
      10, 12, eigen.nonZeros(), eigen.outerIndexPtr(), eigen.innerIndexPtr(), eigen.valuePtr());
  CHECK(copy_of(csr_view(map).view()) == matrix);
  const Eigen::Ref<const Sparse<double, Eigen::RowMajor, std::int64_t>> ref(eigen);
  CHECK(copy_of(csr_view(ref).view()) == matrix);

  const auto rows = eigen.middleRows(3, 4);
  const auto holder = csr_view(rows);
  CHECK(holder.view().values.data() == eigen.valuePtr() + matrix.row_offsets[3]);
  CHECK(copy_of(holder.view()) == csr_from_eigen(Sparse<double, Eigen::RowMajor, std::int64_t>(rows)));
  CHECK(csr_from_eigen(rows) == copy_of(holder.view()));
}

TEST_CASE("a matrix that is not compressed is packed") {
  Sparse<float, Eigen::RowMajor, int> eigen(3, 4);
  eigen.reserve(Eigen::VectorXi::Constant(3, 4));
  eigen.insert(0, 3) = 1;
  eigen.insert(2, 1) = 2;
  eigen.insert(2, 0) = 3;
  REQUIRE_FALSE(eigen.isCompressed());
  const CsrMatrix<float> expected{{3, 4, {0, 1, 1, 3}, {3, 0, 1}}, {1, 3, 2}};
  CHECK(copy_of(csr_view(eigen).view()) == expected);
  CHECK(csr_from_eigen(eigen) == expected);
  CHECK(copy_of(csr_view(eigen.middleRows(2, 1)).view()) == CsrMatrix<float>{{1, 4, {0, 2}, {0, 1}}, {3, 2}});
}

TEST_CASE("unsorted and repeated columns are an error in a view and canonical in a copy") {
  const std::vector<int> offsets{0, 3};
  const std::vector<int> columns{2, 0, 2};
  const std::vector<double> values{1, 2, 4};
  const Eigen::Map<const Sparse<double, Eigen::RowMajor, int>> map(1, 3, 3, offsets.data(), columns.data(),
                                                                   values.data());
  CHECK(error_of([&] { csr_view(map); }) ==
        "invalid_structure: column_indices[1] = 0 in row 0 comes after column_indices[0] = 2; columns must increase "
        "within a row");
  CHECK(csr_from_eigen(map) == CsrMatrix<double>{{1, 3, {0, 2}, {0, 2}}, {2, 5}});
  CHECK(error_of([&] { csr_from_eigen(map, Duplicates::reject); }) ==
        "invalid_structure: the entry at row 0, column 2 stands more than once");
}

TEST_CASE("indices and offsets that are out of range are errors, never truncated") {
  const double value = 1;
  const std::int64_t column = (std::int64_t{1} << 32) + 1;  // 1 when truncated
  const std::vector<std::int64_t> offsets{0, 1};
  const Eigen::Map<const Sparse<double, Eigen::RowMajor, std::int64_t>> map(1, 3, 1, offsets.data(), &column, &value);
  const char* message = "= 4294967297 does not fit the range [-2147483648, 2147483647]";
  CHECK(error_of([&] { csr_view(map); }) == std::string("overflow: a column index ") + message);
  CHECK(error_of([&] { csr_from_eigen(map); }) == std::string("overflow: an inner index ") + message);

  const std::vector<std::int64_t> no_entries{0, 0};
  const Eigen::Map<const Sparse<double, Eigen::RowMajor, std::int64_t>> wide(1, std::int64_t{1} << 31, 0,
                                                                             no_entries.data(), nullptr, nullptr);
  CHECK(error_of([&] { csr_view(wide); }) == "overflow: columns = 2147483648 does not fit the range [0, 2147483647]");

  const std::vector<int> falling{0, 2, 1};
  const std::vector<int> columns{0, 1};
  const std::vector<double> values{1, 2};
  const Eigen::Map<const Sparse<double, Eigen::RowMajor, int>> broken(2, 3, 1, falling.data(), columns.data(),
                                                                      values.data());
  CHECK(error_of([&] { csr_view(broken); }) == "invalid_structure: outerIndexPtr()[2] = 1 is less than the one before");
  CHECK(error_of([&] { csr_from_eigen(broken); }) ==
        "invalid_structure: outerIndexPtr()[2] = 1 is less than the one before");

  CsrMatrix<float> full{{2, 20000, {0, 20000, 40000}, {}}, std::vector<float>(40000)};
  for (int k = 0; k < 40000; ++k) full.column_indices.push_back(k % 20000);
  CHECK(error_of([&] { eigen_sparse_map<short>(full); }) ==
        "overflow: the number of entries = 40000 does not fit the range [-32768, 32767]");
}

TEST_CASE("a pattern comes from a sparse matrix of any scalar in one line, stored zeros included") {
  Sparse<bool, Eigen::ColMajor, int> eigen(2, 3);
  eigen.insert(1, 0) = true;
  eigen.insert(0, 2) = false;
  const Pattern pattern = pattern_from_eigen(eigen);
  CHECK(pattern.to_csr() == CsrPattern{2, 3, {0, 1, 2}, {2, 0}});
}

TEST_CASE("a dense matrix is a tensor without a copy, whatever its order and strides") {
  Eigen::MatrixXd column_major(3, 2);
  column_major << 1, 2, 3, 4, 5, 6;
  const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> row_major = column_major;

  const TensorView<double> a = tensor_view(column_major);
  CHECK(a.data() == column_major.data());
  CHECK(a.shape() == TensorShape{1, 1, 3, 2});
  CHECK(a(0, 0, 2, 0) == 5);
  a(0, 0, 2, 0) = 7;
  CHECK(column_major(2, 0) == 7);

  const TensorView<const double> b = tensor_view(row_major);
  CHECK(b.data() == row_major.data());
  CHECK(b(0, 0, 2, 1) == 6);
  CHECK(tensor_view(row_major.transpose())(0, 0, 1, 2) == 6);
  CHECK(tensor_view(row_major.bottomRows(2))(0, 0, 0, 1) == 4);

  const Eigen::Map<const Eigen::MatrixXd, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>> strided(
      row_major.data(), 2, 2, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(1, 4));
  CHECK(tensor_view(strided)(0, 0, 1, 1) == 6);
  const Eigen::Ref<const Eigen::MatrixXd, 0, Eigen::OuterStride<>> ref(column_major.topRows(2));
  CHECK(tensor_view(ref)(0, 0, 1, 1) == 4);
  const Eigen::Vector3f vector(1, 2, 3);
  CHECK(tensor_view(vector)(0, 0, 2, 0) == 3);
}

TEST_CASE("heads may lie side by side in the columns") {
  Eigen::MatrixXf matrix(2, 6);
  matrix << 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11;
  const auto view = tensor_view(matrix, 3);
  CHECK(view.shape() == TensorShape{1, 3, 2, 2});
  CHECK(view(0, 2, 1, 0) == 10);
  CHECK(view(0, 1, 0, 1) == 3);
  CHECK(error_of([&] { tensor_view(matrix, 4); }) ==
        "shape_mismatch: the matrix has 6 columns, expected a multiple of heads = 4");
  CHECK(error_of([&] { tensor_view(matrix, 0); }) == "invalid_argument: heads = 0, expected at least 1");
}

TEST_CASE("a slice of a tensor is an Eigen map without a copy") {
  Tensor<float> tensor(TensorShape{2, 3, 4, 5});
  for (std::size_t k = 0; k < tensor.values().size(); ++k) tensor.values()[k] = static_cast<float>(k);
  auto slice = eigen_map(tensor, 1, 2);
  CHECK(slice.rows() == 4);
  CHECK(slice.cols() == 5);
  CHECK(slice.data() == &tensor(1, 2, 0, 0));
  CHECK(slice(3, 4) == tensor(1, 2, 3, 4));
  slice(3, 4) = -1;
  CHECK(tensor(1, 2, 3, 4) == -1);

  const TensorView<const float> turned(tensor.data(), {1, 1, 5, 4}, {0, 0, 1, 5});
  const Eigen::MatrixXf product = eigen_map(turned) * eigen_map(std::as_const(tensor));
  CHECK(product.rows() == 5);
  CHECK(product(0, 0) == 0 + 25 + 100 + 225);

  const TensorView<const float> broadcast(tensor.data() + 7, {1, 1, 3, 2}, {0, 0, 0, 1});
  CHECK(eigen_map(broadcast)(2, 1) == 8);
  CHECK(eigen_map(broadcast).sum() == 45);
}

TEST_CASE("a slice that does not exist, or that Eigen cannot express, is an error") {
  Tensor<float> tensor(TensorShape{2, 3, 4, 5});
  CHECK(error_of([&] { eigen_map(tensor, 2, 0); }) ==
        "invalid_argument: batch 2, head 0 of a tensor of 2 x 3 (batch x heads)");
  CHECK(error_of([&] { eigen_map(tensor, 0, -1); }) ==
        "invalid_argument: batch 0, head -1 of a tensor of 2 x 3 (batch x heads)");
  const TensorView<float> reversed(tensor.data() + 3, {1, 1, 2, 2}, {0, 0, -2, 1});
  CHECK(error_of([&] { eigen_map(reversed); }) ==
        "unsupported: strides of -2 x 1 (tokens x features); Eigen has no negative ones");
}
