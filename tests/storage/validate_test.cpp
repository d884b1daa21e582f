#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cobble/bsr.hpp"
#include "cobble/coo.hpp"
#include "cobble/csr.hpp"
#include "support/error_of.hpp"

using namespace cobble;
using cobble::test::error_of;

namespace {

/// 3 x 4: row 0 has columns 1 and 3, row 1 none, row 2 column 0.
CsrMatrix<float> valid_csr() { return {{3, 4, {0, 2, 2, 3}, {1, 3, 0}}, {1, 2, 3}}; }

/// 5 x 7 in blocks of 3 x 5 (the last ones 2 high and 2 wide), one of them in each block row.
BsrMatrix<double> valid_bsr() { return {{5, 7, 3, 5, {0, 1, 2}, {0, 1}, {0x7FFF, 0x63}}, std::vector<double>(30)}; }

template <class Matrix, class Change>
std::string error_after(Matrix matrix, Change change) {
  change(matrix);
  return error_of([&] { validate(matrix); });
}
template <class Change>
std::string csr_error(Change change) {
  return error_after(valid_csr(), change);
}
template <class Change>
std::string bsr_error(Change change) {
  return error_after(valid_bsr(), change);
}

}  // namespace

TEST_CASE("valid CSR matrices pass, empty ones included") {
  CHECK(csr_error([](auto&) {}) == "no error");
  CHECK(error_of([] { validate(CsrPattern{}); }) == "no error");
  CHECK(error_of([] { validate(CsrPattern{0, 5, {0}, {}}); }) == "no error");
  CHECK(error_of([] { validate(CsrPattern{2, 0, {0, 0, 0}, {}}); }) == "no error");
  CHECK(error_of([] { validate(CsrPattern{1, 2147483647, {0, 1}, {2147483646}}); }) == "no error");
}

TEST_CASE("each broken invariant of CSR is named") {
  CHECK(csr_error([](auto& m) { m.rows = -1; }) == "overflow: rows = -1 does not fit the range [0, 2147483647]");
  CHECK(csr_error([](auto& m) { m.columns = 2147483648; }) ==
        "overflow: columns = 2147483648 does not fit the range [0, 2147483647]");
  CHECK(csr_error([](auto& m) { m.row_offsets.pop_back(); }) ==
        "invalid_structure: row_offsets has 3 entries, expected rows + 1 = 4");
  CHECK(csr_error([](auto& m) { m.row_offsets = {}; }) ==
        "invalid_structure: row_offsets has 0 entries, expected rows + 1 = 4");
  CHECK(csr_error([](auto& m) { m.row_offsets[0] = 1; }) == "invalid_structure: row_offsets[0] = 1, expected 0");
  CHECK(csr_error([](auto& m) { m.row_offsets[2] = 1; }) ==
        "invalid_structure: row_offsets[2] = 1 is less than row_offsets[1] = 2");
  CHECK(csr_error([](auto& m) { m.row_offsets[3] = 4; }) ==
        "invalid_structure: row_offsets[3] = 4, expected the size of column_indices, 3");
  CHECK(csr_error([](auto& m) { m.column_indices[1] = 4; }) ==
        "invalid_structure: column_indices[1] = 4 in row 0 is outside [0, 4)");
  CHECK(csr_error([](auto& m) { m.column_indices[2] = -1; }) ==
        "invalid_structure: column_indices[2] = -1 in row 2 is outside [0, 4)");
  CHECK(csr_error([](auto& m) { m.column_indices[1] = 1; }) ==
        "invalid_structure: column_indices[1] = 1 in row 0 repeats column_indices[0] = 1; columns must increase within "
        "a row");
  CHECK(csr_error([](auto& m) { m.column_indices[1] = 0; }) ==
        "invalid_structure: column_indices[1] = 0 in row 0 comes after column_indices[0] = 1; columns must increase "
        "within a row");
  CHECK(csr_error([](auto& m) { m.values.pop_back(); }) ==
        "invalid_structure: values has 2 entries, expected the size of column_indices = 3");
}

TEST_CASE("hostile CSR offsets are rejected before anything is read through them") {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  CHECK(csr_error([](auto& m) { m.row_offsets[1] = kHuge; }) ==
        "invalid_structure: row_offsets[2] = 2 is less than row_offsets[1] = 9223372036854775807");
  CHECK(csr_error([](auto& m) {
          m.row_offsets = {0, kHuge, kHuge, kHuge};
        }) == "invalid_structure: row_offsets[3] = 9223372036854775807, expected the size of column_indices, 3");
  CHECK(csr_error([](auto& m) { m.row_offsets[1] = -kHuge; }) ==
        "invalid_structure: row_offsets[1] = -9223372036854775807 is less than row_offsets[0] = 0");
}

TEST_CASE("valid BSR matrices pass, with and without bits, empty ones included") {
  CHECK(bsr_error([](auto&) {}) == "no error");
  CHECK(bsr_error([](auto& m) { m.bits = {}; }) == "no error");
  CHECK(bsr_error([](auto& m) { m.bits = {0, 0}; }) == "no error");
  CHECK(error_of([] { validate(BsrPattern{}); }) == "no error");
  CHECK(error_of([] { validate(BsrPattern{0, 9, 4, 4, {0}, {}, {}}); }) == "no error");
  CHECK(error_of([] { validate(BsrPattern{9, 0, 4, 4, {0, 0, 0, 0}, {}, {}}); }) == "no error");
  CHECK(error_of([] { validate(BsrPattern{3, 3, 2147483647, 2147483647, {0, 1}, {0}, {}}); }) == "no error");
}

