#include "cobble/pattern.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cobble/csr.hpp"
#include "support/error_of.hpp"
#include "support/pattern_oracle.hpp"
#include "support/sample_patterns.hpp"

namespace cobble {
namespace {

using test::error_of;
using test::first_difference;

struct Size {
  std::int64_t n_q;
  std::int64_t n_k;
};

void check_all_kinds(std::int64_t n_q, std::int64_t n_k) {
  for (const test::SamplePattern& sample : test::named_sample_patterns(n_q, n_k)) {
    INFO(sample.name, " ", n_q, " x ", n_k);
    CHECK(first_difference(sample.pattern, n_q, n_k, sample.contains) == "");
  }
}

TEST_CASE("every kind answers like its predicate at square sizes, ragged tails included (report 9)") {
  for (const std::int64_t n : {1, 15, 16, 17, 63, 64, 65, 100}) check_all_kinds(n, n);
}

TEST_CASE("every kind answers like its predicate at 257 tokens") { check_all_kinds(257, 257); }

TEST_CASE("every rectangular kind answers like its predicate, aligned at the bottom right") {
  for (const Size size : {Size{1, 65}, {65, 1}, {16, 17}, {100, 15}, {15, 257}, {130, 63}}) {
    check_all_kinds(size.n_q, size.n_k);
  }
}

TEST_CASE("every kind has a form without rows, without columns, and without both") {
  for (const Size size : {Size{0, 0}, {0, 9}, {9, 0}}) {
    const std::int64_t n_q = size.n_q;
    const std::int64_t n_k = size.n_k;
    for (const test::SamplePattern& sample : test::named_sample_patterns(n_q, n_k)) {
      INFO(sample.name, " ", n_q, " x ", n_k);
      CHECK(sample.pattern.rows() == n_q);
      CHECK(sample.pattern.columns() == n_k);
      CHECK(sample.pattern.pairs() == 0);
      CHECK(sample.pattern.to_csr().row_offsets == std::vector<std::int64_t>(static_cast<std::size_t>(n_q) + 1, 0));
      CHECK(sample.pattern.to_bsr(4, 5).block_column_indices.empty());
      std::vector<PatternTile> tiles;
      sample.pattern.tiles(0, n_q, 16, tiles);
      CHECK(tiles.empty());
    }
  }
}

TEST_CASE("a default pattern has no rows and no columns") {
  CHECK(Pattern().rows() == 0);
  CHECK(Pattern().columns() == 0);
  CHECK(Pattern().pairs() == 0);
  CHECK(Pattern().describe() == "full(0)");
}

TEST_CASE("rows, columns and panels out of range are errors that name them") {
  const Pattern pattern = causal(4, 6);
  std::vector<ColumnRun> runs;
  std::vector<PatternTile> tiles;
  CHECK(error_of([&] { pattern.contains(4, 0); }) == "invalid_argument: row = 4, expected one in [0, 4)");
  CHECK(error_of([&] { pattern.contains(0, -1); }) == "invalid_argument: column = -1, expected one in [0, 6)");
  CHECK(error_of([&] { pattern.bits(0, 6); }) == "invalid_argument: column = 6, expected one in [0, 6)");
  CHECK(error_of([&] { pattern.append_runs(-1, 0, 6, runs); }) == "invalid_argument: row = -1, expected one in [0, 4)");
  CHECK(error_of([&] { pattern.append_runs(0, 0, 7, runs); }) ==
        "invalid_argument: columns [0, 7), expected a range within [0, 6)");
  CHECK(error_of([&] { pattern.append_runs(0, 4, 3, runs); }) ==
        "invalid_argument: columns [4, 3), expected a range within [0, 6)");
  CHECK(error_of([&] { pattern.pairs(2, 5); }) == "invalid_argument: rows [2, 5), expected a range within [0, 4)");
  CHECK(error_of([&] { pattern.tiles(-1, 2, 4, tiles); }) ==
        "invalid_argument: rows [-1, 2), expected a range within [0, 4)");
  CHECK(error_of([&] { pattern.tiles(0, 2, 0, tiles); }) == "invalid_argument: column_panel = 0, expected at least 1");
  CHECK(error_of([&] { pattern.to_bsr(0, 2); }) == "invalid_argument: block_rows = 0, expected at least 1");
  CHECK(error_of([&] { pattern.to_bsr(2, -2); }) == "invalid_argument: block_columns = -2, expected at least 1");
  CHECK(error_of([&] { Pattern{nullptr}; }) == "invalid_argument: node is null, expected a pattern");
}

TEST_CASE("blocks larger than the matrix hold all of it") {
  const BsrPattern matrix = window(10, 2, 0).to_bsr(1000, 1 << 12);
  CHECK(matrix.block_column_indices == std::vector<std::int32_t>{0});
  CHECK(from_bsr(matrix).to_csr() == window(10, 2, 0).to_csr());
}

TEST_CASE("a pattern too large to store is an error, not a crash") {
  CHECK(error_of([] { full(2147483647).to_csr(); }).starts_with("overflow: the list of pairs of 4611686014132420609"));
}

TEST_CASE("no count passes through 32 bits beyond 46341 tokens or 2^31 pairs (report 14)") {
  CHECK(full(46342).pairs() == 2147580964);
  CHECK(full(1048576).pairs() == std::int64_t{1} << 40);
  CHECK(full(2147483647).pairs() == 4611686014132420609);
  CHECK(causal(2147483647).pairs() == 2305843008139952128);
  CHECK((!window(2147483647, 0, 0)).pairs() == 4611686014132420609 - 2147483647);
  std::vector<PatternTile> tiles;
  full(100000, 100000).tiles(0, 100000, 70000, tiles);
  REQUIRE(tiles.size() == 2);
  CHECK(tiles[0] == PatternTile{0, TileKind::full, 7000000000});
  CHECK(tiles[1] == PatternTile{1, TileKind::full, 3000000000});
  const Pattern two_blocks = top_k_blocks(std::vector<std::int64_t>{0, 1}, 131072, 131072, 1, 65536, 65536);
  CHECK(two_blocks.pairs() == std::int64_t{1} << 33);
  CHECK(two_blocks.pairs(65535, 131072) == 65536 * std::int64_t{65537});
}

TEST_CASE("a window of 4096 over a million tokens counts by arithmetic and classifies in memory of its tiles") {
  const std::int64_t n = 1048576;
  const Pattern pattern = window(n, 4096, 0);
  CHECK(pattern.pairs() == n * 4097 - std::int64_t{4096} * 4097 / 2);
  std::vector<PatternTile> tiles;
  std::int64_t pairs = 0;
  for (std::int64_t row = n / 2; row < n / 2 + 640; row += 64) {
    pattern.tiles(row, row + 64, 64, tiles);
    CHECK(tiles.size() == 66 - 1);
    CHECK(tiles.capacity() <= 128);
    for (const PatternTile& tile : tiles) pairs += tile.pairs;
  }
  CHECK(pairs == 640 * 4097);
}

}  // namespace
}  // namespace cobble
