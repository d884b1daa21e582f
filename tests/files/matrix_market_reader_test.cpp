#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/error_of.hpp"
#include "support/memory_files.hpp"

using cobble::CsrMatrix;
using cobble::CsrPattern;
using cobble::ReadOptions;
using cobble::ReadReport;
using cobble::test::error_of;
using cobble::test::read_csr_text;
using cobble::test::read_pattern_text;

namespace {

CsrPattern pattern(const std::string& text, const ReadOptions& options = {}, ReadReport* report = nullptr) {
  return read_pattern_text(text, "m.mtx", options, report);
}
CsrMatrix<double> matrix(const std::string& text, const ReadOptions& options = {}, ReadReport* report = nullptr) {
  return read_csr_text(text, "m.mtx", options, report);
}

const std::string kReal = "%%MatrixMarket matrix coordinate real ";
const std::string kPattern = "%%MatrixMarket matrix coordinate pattern ";

struct Fault {
  std::string text;
  std::string message;
};

}  // namespace

TEST_CASE("a general matrix keeps entries and values, explicit zeros included") {
  ReadReport report;
  const CsrMatrix<double> read = matrix(kReal + "general\n3 4 4\n3 1 -1.5\n1 4 2\n1 2 0\n3 3 4e0\n", {}, &report);
  CHECK(read.rows == 3);
  CHECK(read.columns == 4);
  CHECK(read.row_offsets == std::vector<std::int64_t>{0, 2, 2, 4});
  CHECK(read.column_indices == std::vector<std::int32_t>{1, 3, 0, 2});
  CHECK(read.values == std::vector<double>{0, 2, -1.5, 4});
  CHECK(report.format == cobble::FileFormat::matrix_market);
  CHECK(report.stored_entries == 4);
  CHECK(report.sorted_rows);
  CHECK(report.empty_rows == 1);
  CHECK_FALSE(report.expanded_symmetry);
}

TEST_CASE("zeros are no pairs when they are to be dropped") {
  ReadReport report;
  const ReadOptions options{.drop_zeros = true};
  const std::string text = kReal + "general\n2 2 3\n1 1 0\n1 2 -0.0\n2 1 3\n";
  CHECK(pattern(text, options, &report).row_offsets == std::vector<std::int64_t>{0, 0, 1});
  CHECK(report.zeros_dropped == 2);
  CHECK(report.stored_entries == 3);
  CHECK(matrix(text, options).values == std::vector<double>{3});
  const std::string symmetric = kReal + "symmetric\n3 3 3\n1 1 0\n2 1 0\n3 2 3\n";
  CHECK(pattern(symmetric, options, &report).column_indices == std::vector<std::int32_t>{2, 1});
  CHECK(report.zeros_dropped == 3);
  CHECK(report.stored_entries == 5);
}

TEST_CASE("duplicates are merged and their values added up, or are errors in strict reading") {
  const std::string text = kReal + "general\n2 2 4\n1 1 1\n2 2 5\n1 1 2\n1 1 4\n";
  ReadReport report;
  CHECK(matrix(text, {}, &report).values == std::vector<double>{7, 5});
  CHECK(report.duplicates_merged == 2);
  CHECK(error_of([&] { pattern(text, {.strict = true}); }) ==
        "file_format: m.mtx: row 0 has column 0 twice (counted from 0), which strict reading does not allow");
}

TEST_CASE("strict reading asks for ascending columns in each row, whatever the order of rows") {
  const ReadOptions strict{.strict = true};
  CHECK(pattern(kPattern + "general\n2 2 3\n2 1\n1 2\n2 2\n", strict).view().entries() == 3);
  CHECK(pattern(kPattern + "symmetric\n3 3 3\n2 1\n3 1\n3 2\n", strict).view().entries() == 6);
  CHECK(pattern(kPattern + "symmetric\n3 3 3\n1 2\n1 3\n2 3\n", strict).view().entries() == 6);
  CHECK(error_of([&] { pattern(kPattern + "general\n2 2 2\n2 2\n2 1\n", strict); }) ==
        "file_format: m.mtx: row 1 has column 0 after column 1 (counted from 0), which strict reading does not allow");
}

