#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/error_of.hpp"
#include "support/memory_files.hpp"
#include "support/random.hpp"
#include "support/sparse.hpp"

using cobble::BsrPattern;
using cobble::CsrMatrix;
using cobble::CsrPattern;
using cobble::NamedArray;
using cobble::Pattern;
using cobble::ReadReport;
using cobble::test::error_of;
using cobble::test::Random;
using cobble::test::random_csr;
using cobble::test::read_text;
using cobble::test::TemporaryDirectory;

namespace {

/// A number of any size and sign, whose text needs all its digits.
template <class T>
T any_number(Random& random) {
  T value;
  do {
    const std::uint64_t bits = random.bits();
    std::memcpy(&value, &bits, sizeof value);
  } while (value != value);
  return value;
}

/// While it lives, writing a file beyond 4096 bytes fails as on a full disk.
class SmallFiles {
 public:
  SmallFiles() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

}  // namespace

TEST_CASE("property: every pattern is read back as it was written, in every format") {
  const TemporaryDirectory directory;
  for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{
           {0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 100}, {100, 1}, {17, 63}, {64, 64}, {65, 33}}) {
    for (const double density : {0.0, 0.05, 0.5, 1.0}) {
      const std::uint64_t seed = static_cast<std::uint64_t>(rows * 1000 + columns);
      CAPTURE(seed);
      CAPTURE(density);
      Random random(seed);
      const CsrPattern matrix = random_csr<double>(random, rows, columns, density, rows > 20 ? 1 : 0);
      const Pattern pattern = cobble::from_csr(matrix);
      for (const char* name : {"a.mtx", "a.smtx", "a.npz", "a.npy", "A.MTX"}) {
        CAPTURE(name);
        write_pattern(directory / name, pattern);
        ReadReport report;
        CHECK(cobble::read_pattern(directory / name, {.strict = true}, &report).to_csr() == matrix);
        CHECK(report.stored_entries == matrix.view().entries());
      }
    }
  }
  CHECK(directory.names().size() == 5);
}

TEST_CASE_TEMPLATE("property: values are read back to the last bit", T, float, double) {
  const TemporaryDirectory directory;
  Random random(7);
  CsrMatrix<T> matrix = random_csr<T>(random, 40, 30, 0.4);
  for (T& value : matrix.values) value = any_number<T>(random);
  matrix.values[0] = std::numeric_limits<T>::infinity();
  matrix.values[1] = -std::numeric_limits<T>::infinity();
  matrix.values[2] = std::numeric_limits<T>::denorm_min();
  matrix.values[3] = std::numeric_limits<T>::max();
  matrix.values[4] = T{-0.0};
  const std::vector<double> expected(matrix.values.begin(), matrix.values.end());
  for (const char* name : {"a.mtx", "a.npz"}) {
    write_csr(directory / name, matrix.view());
    const CsrMatrix<double> read = cobble::read_csr(directory / name);
    CHECK(static_cast<const CsrPattern&>(read) == static_cast<const CsrPattern&>(matrix));
    REQUIRE(read.values.size() == expected.size());
    CHECK(std::memcmp(read.values.data(), expected.data(), expected.size() * sizeof(double)) == 0);
  }
}

TEST_CASE("analytic patterns are written, too") {
  const TemporaryDirectory directory;
  const Pattern pattern = cobble::window(50, 3, 1) | cobble::leading_tokens(50, 2);
  write_pattern(directory / "a.smtx", pattern);
  CHECK(cobble::read_pattern(directory / "a.smtx").to_csr() == pattern.to_csr());
}

TEST_CASE("a BSR-backed pattern of whole blocks is written as BSR, any other as CSR") {
  const TemporaryDirectory directory;
  const BsrPattern blocks{4, 9, 2, 3, {0, 2, 3}, {0, 2, 1}, {}};
  write_pattern(directory / "a.npz", cobble::from_bsr(blocks));
  const Pattern whole = cobble::read_pattern(directory / "a.npz");
  CHECK(whole.describe().starts_with("bsr"));
  CHECK(whole.to_csr() == cobble::from_bsr(blocks).to_csr());
  CHECK(whole.to_bsr(2, 3) == blocks);

  BsrPattern with_bits = blocks;
  with_bits.bits = {0x3F, 0x01, 0x20};
  write_pattern(directory / "a.npz", cobble::from_bsr(with_bits));
  CHECK(cobble::read_pattern(directory / "a.npz").describe().starts_with("csr"));
  CHECK(cobble::read_pattern(directory / "a.npz").to_csr() == cobble::from_bsr(with_bits).to_csr());

  const BsrPattern ragged{3, 8, 2, 3, {0, 2, 3}, {0, 2, 1}, {}};
  write_pattern(directory / "a.npz", cobble::from_bsr(ragged));
  CHECK(cobble::read_pattern(directory / "a.npz").to_csr() == cobble::from_bsr(ragged).to_csr());
}

TEST_CASE("writing the same twice gives the same bytes") {
  const TemporaryDirectory directory;
  for (const char* name : {"a.mtx", "a.smtx", "a.npz", "a.npy"}) {
    write_pattern(directory / name, cobble::causal(20));
    const std::string first = read_text(directory / name);
    write_pattern(directory / name, cobble::causal(20));
    CHECK(read_text(directory / name) == first);
  }
}

