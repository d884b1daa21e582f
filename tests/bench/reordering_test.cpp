#include "reordering.hpp"

#include <doctest/doctest.h>

#include "cobble/error.hpp"

using namespace cobble;
using namespace cobble::program;

TEST_CASE("a reordered pattern is the pattern in the order that was found") {
  const Pattern pattern = power_law_graph(60, 4, 1);
  const ReorderedPattern reordered = reorder_pattern(pattern, "amd");
  CHECK(reordered.reordering == reorder(pattern, ReorderMethod::amd));
  CHECK(reordered.pattern.to_csr() == permute(pattern, reordered.reordering).to_csr());
  CHECK(reordered.milliseconds > 0);
  CHECK_THROWS_AS(reorder_pattern(pattern, "rcm"), Error);
}

TEST_CASE("counted words are those of the chosen candidate") {
  const Problem problem{.head_dim = 16};
  const PlanOptions options{.schedule = Schedule::recompute, .fast_memory_bytes = 1 << 16};
  const Plan plan = make_plan(causal(300), problem, options);
  std::int64_t expected = 0;
  for (const PlanCandidate& candidate : plan.candidates()) {
    if (candidate.chosen) expected = candidate.forward_words + candidate.backward_words;
  }
  CHECK(expected > 0);
  CHECK(counted_words(causal(300), problem, options) == expected);
}

TEST_CASE("the method's name says when it was chosen automatically") {
  CHECK(method_text("amd", {ReorderMethod::amd, {}, {}}) == "amd");
  CHECK(method_text("automatic", {ReorderMethod::similarity, {}, {}}) == "similarity, chosen by automatic");
}