TEST_CASE("symmetric kinds are expanded, the diagonal once") {
  ReadReport report;
  const CsrMatrix<double> symmetric = matrix(kReal + "symmetric\n3 3 3\n1 1 5\n2 1 6\n3 2 7\n", {}, &report);
  CHECK(symmetric.row_offsets == std::vector<std::int64_t>{0, 2, 4, 5});
  CHECK(symmetric.column_indices == std::vector<std::int32_t>{0, 1, 0, 2, 1});
  CHECK(symmetric.values == std::vector<double>{5, 6, 6, 7, 7});
  CHECK(report.stored_entries == 5);
  CHECK(report.expanded_symmetry);
  CHECK(report.duplicates_merged == 0);
  CHECK_FALSE(report.sorted_rows);

  const CsrMatrix<double> skew = matrix(kReal + "skew-symmetric\n2 2 1\n2 1 6\n");
  CHECK(skew.column_indices == std::vector<std::int32_t>{1, 0});
  CHECK(skew.values == std::vector<double>{-6, 6});

  const CsrPattern upper = pattern(kPattern + "symmetric\n3 3 2\n1 2\n1 3\n");
  CHECK(upper.column_indices == std::vector<std::int32_t>{1, 2, 0, 0});
}

TEST_CASE("values of every field are read") {
  CHECK(matrix("%%matrixmarket MATRIX Coordinate DOUBLE General\n1 1 1\n1 1 +2.5").values == std::vector<double>{2.5});
  CHECK(matrix("%%MatrixMarket matrix coordinate integer general\n1 2 2\n1 1 -7\n1 2 9007199254740991\n").values ==
        std::vector<double>{-7, 9007199254740991});
  CHECK(matrix("%%MatrixMarket matrix coordinate unsigned-integer general\n1 1 1\n1 1 18446744073709551615\n").values ==
        std::vector<double>{18446744073709551616.0});
  CHECK(matrix(kPattern + "general\n1 2 1\n1 2\n").values == std::vector<double>{1});
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(matrix(kReal + "general\n1 2 2\n1 1 -inf\n1 2 Infinity\n").values == std::vector<double>{-infinity, infinity});
}

TEST_CASE("complex and hermitian matrices give a pattern, but no values") {
  const std::string text = "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 0 0\n2 1 0 -1\n";
  CHECK(pattern(text).row_offsets == std::vector<std::int64_t>{0, 2, 3});
  CHECK(pattern(text, {.drop_zeros = true}).row_offsets == std::vector<std::int64_t>{0, 1, 2});
  CHECK(error_of([&] { matrix(text); }) ==
        "file_format: m.mtx:1:1: the values are complex, expected real ones where values are wanted");
}

TEST_CASE("an array's pairs are its values that are not 0, column by column") {
  const std::string general = "%%MatrixMarket matrix array real general\n2 3\n1\n0\n\n0\n2\n% c\n3\n0\n";
  CHECK(matrix(general).row_offsets == std::vector<std::int64_t>{0, 2, 3});
  CHECK(matrix(general).column_indices == std::vector<std::int32_t>{0, 2, 1});
  CHECK(matrix(general).values == std::vector<double>{1, 3, 2});
  const std::string symmetric = "%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n0\n";
  CHECK(matrix(symmetric).values == std::vector<double>{1, 2, 2});
  const std::string skew = "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n0\n2\n";
  CHECK(matrix(skew).column_indices == std::vector<std::int32_t>{1, 0, 2, 1});
  CHECK(matrix(skew).values == std::vector<double>{-1, 1, -2, 2});
  CHECK(pattern("%%MatrixMarket matrix array complex general\n1 2\n0 0\n0 1\n").column_indices ==
        std::vector<std::int32_t>{1});
}

TEST_CASE("Windows line ends, blanks, comments among entries and a missing last line end are accepted") {
  const CsrPattern read = pattern(kPattern + "general \r\n%\r\n\r\n 2\t2  2 \r\n\r\n   1 2\t\r\n % c\r\n2 1");
  CHECK(read.column_indices == std::vector<std::int32_t>{1, 0});
}

TEST_CASE("matrices without rows, columns or entries are read") {
  CHECK(pattern(kPattern + "general\n0 5 0\n").rows == 0);
  CHECK(pattern(kPattern + "general\n5 0 0").row_offsets == std::vector<std::int64_t>(6, 0));
  CHECK(pattern("%%MatrixMarket matrix array real skew-symmetric\n0 0\n").rows == 0);
  CHECK(pattern("%%MatrixMarket matrix array real general\n0 7\n").columns == 7);
}

