#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cobble/csr.hpp"
#include "support/error_of.hpp"
#include "support/memory_files.hpp"

using cobble::CsrMatrix;
using cobble::CsrPattern;
using cobble::Pattern;
using cobble::ReadReport;
using cobble::test::error_of;
using cobble::test::read_pattern_text;
using cobble::test::TemporaryDirectory;

namespace fs = std::filesystem;

namespace {

/// Real and generated samples that are kept beside the source tree; empty where they are not.
fs::path shared_patterns() {
  const char* shared = std::getenv("COBBLE_SHARED");
  fs::path path = fs::path(shared != nullptr ? shared : COBBLE_SOURCE_DIR "/../shared") / "patterns";
  if (fs::exists(path / "expected.json")) return path;
  MESSAGE("skipped: no sample files at " << path.string() << " (COBBLE_SHARED names another place)");
  return {};
}

std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Sum of (row + 1) * (column + 1).
std::int64_t weighted_sum(const CsrPattern& matrix) {
  std::int64_t sum = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (const std::int32_t column : matrix.view().row(row)) sum += (row + 1) * (std::int64_t{column} + 1);
  }
  return sum;
}

}  // namespace

TEST_CASE("real files hold the pairs that SciPy finds in them") {
  const fs::path shared = shared_patterns();
  if (shared.empty()) return;
  const nlohmann::json all = nlohmann::json::parse(std::ifstream(shared / "expected.json"));
  CHECK(all.size() >= files_in(shared / "valid").size() + files_in(shared / "dialect").size());
  for (const auto& item : all.items()) {
    const std::string& name = item.key();
    const nlohmann::json& expected = item.value();
    CAPTURE(name);
    ReadReport report;
    const Pattern pattern = cobble::read_pattern(shared / name, {}, &report);
    CHECK(pattern.rows() == expected["rows"]);
    CHECK(pattern.columns() == expected["cols"]);
    CHECK(pattern.pairs() == expected["pairs"]);
    CHECK(report.stored_entries == expected["stored"]);
    CHECK(report.stored_entries - report.duplicates_merged == expected["pairs"]);
    const CsrPattern matrix = pattern.to_csr();
    CHECK(weighted_sum(matrix) == expected["row_weighted_sum"]);
    const CsrMatrix<double> with_values = cobble::read_csr(shared / name);
    validate(with_values.view());
    CHECK(static_cast<const CsrPattern&>(with_values) == matrix);
  }
}

TEST_CASE("each malformed file gives one line that names the file") {
  const fs::path shared = shared_patterns();
  if (shared.empty()) return;
  const std::vector<fs::path> files = files_in(shared / "malformed");
  CHECK(files.size() >= 31);
  for (const fs::path& file : files) {
    CAPTURE(file.string());
    const std::string pattern_error = error_of([&] { cobble::read_pattern(file); });
    CHECK(pattern_error.starts_with("file_format: " + file.string() + ":"));
    CHECK(pattern_error.find('\n') == std::string::npos);
    if (file.extension() == ".mtx") CHECK(pattern_error.find(".mtx:") < pattern_error.find(": found"));
    CHECK(error_of([&] { cobble::read_csr(file); }) == pattern_error);
  }
}

TEST_CASE("content decides the format before the name does") {
  const std::string text = "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n";
  ReadReport report;
  for (const char* name : {"a.smtx", "a.npz", "a", "a.mtx"}) {
    CHECK(read_pattern_text(text, name, {}, &report).view().entries() == 1);
    CHECK(report.format == cobble::FileFormat::matrix_market);
  }
  CHECK(error_of([] { read_pattern_text("1 1 1\n", "a.txt"); }) ==
        "file_format: a.txt: neither content nor name is of a known format: Matrix Market (.mtx), SMTX (.smtx), SciPy"
        " and NumPy (.npz, .npy)");
  CHECK(error_of([] { read_pattern_text("1 1 1\n", "a.npy"); }) ==
        "file_format: a.npy: does not start with '\\x93NUMPY' as a .npy array does");
  CHECK(error_of([] {
          read_pattern_text("%matrixmarket matrix", "a.txt");
        }).starts_with("file_format: a.txt:1:1: found '%matrixmarket', a banner with one '%'"));
}

TEST_CASE("an error carries path, line and column") {
  try {
    read_pattern_text("2, 2, 1\n0 1 x\n", "dir/a.smtx");
    FAIL("no error");
  } catch (const cobble::FileError& error) {
    CHECK(error.path() == "dir/a.smtx");
    CHECK(error.line() == 2);
    CHECK(error.column() == 5);
  }
}

TEST_CASE("a report is left alone when reading fails") {
  ReadReport report;
  report.stored_entries = 17;
  CHECK(error_of([&] { read_pattern_text("2, 2\n", "a.smtx", {}, &report); }) != "no error");
  CHECK(report.stored_entries == 17);
}

TEST_CASE("files that are not there, or are directories, cannot be read") {
  const TemporaryDirectory directory;
  const std::string missing = (directory / "missing.mtx").string();
  CHECK(error_of([&] { cobble::read_pattern(missing); }) ==
        "file_not_found: " + missing + ": cannot be opened: No such file or directory");
  CHECK(error_of([&] { cobble::read_pattern(directory.path()); }) ==
        "file_not_found: " + directory.path().string() + ": cannot be read: Is a directory");
}

TEST_CASE("a pipe is read like a file") {
  const TemporaryDirectory directory;
  std::string text =
      "%%MatrixMarket matrix coordinate pattern general\n% " + std::string(200000, 'c') + "\n1 1 1\n1 1\n";
  cobble::test::write_text(directory / "a.mtx", text);
  const std::string pipe = (directory / "pipe.mtx").string();
  const std::string command =
      "mkfifo '" + pipe + "' && cat '" + (directory / "a.mtx").string() + "' > '" + pipe + "' &";
  REQUIRE(std::system(command.c_str()) == 0);
  while (!fs::exists(pipe)) {
  }
  CHECK(cobble::read_pattern(pipe).pairs() == 1);
}