TEST_CASE("a name without a format that fits is an error") {
  const TemporaryDirectory directory;
  CHECK(error_of([] { write_pattern("a.txt", cobble::full(2)); }) ==
        "invalid_argument: a.txt: the name tells no format to write, expected .mtx, .smtx, .npz or .npy");
  const CsrMatrix<float> matrix;
  CHECK(error_of([&] { write_csr("a.smtx", matrix.view()); }) ==
        "invalid_argument: a.smtx: a sparse matrix with values is written to .mtx or .npz, not to this format");
}

TEST_CASE("a failing write leaves neither half a file nor a temporary one") {
  const TemporaryDirectory directory;
  const std::string missing = (directory / "no").string();
  for (const char* name : {"a.mtx", "a.smtx", "a.npz", "a.npy"}) {
    CAPTURE(name);
    const std::string path = missing + "/" + name;
    CHECK(error_of([&] {
            write_pattern(path, cobble::full(2));
          }).starts_with("file_write: " + path + ": cannot be written: "));
    CsrMatrix<double> broken{{2, 2, {0, 1, 2}, {0, 5}}, {1, 2}};
    CHECK(error_of([&] { write_csr((directory / name), broken.view()); }) != "no error");
  }
  CHECK(directory.names().empty());
}

TEST_CASE("a disk that runs full leaves the old file and no temporary one") {
  const TemporaryDirectory directory;
  const Pattern pattern = cobble::full(300);
  const std::vector<double> zeros(5000);
  for (const char* name : {"a.mtx", "a.smtx", "a.npy", "a.npz"}) {
    CAPTURE(name);
    const std::string path = (directory / name).string();
    cobble::test::write_text(path, "old");
    const SmallFiles limit;
    const std::string error = error_of([&] {
      if (std::string_view(name) == "a.npz") {
        write_npz(path, std::vector<NamedArray>{{"a", {5000}, zeros}});
      } else {
        write_pattern(path, pattern);
      }
    });
    CHECK(error.starts_with("file_write: " + path + ": cannot be written: "));
    CHECK(error.find("File too large") != std::string::npos);
    CHECK(read_text(path) == "old");
  }
  CHECK(directory.names().size() == 4);
}

TEST_CASE("arrays of each type are read back from .npy and .npz") {
  const TemporaryDirectory directory;
  const std::vector<float> floats{1.5F, -2, 3, 4, 5, 6};
  const std::vector<double> doubles{0.1};
  const std::vector<std::int32_t> ints{1, -2};
  const std::vector<std::int64_t> longs{1LL << 40};
  const std::vector<std::uint8_t> booleans{1, 0, 1};
  const std::vector<cobble::float16> halves{cobble::float16(0.5), cobble::float16(-3)};
  const std::vector<NamedArray> arrays{{"f", {3, 2}, floats},
                                       {"d", {}, doubles},
                                       {"i", {2}, ints},
                                       {"l", {1, 1}, longs},
                                       {"b", {3}, booleans},
                                       {"h", {2}, halves},
                                       {"none", {0, 7}, std::span<const float>()}};
  write_npz(directory / "a.npz", arrays);
  const std::string text = read_text(directory / "a.npz");
  const cobble::detail::NpzReader reader(cobble::test::bytes_of(text), "a.npz");
  for (const NamedArray& array : arrays) {
    CAPTURE(array.name);
    write_npy(directory / "a.npy", array);
    const cobble::NumpyArray<double> alone = cobble::read_npy<double>(directory / "a.npy");
    const cobble::detail::NpzMember member = reader.read(array.name);
    std::vector<double> packed(static_cast<std::size_t>(member.array.size));
    cobble::detail::to_reals(member.array, packed.data());
    CHECK(alone.shape == array.shape);
    CHECK(member.array.header.shape == array.shape);
    std::vector<double> expected;
    std::visit(
        [&expected](const auto& values) {
          for (const auto value : values) expected.push_back(static_cast<double>(value));
        },
        array.values);
    CHECK(std::vector<double>(alone.values.begin(), alone.values.end()) == expected);
    CHECK(packed == expected);
  }
}

TEST_CASE("arrays whose shape or name does not fit are refused") {
  const std::vector<float> floats{1, 2};
  const auto fault = [](const std::vector<NamedArray>& arrays) {
    return error_of([&] { write_npz("/nonexistent/a.npz", arrays); });
  };
  CHECK(fault({}) == "invalid_argument: arrays is empty, expected at least one array");
  CHECK(fault({{"a", {3}, floats}}) == "shape_mismatch: array 'a' has 2 values, expected 3 for its shape (3,)");
  CHECK(fault({{"a", {-2}, floats}}) == "invalid_argument: array 'a' has the negative size -2 in its shape");
  CHECK(fault({{"", {2}, floats}}) == "invalid_argument: '' is no name for an array in a .npz file");
  CHECK(fault({{"a/b", {2}, floats}}) == "invalid_argument: 'a/b' is no name for an array in a .npz file");
  CHECK(fault({{"a", {2}, floats}, {"a", {2}, floats}}) == "invalid_argument: two arrays have the name 'a'");
}