TEST_CASE("each fault of a Matrix Market file gives one error at its place") {
  const std::vector<Fault> faults{
      {"%MatrixMarket matrix coordinate real general\n1 1 0\n",
       "1:1: found '%MatrixMarket', a banner with one '%', expected two: '%%MatrixMarket'"},
      {"1 1 0\n", "1:1: found '1', expected the banner '%%MatrixMarket'"},
      {"", "1:1: found the end of the file, expected the banner '%%MatrixMarket'"},
      {"%%MatrixMarket vector coordinate real general\n",
       "1:16: found 'vector', expected 'matrix', the only object that is supported"},
      {"%%MatrixMarket matrix array pattern general\n1 1\n1\n",
       "1:29: an array cannot have the field 'pattern', expected a field with values"},
      {kReal + "hermitian\n1 1 0\n",
       "1:39: only a complex matrix can be hermitian, expected general, symmetric or skew-symmetric"},
      {kReal + "general more\n1 1 0\n", "1:47: found 'more', expected the end of the banner"},
      {kReal + "general\n", "2:1: found the end of the file, expected the number of rows"},
      {kReal + "general\n1 1\n1 1 1\n", "2:4: found the end of the line, expected the number of entries"},
      {kReal + "general\n1 1 0 0\n", "2:7: found '0', expected the end of the size line"},
      {kReal + "general\n1 2147483648 0\n", "2:1: found 2147483648 columns, expected 0 to 2147483647"},
      {kReal + "general\n4194305 1 0\n",
       "2:1: found 4194305 rows in a file of 58 bytes, expected at most 4194304, or 64 for each byte"},
      {kReal + "symmetric\n2 3 0\n",
       "2:1: found 2 rows and 3 columns, expected as many of both in a matrix that is not general"},
      {kReal + "general\n9 9 99999999999\n",
       "2:1: found 99999999999 entries, which a file of 62 bytes cannot hold, expected at most 10"},
      {"%%MatrixMarket matrix array real general\n2147483647 2147483647\n",
       "2:1: found 2147483647 rows in a file of 63 bytes, expected at most 4194304, or 64 for each byte"},
      {kReal + "general\n2 2 1\n0 1 1\n", "3:1: found 0, expected a row index from 1 to 2"},
      {kReal + "general\n2 2 1\n1 3 1\n", "3:3: found 3, expected a column index from 1 to 2"},
      {kReal + "general\n2 2 1\n1 2\n", "3:4: found the end of the line, expected a real value"},
      {kReal + "general\n2 2 1\n1 2 1 1\n", "3:7: found '1', expected the end of the entry's line"},
      {kReal + "general\n2 2 1\n1 2 0x1\n", "3:5: found '0x1', expected a real value"},
      {kPattern + "general\n2 2 2\n1 2\n", "4:1: found the end of the file after 1 entries, expected 2"},
      {kPattern + "general\n2 2 1\n1 2\n2 1\n", "4:1: found '2', expected the end of the file after 1 entries"},
      {kPattern + "general\n2 2 1\n1 2 9\n", "3:5: found '9', expected the end of the entry's line"},
      {kPattern + "symmetric\n3 3 2\n2 1\n1 3\n",
       "4:1: found entry (1, 3) on the other side of the diagonal than those before, expected one triangle as the"
       " matrix is not general"},
      {kReal + "skew-symmetric\n2 2 1\n2 2 1\n",
       "3:1: found entry (2, 2) on the diagonal of a skew-symmetric matrix, expected none or a zero there"},
      {"%%MatrixMarket matrix coordinate unsigned-integer general\n1 1 1\n1 1 -1\n",
       "3:5: found '-1', expected an unsigned value"},
      {"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n",
       "3:5: found '1.5', expected an integer value"},
      {"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1\n",
       "3:6: found the end of the line, expected the imaginary part of a value"},
      {"%%MatrixMarket matrix array real general\n1 2\n1\n",
       "4:1: found the end of the file after 1 entries, expected 2"},
      {"%%MatrixMarket matrix array real general\n1 2\n1\n2\n3\n",
       "5:1: found '3', expected the end of the file after 2 entries"},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.text);
    CHECK(error_of([&] { pattern(fault.text); }) == "file_format: m.mtx:" + fault.message);
  }
}
