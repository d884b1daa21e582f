#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"
#include "support/pattern_oracle.hpp"

namespace cobble {
namespace {

using test::first_difference;

TEST_CASE("blocks may have any size, whole or with bits (report 12)") {
  const std::int64_t n_q = 70;
  const std::int64_t n_k = 150;
  struct Shape {
    std::int32_t height;
    std::int32_t width;
  };
  for (const Shape shape : {Shape{1, 1}, Shape{1, 150}, Shape{70, 1}, Shape{5, 3}, Shape{64, 64}, Shape{7, 65},
                            Shape{16, 128}, Shape{200, 300}}) {
    const std::int32_t height = shape.height;
    const std::int32_t width = shape.width;
    INFO(height, " x ", width);
    const auto in_block = [=](std::int64_t i, std::int64_t j) { return (i / height + j / width) % 2 == 0; };
    BsrPattern whole = test::bsr_of(n_q, n_k, height, width, in_block);
    whole.bits.clear();
    CHECK(first_difference(from_bsr(whole), n_q, n_k, in_block) == "");
    const auto in_part = [=](std::int64_t i, std::int64_t j) { return in_block(i, j) && (i * 3 + j * j) % 7 < 5; };
    CHECK(first_difference(from_bsr(test::bsr_of(n_q, n_k, height, width, in_part)), n_q, n_k, in_part) == "");
  }
}

TEST_CASE("a run of ones goes on over the words of a block and from block to block") {
  BsrPattern matrix{1, 400, 1, 200, {0, 2}, {0, 1}, std::vector<std::uint64_t>(8, ~std::uint64_t{0})};
  matrix.bits[3] = matrix.bits[7] = 0xFF;  // 200 = 3 * 64 + 8
  std::vector<ColumnRun> runs;
  from_bsr(matrix).append_runs(0, 0, 400, runs);
  CHECK(runs == std::vector<ColumnRun>{{0, 400}});
}

TEST_CASE("a stored block without a set bit is empty") {
  const Pattern pattern = from_bsr({4, 4, 2, 2, {0, 1, 2}, {0, 1}, {0, 1}});
  CHECK(first_difference(pattern, 4, 4, [](std::int64_t i, std::int64_t j) { return i == 2 && j == 2; }) == "");
  CHECK(pattern.to_bsr(2, 2).block_column_indices == std::vector<std::int32_t>{1});
}

TEST_CASE("malformed blocks are refused (report 19)") {
  const auto refused = [](BsrPattern matrix) { return test::error_of([&] { from_bsr(matrix); }); };
  CHECK(refused({4, 4, 2, 2, {0, 1, 2}, {0, 1}, {}}) == "no error");
  CHECK(refused({4, 4, 2, 2, {0, 1, 2}, {0, 2}, {}}).starts_with("invalid_structure: "));
  CHECK(refused({4, 4, 2, 2, {0, 1, 2}, {0, 1}, {1}}).starts_with("invalid_structure: "));
  CHECK(refused({4, 4, 2, 2, {0, 1, 2}, {0, 1}, {1, 16}}).starts_with("invalid_structure: "));
  CHECK(refused({4, 4, 0, 2, {0, 1, 2}, {0, 1}, {}}).starts_with("invalid_argument: "));
}

TEST_CASE("a pattern of blocks says its size, blocks and pairs") {
  CHECK(from_bsr({5, 4, 2, 2, {0, 1, 2, 3}, {0, 1, 0}, {}}).describe() == "bsr(5x4, 3 blocks of 2x2, 10 pairs)");
}

}  // namespace
}  // namespace cobble
