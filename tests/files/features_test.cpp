#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cobble/compressed.hpp"
#include "cobble/convert.hpp"
#include "cobble/files.hpp"
#include "support/error_of.hpp"
#include "support/memory_files.hpp"
#include "support/random.hpp"
#include "support/sparse.hpp"

namespace cobble {
namespace {

using test::error_of;
using test::Member;
using test::TemporaryDirectory;

Features<float> read_text(const std::string& text, const std::string& name, const ReadOptions& options = {}) {
  return read_features_from_memory<float>(test::bytes_of(text), name, options);
}

/// Members of SciPy's CSR: 2 x 3 tokens x features.
std::string scipy_csr(const std::vector<std::int32_t>& offsets, const std::vector<std::int32_t>& indices,
                      const std::vector<float>& values) {
  const auto count = [](const auto& array) { return std::vector<std::int64_t>{std::ssize(array)}; };
  return test::npz({{"format", "|S3", {}, "csr"},
                    {"shape", "<i8", {2}, test::raw<std::int64_t>({2, 3})},
                    {"indptr", "<i4", count(offsets), test::raw(offsets)},
                    {"indices", "<i4", count(indices), test::raw(indices)},
                    {"data", "<f4", count(values), test::raw(values)}});
}

/// The same of BSR: 2 x 4 in blocks of 1 x 2.
std::string scipy_bsr(const std::vector<std::int32_t>& offsets, const std::vector<std::int32_t>& indices,
                      const std::vector<float>& values, const std::vector<std::int64_t>& shape = {2, 4}) {
  const auto count = [](const auto& array) { return std::vector<std::int64_t>{std::ssize(array)}; };
  return test::npz({{"format", "|S3", {}, "bsr"},
                    {"shape", "<i8", {2}, test::raw(shape)},
                    {"indptr", "<i4", count(offsets), test::raw(offsets)},
                    {"indices", "<i4", count(indices), test::raw(indices)},
                    {"data", "<f4", {std::ssize(values) / 2, 1, 2}, test::raw(values)}});
}

TEST_CASE("CSR, BSR and dense features round-trip in their own storage") {
  const TemporaryDirectory directory;
  test::Random random(8);
  const CsrMatrix<double> matrix = test::random_csr<double>(random, 12, 8, 0.3);
  const CsrTensor<double> csr(matrix);
  for (const char* name : {"csr.npz", "csr.mtx"}) {
    CAPTURE(name);
    write_features<double>(directory / name, csr);
    CHECK(std::get<CsrTensor<double>>(read_features<double>(directory / name)) == csr);
  }
  const BsrTensor<double> bsr(to_bsr(matrix, 4, 2));
  write_features<double>(directory / "bsr.npz", bsr);
  CHECK(std::get<BsrTensor<double>>(read_features<double>(directory / "bsr.npz")) == bsr);

  Tensor<float> dense({2, 1, 3, 2});
  for (std::size_t i = 0; i < dense.values().size(); ++i) dense.values()[i] = static_cast<float>(i) / 3;
  write_features<float>(directory / "dense.npy", dense);
  const auto read = std::get<Tensor<float>>(read_features<float>(directory / "dense.npy"));
  CHECK(read.shape() == dense.shape());
  CHECK(std::equal(read.values().begin(), read.values().end(), dense.values().begin()));
}

TEST_CASE("one batch entry and head of dense features is a matrix, whatever its strides") {
  const TemporaryDirectory directory;
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const TensorView<const float> turned(values.data(), {1, 1, 3, 2}, {0, 0, 1, 3});
  write_features<float>(directory / "a.npy", turned);
  const NumpyArray<float> array = read_npy<float>(directory / "a.npy");
  CHECK(array.shape == std::vector<std::int64_t>{3, 2});
  CHECK(std::vector<float>(array.values.begin(), array.values.end()) == std::vector<float>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("blocks that a format cannot hold are written as CSR") {
  const TemporaryDirectory directory;
  test::Random random(9);
  const CsrMatrix<float> matrix = test::random_csr<float>(random, 11, 8, 0.2);
  const BsrTensor<float> ragged(to_bsr(matrix, 4, 4));
  const CsrTensor<float> expected(to_csr(ragged.at(0, 0)));
  write_features<float>(directory / "ragged.npz", ragged);
  CHECK(std::get<CsrTensor<float>>(read_features<float>(directory / "ragged.npz")) == expected);
  write_features<float>(directory / "blocks.mtx", ragged);
  CHECK(std::get<CsrTensor<float>>(read_features<float>(directory / "blocks.mtx")) == expected);
}

TEST_CASE("NaN and infinity are values like others") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto tensor =
      std::get<CsrTensor<float>>(read_text(scipy_csr({0, 2, 3}, {0, 2, 1}, {nan, infinity, 0}), "a.npz"));
  CHECK(std::isnan(tensor.at(0, 0).values[0]));
  CHECK(tensor.at(0, 0).values[1] == infinity);
  CHECK(tensor.nnz() == 3);  // the stored zero too
}

TEST_CASE("unsorted rows are sorted and duplicates added up, or refused") {
  const std::string file = scipy_csr({0, 3, 3}, {2, 0, 2}, {1, 5, 2});
  ReadReport report;
  const Features<float> features = read_features_from_memory<float>(test::bytes_of(file), "a.npz", {}, &report);
  CHECK(std::get<CsrTensor<float>>(features).at(0, 0) == CsrMatrix<float>{{2, 3, {0, 2, 2}, {0, 2}}, {5, 3}});
  CHECK(report.duplicates_merged == 1);
  CHECK(report.sorted_rows);
  CHECK(report.format == FileFormat::npz);
  CHECK(error_of([&] { read_text(file, "a.npz", {.strict = true}); }).starts_with("file_format: a.npz"));
}

TEST_CASE("unsorted blocks are sorted and equal ones added up, or refused; NaN stays") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string file = scipy_bsr({0, 3, 3}, {1, 0, 1}, {1, nan, 3, 4, 5, 6});
  ReadReport report;
  const Features<float> features = read_features_from_memory<float>(test::bytes_of(file), "a.npz", {}, &report);
  const BsrMatrix<float>& matrix = std::get<BsrTensor<float>>(features).at(0, 0);
  CHECK(static_cast<const BsrPattern&>(matrix) == BsrPattern{2, 4, 1, 2, {0, 2, 2}, {0, 1}, {}});
  REQUIRE(matrix.values.size() == 4);
  CHECK(std::vector<float>(matrix.values.begin(), matrix.values.begin() + 3) == std::vector<float>{3, 4, 6});
  CHECK(std::isnan(matrix.values[3]));
  CHECK(report.duplicates_merged == 2);
  CHECK(error_of([&] { read_text(file, "a.npz", {.strict = true}); }).starts_with("file_format: a.npz"));
}

TEST_CASE("values of Matrix Market may be NaN; unsorted and equal entries are brought in order, or refused") {
  const std::string file = "%%MatrixMarket matrix coordinate real general\n2 3 4\n2 3 nan\n1 2 1\n1 1 inf\n1 2 2\n";
  const Features<float> features = read_text(file, "a.mtx");
  const CsrMatrix<float>& matrix = std::get<CsrTensor<float>>(features).at(0, 0);
  CHECK(static_cast<const CsrPattern&>(matrix) == CsrPattern{2, 3, {0, 2, 3}, {0, 1, 2}});
  REQUIRE(matrix.values.size() == 3);
  CHECK(matrix.values[0] == std::numeric_limits<float>::infinity());
  CHECK(matrix.values[1] == 3);
  CHECK(std::isnan(matrix.values[2]));
  CHECK(error_of([&] { read_text(file, "a.mtx", {.strict = true}); }).starts_with("file_format: a.mtx"));
}

TEST_CASE("malformed blocks are refused with one clear error") {
  CHECK(error_of([] {
          read_text(scipy_bsr({0, 1, 2}, {0, 2}, {1, 2, 3, 4}), "a.npz");
        }) == "file_format: a.npz: member 'indices.npy': indices[1] = 2 is out of range [0, 2)");
  CHECK(error_of([] {
          read_text(scipy_bsr({0, 2, 1}, {0, 1}, {1, 2, 3, 4}), "a.npz");
        }) == "file_format: a.npz: member 'indptr.npy': indptr[2] = 1 is less than indptr[1] = 2");
  CHECK(error_of([] {
          read_text(scipy_bsr({0, 2}, {0, 1}, {1, 2, 3, 4}), "a.npz");
        }) == "file_format: a.npz: member 'indptr.npy': found 2 offsets, expected 3");
  CHECK(error_of([] {
          read_text(scipy_bsr({0, 1, 2}, {0, 1}, {1, 2}), "a.npz");
        }) == "file_format: a.npz: member 'data.npy': found 1 blocks, expected as many as indices, 2");
  CHECK(error_of([] {
          read_text(scipy_bsr({0, 1, 2}, {0, 1}, {1, 2, 3, 4}, {2, 5}), "a.npz");
        }) ==
        "file_format: a.npz: member 'data.npy': found blocks of 1 x 2, expected sizes that divide the shape (2, 5)");
}

TEST_CASE("malformed features are refused with one clear error") {
  CHECK(error_of([] {
          read_text(scipy_csr({0, 1, 2}, {0, 3}, {1, 2}), "a.npz");
        }) == "file_format: a.npz: member 'indices.npy': indices[1] = 3 is out of range [0, 3)");
  CHECK(error_of([] {
          read_text(scipy_csr({0, 2, 1}, {0, 1}, {1, 2}), "a.npz");
        }) == "file_format: a.npz: member 'indptr.npy': indptr[2] = 1 is less than indptr[1] = 2");
  CHECK(error_of([] {
          read_text(scipy_csr({0, 1}, {0}, {1}), "a.npz");
        }) == "file_format: a.npz: member 'indptr.npy': found 2 offsets, expected 3");
  CHECK(error_of([] {
          read_text(scipy_csr({0, 1, 2}, {0, 1}, {1}), "a.npz");
        }) == "file_format: a.npz: member 'data.npy': found 1 values, expected 2");
  CHECK(error_of([] { read_text("%%MatrixMarket matrix coordinate real general\n2 3 1\n3 1 0.5\n", "a.mtx"); }) ==
        "file_format: a.mtx:3:1: found 3, expected a row index from 1 to 2");
  CHECK(error_of([] {
          read_text("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 half\n", "a.mtx");
        }).starts_with("file_format: a.mtx:3:5: "));
  CHECK(error_of([] {
          read_text(test::npy("<f4", {6}, test::raw<float>({1, 2, 3, 4, 5, 6})), "a.npy");
        }) ==
        "file_format: a.npy: found an array of shape (6,), expected tokens x features or batch x heads x tokens x "
        "features");
  CHECK(error_of([] {
          read_text(test::npz({{"query", "<f4", {1}, test::raw<float>({1})}}), "a.npz");
        }).starts_with("file_format: a.npz: has no member 'format.npy'"));
  CHECK(error_of([] { read_text("", "a.npy", {.padded_lists = true}); }).starts_with("file_format: a.npy"));
}

TEST_CASE("what a file cannot hold is refused and leaves none behind") {
  const TemporaryDirectory directory;
  const CsrMatrix<float> matrix{{1, 2, {0, 1}, {1}}, {3}};
  CHECK(error_of([&] {
          write_features<float>(directory / "a.npz", CsrTensor<float>({matrix, matrix}, 2, 1));
        }) == "unsupported: 2 compressed matrices, expected one batch entry and head in a sparse file");
  CHECK(error_of([&] {
          write_features<float>(directory / "a.npy", CsrTensor<float>(matrix));
        }).starts_with("invalid_argument: "));
  CHECK(error_of([&] {
          write_features<float>(directory / "a.mtx", Tensor<float>({1, 1, 0, 2}));
        }).ends_with("dense features are written to .npy"));
  CHECK(directory.names().empty());
}

}  // namespace
}  // namespace cobble