TEST_CASE("each broken invariant of BSR is named") {
  CHECK(bsr_error([](auto& m) { m.rows = 2147483648; }) ==
        "overflow: rows = 2147483648 does not fit the range [0, 2147483647]");
  CHECK(bsr_error([](auto& m) { m.columns = -7; }) == "overflow: columns = -7 does not fit the range [0, 2147483647]");
  CHECK(bsr_error([](auto& m) { m.block_rows = 0; }) == "invalid_argument: blocks of 0 x 5, expected at least 1 x 1");
  CHECK(bsr_error([](auto& m) { m.block_columns = -5; }) ==
        "invalid_argument: blocks of 3 x -5, expected at least 1 x 1");
  CHECK(bsr_error([](auto& m) { m.block_row_offsets.push_back(2); }) ==
        "invalid_structure: block_row_offsets has 4 entries, expected block rows + 1 = 3");
  CHECK(bsr_error([](auto& m) { m.block_row_offsets[0] = -1; }) ==
        "invalid_structure: block_row_offsets[0] = -1, expected 0");
  CHECK(bsr_error([](auto& m) { m.block_row_offsets[1] = 3; }) ==
        "invalid_structure: block_row_offsets[2] = 2 is less than block_row_offsets[1] = 3");
  CHECK(bsr_error([](auto& m) { m.block_row_offsets[2] = 1; }) ==
        "invalid_structure: block_row_offsets[2] = 1, expected the size of block_column_indices, 2");
  CHECK(bsr_error([](auto& m) { m.block_column_indices[1] = 2; }) ==
        "invalid_structure: block_column_indices[1] = 2 in block row 1 is outside [0, 2)");
  CHECK(bsr_error([](auto& m) {
          m.block_row_offsets[1] = 2, m.block_column_indices = {1, 1};
        }) ==
        "invalid_structure: block_column_indices[1] = 1 in block row 0 repeats block_column_indices[0] = 1; columns "
        "must increase within a row");
  CHECK(bsr_error([](auto& m) { m.bits.pop_back(); }) ==
        "invalid_structure: bits has 1 entries, expected blocks x words per block = 2");
  CHECK(bsr_error([](auto& m) { m.values.push_back(0); }) ==
        "invalid_structure: values has 31 entries, expected blocks x block rows x block columns = 30");
}

TEST_CASE("bits outside a block or outside the matrix are rejected") {
  CHECK(bsr_error([](auto& m) { m.bits[0] |= 1U << 15; }) ==
        "invalid_structure: bits of block 0 are set beyond its 3 x 5 pairs");
  CHECK(bsr_error([](auto& m) { m.bits[1] |= std::uint64_t{1} << 63; }) ==
        "invalid_structure: bits of block 1 are set beyond its 3 x 5 pairs");
  CHECK(bsr_error([](auto& m) { m.bits[1] |= 1U << 10; }) ==
        "invalid_structure: bits of block 1: pair (2, 0) of the block is set but lies below the last row");
  CHECK(bsr_error([](auto& m) { m.bits[1] |= 1U << 7; }) ==
        "invalid_structure: bits of block 1: pair (1, 2) of the block is set but lies right of the last column");
  CHECK(error_of([] {
          validate(BsrPattern{9, 9, 9, 9, {0, 1}, {0}, {0, std::uint64_t{1} << 17}});
        }) == "invalid_structure: bits of block 0 are set beyond its 9 x 9 pairs");
}

TEST_CASE("sizes of BSR arrays that do not fit 64 bits are an error, not an overflow") {
  const std::int32_t huge = 2147483646;
  BsrMatrix<double> matrix{{2147483647, 2147483647, huge, huge, {0, 2, 4}, {0, 1, 0, 1}, {}}, {}};
  CHECK(error_of([&] { validate(matrix); }) == "overflow: the size of values does not fit 64 bits");
  matrix.bits = {0};
  CHECK(error_of([&] { validate(matrix); }).find("invalid_structure: bits has 1 entries") == 0);
}

TEST_CASE("COO takes any order and duplicates, and each broken invariant is named") {
  const CooMatrix<float> valid{{3, 4, {2, 0, 2}, {3, 1, 3}}, {1, 2, 3}};
  CHECK(error_after(valid, [](auto&) {}) == "no error");
  CHECK(error_of([] { validate(CooPattern{}); }) == "no error");
  CHECK(error_after(valid, [](auto& m) { m.rows = 2147483648; }) ==
        "overflow: rows = 2147483648 does not fit the range [0, 2147483647]");
  CHECK(error_after(valid, [](auto& m) { m.columns = -4; }) ==
        "overflow: columns = -4 does not fit the range [0, 2147483647]");
  CHECK(error_after(valid, [](auto& m) { m.column_indices.pop_back(); }) ==
        "invalid_structure: column_indices has 2 entries, expected the size of row_indices = 3");
  CHECK(error_after(valid, [](auto& m) { m.values.push_back(4); }) ==
        "invalid_structure: values has 4 entries, expected the size of row_indices = 3");
  CHECK(error_after(valid, [](auto& m) { m.row_indices[1] = 3; }) ==
        "invalid_structure: row_indices[1] = 3 is outside [0, 3)");
  CHECK(error_after(valid, [](auto& m) { m.column_indices[2] = -1; }) ==
        "invalid_structure: column_indices[2] = -1 is outside [0, 4)");
}
