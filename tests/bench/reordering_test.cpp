#include "reordering.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

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

TEST_CASE("a plan's order is what was asked for and what was chosen") {
  const Pattern pattern = power_law_graph(200, 4, 1);
  const Problem problem{.head_dim = 16};
  const Plan same = make_plan(pattern, problem);
  CHECK(plan_order(same, "").asked == "identity");
  CHECK(plan_order_text(plan_order(same, "automatic")) == "identity, chosen by automatic");
  const Json untouched = plan_order_json(plan_order(same, "automatic"));
  CHECK(untouched == Json{{"method", "identity"}, {"asked", "automatic"}});

  const Plan other = make_plan(pattern, problem, {.reorder = reorder_method("amd")});
  const PlanOrder order = plan_order(other, "amd");
  CHECK(order.method == ReorderMethod::amd);
  CHECK(order.fill_before == tile_fill(pattern, kReorderTile));
  CHECK(order.fill_after == tile_fill(reorder_pattern(pattern, "amd").pattern, kReorderTile));
  CHECK(plan_order_json(order).at("tile_fill_after") == order.fill_after);
  CHECK(plan_order_text(order).rfind("amd; 64 x 64 tiles filled ", 0) == 0);
  CHECK(reorder_method("") == ReorderMethod::identity);
  CHECK_THROWS_AS(reorder_method("rcm"), Error);
}
