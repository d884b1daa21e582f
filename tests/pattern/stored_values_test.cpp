#include "pattern/stored_values.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "support/random.hpp"
#include "support/sparse.hpp"

using namespace cobble;
using cobble::detail::StoredValues;
using cobble::test::Random;

namespace {

BsrPattern random_blocks(Random& random, std::int64_t rows, std::int64_t columns, test::Size size) {
  BsrPattern blocks;
  blocks.rows = rows;
  blocks.columns = columns;
  blocks.block_rows = size.rows;
  blocks.block_columns = size.columns;
  for (std::int64_t panel = 0; panel < blocks.view().row_panels(); ++panel) {
    for (std::int32_t column = 0; column < blocks.view().column_panels(); ++column) {
      if (random.uniform() < 0.5) blocks.block_column_indices.push_back(column);
    }
    blocks.block_row_offsets.push_back(static_cast<std::int64_t>(blocks.block_column_indices.size()));
  }
  return blocks;
}

/// The runs of every row within every interval of columns say what index() says.
void check_runs(const Pattern& pattern) {
  const StoredValues stored(pattern, "pattern");
  for (std::int64_t row = 0; row < pattern.rows(); ++row) {
    for (std::int64_t begin = 0; begin <= pattern.columns(); ++begin) {
      for (std::int64_t end = begin; end <= pattern.columns(); ++end) {
        std::vector<std::int64_t> found(static_cast<std::size_t>(pattern.columns()), -1);
        std::int64_t after = begin;
        bool inside = true;
        stored.for_each_run(row, begin, end, [&](std::int64_t column, std::int64_t count, std::int64_t place) {
          inside = inside && column >= after && count > 0 && column + count <= end;
          after = column + count;
          for (std::int64_t k = 0; inside && k < count; ++k) found[static_cast<std::size_t>(column + k)] = place + k;
        });
        REQUIRE(inside);
        bool same = true;
        for (std::int64_t column = 0; column < pattern.columns(); ++column) {
          const std::int64_t expected = column < begin || column >= end ? -1 : stored.index(row, column);
          same = same && found[static_cast<std::size_t>(column)] == expected;
        }
        CAPTURE(row);
        CAPTURE(begin);
        CAPTURE(end);
        CHECK(same);
      }
    }
  }
}

}  // namespace

TEST_CASE("each entry of compressed rows is found at its place, and no other") {
  Random random(1);
  const CsrMatrix<double> matrix = test::random_csr<double>(random, 17, 23, 0.3, 1);
  const Pattern pattern = from_csr(matrix);
  const StoredValues stored(pattern, "pattern");
  CHECK(stored.size() == matrix.view().entries());
  std::int64_t next = 0;
  for (std::int64_t row = 0; row < 17; ++row) {
    for (std::int64_t column = 0; column < 23; ++column) {
      CAPTURE(row);
      CAPTURE(column);
      CHECK(stored.index(row, column) == (pattern.contains(row, column) ? next++ : -1));
    }
  }
}

TEST_CASE("each element of blocks is found at its place, and no other") {
  // Blocks of 2 x 3 over 5 x 7: (0, 1), (1, 0), (1, 2), (2, 2).
  BsrPattern blocks;
  blocks.rows = 5;
  blocks.columns = 7;
  blocks.block_rows = 2;
  blocks.block_columns = 3;
  blocks.block_row_offsets = {0, 1, 3, 4};
  blocks.block_column_indices = {1, 0, 2, 2};
  const Pattern pattern = from_bsr(blocks);
  const StoredValues stored(pattern, "pattern");
  CHECK(stored.size() == 24);
  const std::vector<std::vector<std::int64_t>> expected = {{-1, -1, -1, 0, 1, 2, -1},
                                                           {-1, -1, -1, 3, 4, 5, -1},
                                                           {6, 7, 8, -1, -1, -1, 12},
                                                           {9, 10, 11, -1, -1, -1, 15},
                                                           {-1, -1, -1, -1, -1, -1, 18}};
  for (std::size_t row = 0; row < 5; ++row) {
    for (std::size_t column = 0; column < 7; ++column) {
      CAPTURE(row);
      CAPTURE(column);
      CHECK(stored.index(static_cast<std::int64_t>(row), static_cast<std::int64_t>(column)) == expected[row][column]);
    }
  }
}

TEST_CASE("runs within any columns give the place of each stored pair") {
  Random random(2);
  check_runs(from_csr(test::random_csr<double>(random, 9, 13, 0.6, 1)));
  check_runs(from_csr(CsrPattern{3, 0, {0, 0, 0, 0}, {}}));
  for (const test::Size size : {test::Size{1, 1}, {2, 3}, {4, 4}, {16, 16}}) {
    CAPTURE(test::to_string(size));
    check_runs(from_bsr(random_blocks(random, 9, 13, size)));
  }
}

TEST_CASE("neighbours in compressed rows are one run") {
  const Pattern pattern = from_csr({1, 9, {0, 5}, {1, 2, 3, 6, 7}});
  std::vector<std::vector<std::int64_t>> runs;
  StoredValues(pattern, "pattern").for_each_run(0, 2, 9, [&](auto column, auto count, auto place) {
    runs.push_back({column, count, place});
  });
  CHECK(runs == std::vector<std::vector<std::int64_t>>{{2, 2, 1}, {6, 2, 3}});
}
