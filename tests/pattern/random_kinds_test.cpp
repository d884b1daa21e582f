#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "cobble/convert.hpp"
#include "cobble/pattern.hpp"
#include "support/error_of.hpp"

namespace cobble {
namespace {

using test::error_of;

/// FNV-1a over the rows' lengths and columns.
std::uint64_t checksum(const Pattern& pattern) {
  const CsrPattern matrix = pattern.to_csr();
  std::uint64_t hash = 14695981039346656037U;
  const auto add = [&hash](std::int64_t value) { hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211U; };
  for (const std::int64_t offset : matrix.row_offsets) add(offset);
  for (const std::int32_t column : matrix.column_indices) add(column);
  return hash;
}

TEST_CASE("a seed stands for one pattern on every machine, for good") {
  CHECK(checksum(random_pairs(100, 70, 9, 1)) == 9287300401721143614U);
  CHECK(checksum(random_blocks(100, 8, 3, 1)) == 17354198766087317983U);
  CHECK(checksum(power_law_graph(100, 6.5, 1)) == 14248636057119365067U);
  CHECK(checksum(bigbird(100, 8, 3, 1, 2, 1)) == 4811261904158757663U);
  CHECK(checksum(random_pairs(100, 70, 9, 2)) != checksum(random_pairs(100, 70, 9, 1)));
  CHECK(checksum(random_blocks(100, 8, 3, 2)) != checksum(random_blocks(100, 8, 3, 1)));
  CHECK(checksum(power_law_graph(100, 6.5, 2)) != checksum(power_law_graph(100, 6.5, 1)));
  CHECK(checksum(bigbird(100, 8, 3, 1, 2, 2)) != checksum(bigbird(100, 8, 3, 1, 2, 1)));
}

TEST_CASE("random pairs are so many distinct keys in each row, evenly spread") {
  const CsrPattern matrix = random_pairs(2000, 50, 20, 3).to_csr();
  validate(matrix);
  std::vector<std::int64_t> of_key(50);
  for (std::int64_t row = 0; row < 2000; ++row) CHECK_MESSAGE(matrix.view().row(row).size() == 20, row);
  for (const std::int32_t key : matrix.column_indices) ++of_key[static_cast<std::size_t>(key)];
  // Each key is in a row with probability 0.4: 800 times, standard deviation 22.
  CHECK(*std::min_element(of_key.begin(), of_key.end()) > 800 - 5 * 22);
  CHECK(*std::max_element(of_key.begin(), of_key.end()) < 800 + 5 * 22);
  CHECK(random_pairs(40, 30, 30).pairs() == 1200);
}

TEST_CASE("random blocks are so many distinct blocks in each block row") {
  const Pattern pattern = random_blocks(100, 8, 4, 5);
  const BsrPattern blocks = pattern.to_bsr(8, 8);
  CHECK(blocks.bits.empty());
  for (std::size_t panel = 0; panel < 13; ++panel) {
    CHECK(blocks.block_row_offsets[panel + 1] - blocks.block_row_offsets[panel] == 4);
  }
  CHECK(random_blocks(100, 8, 13).pairs() == 10000);
}

TEST_CASE("a power-law graph is symmetric, without loops, with about as many pairs as asked for, and has hubs") {
  const std::int64_t n = 5000;
  const CsrPattern matrix = power_law_graph(n, 8, 4).to_csr();
  validate(matrix);
  CHECK(transpose(matrix) == matrix);
  CHECK(matrix.view().entries() == doctest::Approx(static_cast<double>(n) * 8).epsilon(0.01));
  std::int64_t loops = 0;
  std::vector<std::int64_t> degrees;
  for (std::int64_t row = 0; row < n; ++row) {
    const auto columns = matrix.view().row(row);
    loops += std::binary_search(columns.begin(), columns.end(), static_cast<std::int32_t>(row)) ? 1 : 0;
    degrees.push_back(static_cast<std::int64_t>(columns.size()));
  }
  CHECK(loops == 0);
  // With the exponent 2.5 the vertices beyond degree k fall as k^-1.5: eight times the degree, 1 / 22.6 of them.
  const auto beyond = [&](std::int64_t degree) {
    return static_cast<double>(std::count_if(degrees.begin(), degrees.end(), [&](auto each) { return each > degree; }));
  };
  CHECK(beyond(16) / beyond(128) == doctest::Approx(22.6).epsilon(0.5));
  CHECK(power_law_graph(1, 0).pairs() == 0);
  CHECK(power_law_graph(2, 1).pairs() == 2);
}

TEST_CASE("arguments of the random kinds are checked") {
  CHECK(error_of([] { random_pairs(4, 5, 6); }) == "invalid_argument: per_row = 6, expected at most n_k = 5");
  CHECK(error_of([] { random_pairs(4, 5, -1); }) == "invalid_argument: per_row = -1, expected at least 0");
  CHECK(error_of([] { random_blocks(8, 4, 3); }) ==
        "invalid_argument: per_row = 3, expected at most the number of blocks = 2");
  CHECK(error_of([] { random_blocks(8, 0, 3); }) == "invalid_argument: block = 0, expected at least 1");
  CHECK(error_of([] { random_blocks(2147483647, 1, 2147483647); }) ==
        "overflow: the list of blocks of 4611686014132420609 entries does not fit in memory");
  CHECK(error_of([] { power_law_graph(8, 7.5); }) ==
        "invalid_argument: mean_degree = 7.5, expected a number in [0, n - 1 = 7]");
  CHECK(error_of([] { power_law_graph(8, -1); }).starts_with("invalid_argument: mean_degree = -1"));
  CHECK(error_of([] {
          power_law_graph(8, std::numeric_limits<double>::quiet_NaN());
        }).starts_with("invalid_argument: mean_degree = nan"));
}

}  // namespace
}  // namespace cobble
