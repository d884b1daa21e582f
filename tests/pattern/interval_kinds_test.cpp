#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"
#include "support/pattern_oracle.hpp"

namespace cobble {
namespace {

using test::error_of;
using test::first_difference;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

std::vector<ColumnRun> row_runs(const Pattern& pattern, std::int64_t row) {
  std::vector<ColumnRun> runs;
  pattern.append_runs(row, 0, pattern.columns(), runs);
  return runs;
}

TEST_CASE("the last query of a rectangular causal pattern sees the last key") {
  const Pattern decoding = causal(2, 5);
  CHECK(row_runs(decoding, 0) == std::vector<ColumnRun>{{0, 4}});
  CHECK(row_runs(decoding, 1) == std::vector<ColumnRun>{{0, 5}});
  const Pattern more_queries = causal(5, 2);
  CHECK(row_runs(more_queries, 2).empty());
  CHECK(row_runs(more_queries, 3) == std::vector<ColumnRun>{{0, 1}});
  CHECK(row_runs(more_queries, 4) == std::vector<ColumnRun>{{0, 2}});
}

TEST_CASE("a window with sizes beyond 64-bit sums is one that reaches everything") {
  CHECK(window(100, kHuge, kHuge).to_csr() == full(100).to_csr());
  CHECK(window(100, 40, kHuge, 0).to_csr() == causal(100, 40).to_csr());
  CHECK(window(2147483647, kHuge, 0).pairs() == causal(2147483647).pairs());
  CHECK(leading_tokens(9, kHuge).pairs() == 81);
  CHECK(prefix(9, kHuge).pairs() == 81);
}

TEST_CASE("a window of 0 to either side is the diagonal") {
  CHECK(window(5, 0, 0).pairs() == 5);
  CHECK(window(1, 0, 0).contains(0, 0));
}

TEST_CASE("negative and too large sizes are errors that name the argument") {
  CHECK(error_of([] { full(-1); }) == "overflow: n = -1 does not fit the range [0, 2147483647]");
  CHECK(error_of([] { causal(2147483648); }) == "overflow: n = 2147483648 does not fit the range [0, 2147483647]");
  CHECK(error_of([] { causal(3, -4); }) == "overflow: n_k = -4 does not fit the range [0, 2147483647]");
  CHECK(error_of([] { window(4, -1, 0); }) == "invalid_argument: left = -1, expected at least 0");
  CHECK(error_of([] { window(4, 1, -2); }) == "invalid_argument: right = -2, expected at least 0");
  CHECK(error_of([] { leading_tokens(4, -2); }) == "invalid_argument: count = -2, expected at least 0");
  CHECK(error_of([] { prefix(4, -2); }) == "invalid_argument: prefix = -2, expected at least 0");
}

TEST_CASE("documents of length zero have no tokens and disturb no other") {
  const std::vector<std::int64_t> lengths{0, 3, 0, 0, 2, 0};
  const Pattern pattern = documents(lengths);
  CHECK(first_difference(pattern, 5, 5, [](std::int64_t i, std::int64_t j) { return (i < 3) == (j < 3); }) == "");
  CHECK(pattern.pairs() == 13);
  CHECK(documents(std::vector<std::int64_t>{}).rows() == 0);
  CHECK(documents(std::vector<std::int64_t>{0, 0}).pairs() == 0);
}

TEST_CASE("documents may have queries without keys and keys without queries") {
  const std::vector<std::int64_t> query_offsets{0, 2, 2, 3, 5};
  const std::vector<std::int64_t> key_offsets{0, 0, 4, 6, 7};
  const Pattern pattern = documents_from_offsets(query_offsets, key_offsets);
  CHECK(row_runs(pattern, 0).empty());
  CHECK(row_runs(pattern, 1).empty());
  CHECK(row_runs(pattern, 2) == std::vector<ColumnRun>{{4, 6}});
  CHECK(row_runs(pattern, 4) == std::vector<ColumnRun>{{6, 7}});
  CHECK(pattern.pairs() == 4);
  CHECK(pattern.pairs(1, 4) == 3);
}

TEST_CASE("document lengths and offsets are checked") {
  const auto of_lengths = [](std::vector<std::int64_t> lengths) { return error_of([&] { documents(lengths); }); };
  CHECK(of_lengths({3, -1}) == "invalid_argument: lengths[1] = -1, expected at least 0");
  CHECK(of_lengths({2147483647, 1}) ==
        "overflow: the sum of lengths = 2147483648 does not fit the range [0, 2147483647]");
  CHECK(of_lengths({1, kHuge}) == "overflow: the sum of lengths does not fit 64 bits");
  const auto of_offsets = [](std::vector<std::int64_t> queries, std::vector<std::int64_t> keys) {
    return error_of([&] { documents_from_offsets(queries, keys); });
  };
  CHECK(of_offsets({}, {0}) == "invalid_argument: query_offsets is empty, expected at least the offset 0");
  CHECK(of_offsets({1, 2}, {0, 2}) == "invalid_argument: query_offsets[0] = 1, expected 0");
  CHECK(of_offsets({0, 2}, {0, 3, 2}) == "invalid_argument: key_offsets[2] = 2 is less than key_offsets[1] = 3");
  CHECK(of_offsets({0, 2}, {0, 1, 2}) == "shape_mismatch: query_offsets has 2 entries, key_offsets 3");
  CHECK(of_offsets({0, 2147483648}, {0, 1}) ==
        "overflow: query_offsets[1] = 2147483648 does not fit the range [0, 2147483647]");
}

}  // namespace
}  // namespace cobble
