#include "files/npy_pattern.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/error_of.hpp"
#include "support/memory_files.hpp"

using cobble::CsrMatrix;
using cobble::CsrPattern;
using cobble::ReadOptions;
using cobble::ReadReport;
using cobble::test::error_of;
using cobble::test::npy;
using cobble::test::npy_with_header;
using cobble::test::raw;
using cobble::test::read_csr_text;
using cobble::test::read_pattern_text;

namespace {

/// 2 x 3: pairs (0, 1), (0, 2), (1, 0).
const CsrPattern kExpected{2, 3, {0, 2, 3}, {1, 2, 0}};

template <class T>
CsrPattern dense(const char* type) {
  return read_pattern_text(npy(type, {2, 3}, raw(std::vector<T>{0, 1, 2, 3, 0, 0})), "a.npy");
}

}  // namespace

TEST_CASE("what is not 0 in a dense array of any type is a pair") {
  CHECK(read_pattern_text(npy("|b1", {2, 3}, std::string("\0\1\1\1\0\0", 6)), "a.npy") == kExpected);
  CHECK(dense<std::int8_t>("|i1") == kExpected);
  CHECK(dense<std::uint8_t>("|u1") == kExpected);
  CHECK(dense<std::int16_t>("<i2") == kExpected);
  CHECK(dense<std::uint16_t>("<u2") == kExpected);
  CHECK(dense<std::int32_t>("<i4") == kExpected);
  CHECK(dense<std::uint32_t>("<u4") == kExpected);
  CHECK(dense<std::int64_t>("<i8") == kExpected);
  CHECK(dense<std::uint64_t>("<u8") == kExpected);
  CHECK(dense<float>("<f4") == kExpected);
  CHECK(dense<double>("<f8") == kExpected);
  const std::vector<std::uint16_t> halves{0, 1, 0x3C00, 0x7C00, 0x8000, 0};  // 0, tiny, 1, infinity, -0, 0
  CHECK(read_pattern_text(npy("<f2", {2, 3}, raw(halves)), "a.npy") == kExpected);
  const std::vector<float> complex8{0, 0, 1, 0, 0, 1, 1, 1, 0, -0.0F, 0, 0};
  CHECK(read_pattern_text(npy("<c8", {2, 3}, raw(complex8)), "a.npy") == kExpected);
  const std::vector<double> complex16{0, 0, 1, 0, 0, 1, 1, 1, 0, -0.0, 0, 0};
  CHECK(read_pattern_text(npy("<c16", {2, 3}, raw(complex16)), "a.npy") == kExpected);
}

TEST_CASE("values of a dense array are its non-zeros, in both orders") {
  const CsrMatrix<double> c_order = read_csr_text(npy("<f4", {2, 2}, raw(std::vector<float>{0, 1, 2, 3})), "a.npy");
  CHECK(c_order.column_indices == std::vector<std::int32_t>{1, 0, 1});
  CHECK(c_order.values == std::vector<double>{1, 2, 3});
  const std::string fortran = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
  ReadReport report;
  const CsrMatrix<double> f_order =
      read_csr_text(npy_with_header(fortran, std::string("\0\0\0\3\0\1\0\0\xff\xff\0\0", 12)), "a.npy", {}, &report);
  CHECK(static_cast<const CsrPattern&>(f_order) == kExpected);
  CHECK(f_order.values == std::vector<double>{1, -1, 3});
  CHECK(report.format == cobble::FileFormat::npy);
  CHECK(report.stored_entries == 3);
  CHECK_FALSE(report.sorted_rows);
}

TEST_CASE("padded lists give a pattern when asked for") {
  const std::string lists = npy("<i4", {3, 3}, raw(std::vector<std::int32_t>{2, -1, 0, -1, -1, -1, 1, 1, 2}));
  ReadReport report;
  CHECK(read_pattern_text(lists, "a.npy", {.padded_lists = true}, &report) ==
        CsrPattern{3, 3, {0, 2, 2, 4}, {0, 2, 1, 2}});
  CHECK(report.stored_entries == 5);
  CHECK(report.duplicates_merged == 1);
  CHECK(report.sorted_rows);
  CHECK(report.empty_rows == 1);
  CHECK(read_pattern_text(lists, "a.npy", {.padded_lists = true, .list_columns = 100}).columns == 100);
  CHECK(read_csr_text(lists, "a.npy", {.padded_lists = true}).values == std::vector<double>{1, 1, 2, 1});
}

TEST_CASE("columns of padded lists out of range are errors") {
  const auto fault = [](std::int32_t column, std::int64_t columns) {
    const std::string lists = npy("<i4", {2, 2}, raw(std::vector<std::int32_t>{0, 1, column, -1}));
    return error_of([&] { read_pattern_text(lists, "a.npy", {.padded_lists = true, .list_columns = columns}); });
  };
  CHECK(fault(2, 0) == "file_format: a.npy: list[1, 0] = 2, expected -1 or a column in [0, 2)");
  CHECK(fault(-2, 0) == "file_format: a.npy: list[1, 0] = -2, expected -1 or a column in [0, 2)");
  CHECK(fault(0, -5) == "invalid_argument: list_columns = -5, expected a number of columns, or 0 for as many as rows");
  const ReadOptions options{.padded_lists = true};
  CHECK(error_of([&] {
          read_pattern_text(npy("<f4", {1, 1}, raw(std::vector<float>{0})), "a.npy", options);
        }) == "file_format: a.npy: found elements of type '<f4', expected integers");
  CHECK(error_of([&] { read_pattern_text("0, 0, 0\n0\n", "a.smtx", options); }) ==
        "file_format: a.smtx: padded lists are read from a .npy array only");
}

TEST_CASE("arrays that are no matrix, or of text, are no pattern") {
  CHECK(error_of([] { read_pattern_text(npy("|b1", {3}, "abc"), "a.npy"); }) ==
        "file_format: a.npy: found an array of shape (3,), expected a matrix: 2 axes");
  CHECK(error_of([] {
          read_pattern_text(npy("|S1", {1, 3}, "abc"), "a.npy");
        }) == "file_format: a.npy: found elements of type '|S1', expected numbers");
  CHECK(error_of([] {
          read_pattern_text(npy("|b1", {0, 99999999}, ""), "a.npy");
        }) ==
        "file_format: a.npy: found 99999999 columns in a file of 128 bytes, expected at most 4194304, or 64 for each"
        " byte");
  CHECK(error_of([] {
          read_csr_text(npy("<c8", {1, 1}, std::string(8, '\1')), "a.npy");
        }) == "file_format: a.npy: found elements of type '<c8', expected real numbers");
}
