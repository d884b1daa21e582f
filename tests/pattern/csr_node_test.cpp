#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"

namespace cobble {
namespace {

TEST_CASE("a malformed compressed matrix is refused, not read out of bounds (report 19)") {
  const auto refused = [](CsrPattern matrix) { return test::error_of([&] { from_csr(matrix); }); };
  CHECK(refused({2, 4, {0, 1, 2}, {0, 3}}) == "no error");
  CHECK(refused({2, 4, {0, 1, 2}, {0, 4}}).starts_with("invalid_structure: "));
  CHECK(refused({2, 4, {0, 2, 1}, {0}}).starts_with("invalid_structure: "));
  CHECK(refused({2, 4, {0, 1, 3}, {0, 1}}).starts_with("invalid_structure: "));
  CHECK(refused({2, 4, {0, 1}, {0}}).starts_with("invalid_structure: "));
  CHECK(refused({1, 4, {0, 2}, {2, 2}}).starts_with("invalid_structure: "));
  CHECK(refused({1, 4, {0, 2}, {2, 1}}).starts_with("invalid_structure: "));
}

TEST_CASE("a stored row is cut into maximal runs, clipped by searching") {
  const Pattern pattern = from_csr({1, 100, {0, 7}, {0, 1, 2, 50, 51, 98, 99}});
  std::vector<ColumnRun> runs;
  pattern.append_runs(0, 0, 100, runs);
  CHECK(runs == std::vector<ColumnRun>{{0, 3}, {50, 52}, {98, 100}});
  runs.clear();
  pattern.append_runs(0, 1, 51, runs);
  CHECK(runs == std::vector<ColumnRun>{{1, 3}, {50, 51}});
}

TEST_CASE("a stored pattern says its size and pairs") {
  CHECK(from_csr({2, 4, {0, 1, 2}, {0, 3}}).describe() == "csr(2x4, 2 pairs)");
}

}  // namespace
}  // namespace cobble
