#include "files/smtx.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/error_of.hpp"
#include "support/memory_files.hpp"

using cobble::CsrPattern;
using cobble::ReadReport;
using cobble::test::error_of;
using cobble::test::read_csr_text;
using cobble::test::read_pattern_text;

namespace {

const CsrPattern kExpected{3, 4, {0, 2, 2, 3}, {1, 3, 0}};

struct Fault {
  std::string text;
  std::string message;
};

}  // namespace

TEST_CASE("both dialects of SMTX are read") {
  ReadReport report;
  CHECK(read_pattern_text("3, 4, 3\n0 2 2 3 \n1 3 0 \n", "m.smtx", {}, &report) == kExpected);
  CHECK(report.format == cobble::FileFormat::smtx);
  CHECK(report.stored_entries == 3);
  CHECK(report.empty_rows == 1);
  CHECK(read_pattern_text("% a\n%b\n3 4 3\n0 2 2 3\n1 3 0", "m.smtx") == kExpected);
  CHECK(read_pattern_text("3,4,3,0,2,2,3,1,3,0", "M.SMTX") == kExpected);
}

TEST_CASE("SMTX without entries, rows or columns is read, and values are 1") {
  CHECK(read_pattern_text("2, 5, 0\n0 0 0 \n\n", "m.smtx") == CsrPattern{2, 5, {0, 0, 0}, {}});
  CHECK(read_pattern_text("0, 0, 0\n0 \n", "m.smtx") == CsrPattern{0, 0, {0}, {}});
  CHECK(read_csr_text("3, 4, 3\n0 2 2 3 \n1 3 0 \n", "m.smtx").values == std::vector<double>{1, 1, 1});
}

TEST_CASE("unsorted and repeated columns of SMTX are put right and reported") {
  ReadReport report;
  CHECK(read_pattern_text("1, 4, 4\n0 4\n3 1 3 0\n", "m.smtx", {}, &report) == CsrPattern{1, 4, {0, 3}, {0, 1, 3}});
  CHECK(report.sorted_rows);
  CHECK(report.duplicates_merged == 1);
  CHECK(error_of([] { read_pattern_text("1, 4, 2\n0 2\n3 1\n", "m.smtx", {.strict = true}); }) ==
        "file_format: m.smtx: row 0 has column 1 after column 3 (counted from 0), which strict reading does not allow");
}

TEST_CASE("each fault of an SMTX file gives one error at its place") {
  const std::vector<Fault> faults{
      {"", "1:1: found the end of the file, expected a number of rows"},
      {"a, 1, 0\n", "1:1: found 'a,', expected a number of rows"},
      {"-1, 1, 0\n0\n", "1:1: found -1, expected a number of rows from 0 to 2147483647"},
      {"1, 2147483648, 0\n0 0\n", "1:4: found 2147483648, expected a number of columns from 0 to 2147483647"},
      {"1, 4194305, 0\n0 0\n",
       "1:1: found 4194305 columns in a file of 18 bytes, expected at most 4194304, or 64 for each byte"},
      {"999999, 1, 0\n0 0\n", "1:1: found 999999 rows and 0 entries, which a file of 17 bytes cannot hold"},
      {"1, 1, 9223372036854775807\n0 0\n",
       "1:1: found 1 rows and 9223372036854775807 entries, which a file of 30 bytes cannot hold"},
      {"2, 2, 1\n1 1 1\n0\n", "2:1: found 1, expected a row offset from 0 to 0"},
      {"3, 2, 2\n0 2 1 2\n0 1\n", "2:5: found 1, expected a row offset from 2 to 2"},
      {"1, 2, 2\n0 1\n0 1\n", "2:3: found 1, expected a row offset from 2 to 2"},
      {"1, 2, 1\n0 1\n2\n", "3:1: found 2, expected a column index from 0 to 1"},
      {"1, 2, 1\n0 1\n", "3:1: found the end of the file, expected a column index"},
      {"1, 2, 1\n0 1\n0 1\n", "3:3: found '1', expected the end of the file after 1 column indices"},
      {"1, 2, 1\n0 1\n0.0\n", "3:1: found '0.0', expected a column index"},
      {"0, 2, 1\n0\n0\n", "1:1: found no rows, but 1 entries"},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.text);
    CHECK(error_of([&] { read_pattern_text(fault.text, "m.smtx"); }) == "file_format: m.smtx:" + fault.message);
  }
}
