#include "reorder/group_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "cobble/reorder.hpp"
#include "support/random.hpp"
#include "support/shuffled.hpp"

namespace cobble::detail {
namespace {

/// The largest distance of a pair from the diagonal.
std::int64_t bandwidth(const Pattern& pattern) {
  const CsrPattern matrix = pattern.to_csr();
  std::int64_t widest = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (const std::int32_t column : matrix.view().row(row)) {
      widest = std::max<std::int64_t>(widest, std::abs(row - column));
    }
  }
  return widest;
}

Pattern ordered(const Pattern& pattern) {
  const RowColumnOrder order = cuthill_mckee(pattern.to_csr());
  return permute(pattern, {ReorderMethod::similarity, order.rows, order.columns});
}

TEST_CASE("a shuffled band becomes a band again") {
  test::Random random(2);
  const Pattern pattern = test::shuffled(window(300, 3, 3), random);
  CHECK(bandwidth(pattern) > 200);
  CHECK(bandwidth(ordered(pattern)) <= 14);
}

TEST_CASE("a key that all attend to does not spoil the band, and stands last") {
  test::Random random(3);
  const Pattern pattern = test::shuffled(window(900, 3, 3) | leading_tokens(900, 1), random);
  const CsrPattern found = ordered(pattern).to_csr();
  std::int64_t widest = 0;
  for (std::int64_t row = 0; row < found.rows; ++row) {
    const auto columns = found.view().row(row);
    CHECK(columns.back() == 899);
    for (const std::int32_t column : columns.first(columns.size() - 1)) {
      widest = std::max<std::int64_t>(widest, std::abs(row - column));
    }
  }
  CHECK(widest <= 20);
}

TEST_CASE("separate parts stand one after another, what has no pair at the end") {
  const RowColumnOrder order = cuthill_mckee(CsrPattern{4, 4, {0, 1, 1, 2, 3}, {2, 0, 2}});
  CHECK(order.rows.back() == 1);
  CHECK(std::vector<std::int32_t>(order.columns.begin() + 2, order.columns.end()) == std::vector<std::int32_t>{1, 3});
  const auto place = [&](std::int32_t row) {
    return std::find(order.rows.begin(), order.rows.end(), row) - order.rows.begin();
  };
  CHECK(std::abs(place(0) - place(3)) == 1);
}

}  // namespace
}  // namespace cobble::detail
