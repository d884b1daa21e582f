#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"
#include "support/pattern_oracle.hpp"

namespace cobble {
namespace {

using test::error_of;
using test::first_difference;

TEST_CASE("padding of top-k lists is skipped, in the middle of a row and in rows of nothing else (report 5)") {
  const std::vector<std::int64_t> indices{4,  -1, 0,   //
                                          -1, -1, -1,  //
                                          -1, 2,  1};
  const Pattern pattern = top_k_tokens(indices, 3, 3, 5);
  CHECK(pattern.to_csr() == CsrPattern{3, 5, {0, 2, 2, 4}, {0, 4, 1, 2}});
}

TEST_CASE("duplicates in a top-k list count once (report 5)") {
  CHECK(top_k_tokens(std::vector<std::int64_t>{3, 3, 0, 3}, 1, 4, 5).to_csr() == CsrPattern{1, 5, {0, 2}, {0, 3}});
}

TEST_CASE("anything but -1 outside the keys is an error that says where (report 5)") {
  const auto refused = [](std::vector<std::int64_t> indices) {
    return error_of([&] { top_k_tokens(indices, 2, 2, 5); });
  };
  CHECK(refused({0, 1, 2, 5}) == "invalid_argument: indices[1][1] = 5, expected -1 (padding) or an index in [0, 5)");
  CHECK(refused({0, -2, 2, 3}) == "invalid_argument: indices[0][1] = -2, expected -1 (padding) or an index in [0, 5)");
  CHECK(refused({0, 4294967296, 2, 3}) ==
        "invalid_argument: indices[0][1] = 4294967296, expected -1 (padding) or an index in [0, 5)");
  CHECK(refused({0, 1, 2}) == "shape_mismatch: indices has 3 entries, expected 2 lists x per_row 2 = 4");
}

TEST_CASE("lists of no entries are rows without pairs") {
  const Pattern pattern = top_k_tokens({}, 3, 0, 5);
  CHECK(pattern.rows() == 3);
  CHECK(pattern.pairs() == 0);
  CHECK(error_of([] { top_k_tokens({}, 3, -1, 5); }) == "invalid_argument: per_row = -1, expected at least 0");
}

TEST_CASE("top-k blocks are cut off at ragged edges (reports 5 and 9)") {
  const std::vector<std::int64_t> indices{1,  -1,  //
                                          -1, -1,  //
                                          0,  0};
  const Pattern pattern = top_k_blocks(indices, 11, 13, 2, 4, 7);
  CHECK(first_difference(pattern, 11, 13,
                         [](std::int64_t i, std::int64_t j) { return (i < 4 && j >= 7) || (i >= 8 && j < 7); }) == "");
  CHECK(pattern.pairs() == 4 * 6 + 3 * 7);
}

TEST_CASE("top-k block lists are checked") {
  const auto refused = [](std::vector<std::int64_t> indices, std::int32_t height, std::int32_t width) {
    return error_of([&] { top_k_blocks(indices, 8, 8, 1, height, width); });
  };
  CHECK(refused({0, 2}, 4, 4) == "invalid_argument: indices[1][0] = 2, expected -1 (padding) or an index in [0, 2)");
  CHECK(refused({0}, 4, 4) == "shape_mismatch: indices has 1 entries, expected 2 lists x per_row 1 = 2");
  CHECK(refused({0}, 0, 4) == "invalid_argument: block_rows = 0, expected at least 1");
  CHECK(refused({0}, 8, 0) == "invalid_argument: block_columns = 0, expected at least 1");
}

}  // namespace
}  // namespace cobble
