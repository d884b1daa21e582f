#include "cobble/compressed.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cobble/convert.hpp"
#include "support/error_of.hpp"
#include "support/random.hpp"
#include "support/sparse.hpp"

namespace cobble {
namespace {

using test::error_of;

const CsrMatrix<float> kSmall{{2, 3, {0, 2, 3}, {0, 2, 1}}, {1, 2, 3}};

std::int64_t nnz_of(const FeaturesView<float>& features) { return features.nnz(); }

TEST_CASE("one matrix is a tensor of one batch entry and one head") {
  const CsrTensorView<float> tensor = kSmall.view();
  CHECK(tensor.shape() == TensorShape{1, 1, 2, 3});
  CHECK(tensor.nnz() == 3);
  CHECK(tensor.at(0, 0).values.data() == kSmall.values.data());
}

TEST_CASE("matrices stand by batch entry, then by head") {
  CsrMatrix<float> other = kSmall;
  other.values = {7, 8, 9};
  const CsrTensor<float> tensor({kSmall, other, kSmall, other, kSmall, other}, 2, 3);
  CHECK(tensor.shape() == TensorShape{2, 3, 2, 3});
  CHECK(tensor.nnz() == 18);
  CHECK(tensor.at(1, 0).values == other.values);
  CHECK(tensor.view().at(1, 1).values.data() == tensor.at(1, 1).values.data());
  CHECK(tensor.view().nnz() == 18);
}

TEST_CASE("features may be dense, CSR or BSR") {
  const Tensor<float> dense({1, 2, 5, 3});
  const CsrTensor<float> csr(kSmall);
  const BsrTensor<float> bsr(to_bsr(kSmall, 2, 2));
  CHECK(FeaturesView<float>(dense).storage() == FeatureStorage::dense);
  CHECK(FeaturesView<float>(csr).storage() == FeatureStorage::csr);
  CHECK(FeaturesView<float>(bsr).storage() == FeatureStorage::bsr);
  CHECK(FeaturesView<float>(bsr).bsr().at(0, 0).values.data() == bsr.at(0, 0).values.data());
  CHECK(FeaturesView<float>(csr).shape() == TensorShape{1, 1, 2, 3});
  CHECK(nnz_of(dense) == 30);
  CHECK(nnz_of(csr) == 3);
  CHECK(nnz_of(kSmall.view()) == 3);
  CHECK(nnz_of(Features<float>(csr)) == 3);
  CHECK(nnz_of(bsr) == 6);  // both blocks are stored; the second has one column inside the matrix
}

TEST_CASE("entries of ragged blocks count where they lie inside") {
  for (const test::Size block : {test::Size{1, 1}, {2, 3}, {4, 4}, {7, 2}, {16, 16}}) {
    CAPTURE(test::to_string(block));
    test::Random random(3);
    BsrMatrix<double> matrix = to_bsr(test::random_csr<double>(random, 13, 11, 0.1), block.rows, block.columns);
    matrix.bits.clear();
    CHECK(BsrTensor<double>(matrix).nnz() == to_csr(matrix).view().entries());
  }
}

TEST_CASE("absent entries of blocks become zeros") {
  BsrMatrix<float> blocks = to_bsr(kSmall, 2, 2);
  CHECK(!blocks.bits.empty());
  blocks.values[1] = std::numeric_limits<float>::quiet_NaN();  // pair (0, 1), which is not there
  const BsrTensor<float> tensor(blocks);
  CHECK(tensor.at(0, 0).bits.empty());
  CHECK(tensor.at(0, 0).values[1] == 0);
  CHECK(error_of([&] { BsrTensorView<float>{blocks.view()}; }) ==
        "unsupported: the blocks of features have bits, expected none: every entry of a stored block is stored, 0 "
        "where there is nothing");
}

TEST_CASE("values may be anything, structure may not") {
  CsrMatrix<float> matrix = kSmall;
  matrix.values[1] = std::numeric_limits<float>::quiet_NaN();
  CHECK(CsrTensor<float>(matrix).nnz() == 3);

  matrix.column_indices = {2, 0, 1};
  CHECK(error_of([&] { CsrTensor<float>{matrix}; }) ==
        "invalid_structure: column_indices[1] = 0 in row 0 comes after column_indices[0] = 2; columns must increase "
        "within a row");
  matrix.column_indices = {2, 2, 1};
  CHECK(error_of([&] { CsrTensorView<float>{matrix.view()}; }) ==
        "invalid_structure: column_indices[1] = 2 in row 0 repeats column_indices[0] = 2; columns must increase within "
        "a row");
  matrix.column_indices = {0, 3, 1};
  CHECK(error_of([&] {
          CsrTensor<float>({kSmall, matrix}, 1, 2);
        }) == "invalid_structure: batch entry 0, head 1: column_indices[1] = 3 in row 0 is outside [0, 3)");
  matrix = kSmall;
  matrix.values.pop_back();
  CHECK(error_of([&] { CsrTensor<float>{matrix}; }) ==
        "invalid_structure: values has 2 entries, expected the size of column_indices = 3");
}

TEST_CASE("each fault of blocks is named") {
  const BsrMatrix<float> good{{4, 6, 2, 3, {0, 2, 3}, {0, 1, 1}, {}}, std::vector<float>(18, 1)};
  CHECK(BsrTensor<float>(good).nnz() == 18);
  const auto error_with = [&](auto change) {
    BsrMatrix<float> matrix = good;
    change(matrix);
    const std::string of_view = error_of([&] { BsrTensorView<float>{matrix.view()}; });
    CHECK(error_of([&] { BsrTensor<float>{matrix}; }) == of_view);
    CHECK(error_of([&] {
            BsrTensor<float>({good, matrix}, 2, 1);
          }).find(": batch entry 1, head 0: ") != std::string::npos);
    return of_view;
  };
  CHECK(error_with([](auto& m) {
          m.block_column_indices = {1, 0, 1};
        }) ==
        "invalid_structure: block_column_indices[1] = 0 in block row 0 comes after block_column_indices[0] = 1; "
        "columns must increase within a row");
  CHECK(error_with([](auto& m) {
          m.block_column_indices = {1, 1, 1};
        }) ==
        "invalid_structure: block_column_indices[1] = 1 in block row 0 repeats block_column_indices[0] = 1; columns "
        "must increase within a row");
  CHECK(error_with([](auto& m) { m.block_column_indices[2] = 2; }) ==
        "invalid_structure: block_column_indices[2] = 2 in block row 1 is outside [0, 2)");
  CHECK(error_with([](auto& m) { m.block_column_indices[2] = -1; }) ==
        "invalid_structure: block_column_indices[2] = -1 in block row 1 is outside [0, 2)");
  CHECK(error_with([](auto& m) { m.block_row_offsets[1] = 4; }) ==
        "invalid_structure: block_row_offsets[2] = 3 is less than block_row_offsets[1] = 4");
  CHECK(error_with([](auto& m) { m.rows = 6; }) ==
        "invalid_structure: block_row_offsets has 3 entries, expected block rows + 1 = 4");
  CHECK(error_with([](auto& m) { m.values.pop_back(); }) ==
        "invalid_structure: values has 17 entries, expected blocks x block rows x block columns = 18");
  CHECK(error_with([](auto& m) { m.block_columns = 0; }) ==
        "invalid_argument: blocks of 2 x 0, expected at least 1 x 1");
}

TEST_CASE("matrices must be as many as batch x heads and of one size") {
  CHECK(error_of([] {
          CsrTensor<float>({kSmall, kSmall}, 3, 1);
        }) == "shape_mismatch: 2 compressed matrices, expected batch x heads = 3");
  const CsrMatrix<float> wider{{2, 4, {0, 0, 0}, {}}, {}};
  CHECK(error_of([&] {
          CsrTensor<float>({kSmall, wider}, 2, 1);
        }) ==
        "shape_mismatch: batch entry 1, head 0: 2 x 4 tokens x features, expected those of the first matrix, 2 x 3");
  CHECK(error_of([] { CsrTensor<float>({kSmall}, -1, -1); }) ==
        "invalid_argument: batch x heads has a negative factor, -1");
  CHECK(CsrTensor<float>(std::vector<CsrMatrix<float>>{}, 0, 4).shape() == TensorShape{0, 4, 0, 0});
}

TEST_CASE("in full, what is not stored is 0") {
  test::Random random(4);
  const CsrMatrix<double> first = test::random_csr<double>(random, 9, 7, 0.3);
  const CsrMatrix<double> second = test::random_csr<double>(random, 9, 7, 0.3);
  const Tensor<double> dense = to_dense(CsrTensor<double>({first, second}, 2, 1));
  CHECK(dense.shape() == TensorShape{2, 1, 9, 7});
  std::vector<double> expected = test::dense_of(first);
  const std::vector<double> rest = test::dense_of(second);
  expected.insert(expected.end(), rest.begin(), rest.end());
  CHECK(std::vector<double>(dense.values().begin(), dense.values().end()) == expected);

  const BsrTensor<double> blocks({to_bsr(first, 4, 3), to_bsr(second, 4, 3)}, 2, 1);
  const Tensor<double> from_blocks = to_dense(blocks);
  CHECK(std::vector<double>(from_blocks.values().begin(), from_blocks.values().end()) == expected);
}

}  // namespace
}  // namespace cobble
