#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/pebble.hpp"
#include "cobble/plan.hpp"
#include "plan/plan_data.hpp"
#include "support/attention_inputs.hpp"
#include "support/threads.hpp"

// Row panels with so many pairs that several tasks share them: few queries over many keys, global tokens.

using namespace cobble;
using namespace cobble::test;
using cobble::detail::Product;

namespace {

PlanOptions for_threads(std::int64_t threads) { return {.schedule = Schedule::recompute, .threads = threads}; }

/// Rows of which some have no pair at all, some only such as the first parts hold, some only the last.
Pattern uneven(std::int64_t rows, std::int64_t keys) {
  return from_predicate(rows, keys, [keys](std::int64_t row, std::int64_t key) {
    switch (row % 5) {
      case 1: return false;
      case 2: return key < keys / 8;
      case 3: return key >= keys - keys / 8;
      default: return true;
    }
  });
}

struct Sample {
  std::string name;
  Plan plan;
};

std::vector<Sample> samples() {
  const Pattern few_rows = full(40, 30000);
  const Pattern global = longformer(12000, 20, 60);
  return {
      {"few rows", make_plan(few_rows, {.head_dim = 5, .value_dim = 3}, for_threads(4))},
      {"few rows, causal end", make_plan(uneven(60, 20000), {.head_dim = 4}, for_threads(4))},
      {"heads of their own patterns and a group",
       make_plan(PatternGrid({few_rows, full(40, 30000) & uneven(40, 30000), few_rows}, 1, 3),
                 {.head_dim = 3, .query_heads = 3, .key_value_heads = 1}, for_threads(8))},
      {"global tokens", make_plan(global, {.head_dim = 4}, for_threads(16))},
  };
}

}  // namespace

TEST_CASE("few rows with many pairs are shared out among threads, and of one thread are not") {
  const auto parts = [](const Pattern& pattern, std::int64_t threads, Product product) {
    const Plan plan = make_plan(pattern, {.head_dim = 64}, for_threads(threads));
    return plan.data().most_row_slots(product);
  };
  for (const Product product : {Product::forward, Product::backward_rows}) {
    CHECK(parts(full(64, 65536), 1, product) == 0);
    CHECK(parts(full(64, 65536), 2, product) == 8 * 2);
    CHECK(parts(window(65536, 128, 0), 2, product) == 0);
    CHECK(parts(full(4096), 2, product) == 0);
    CHECK(parts(longformer(16384, 64, 64), 2, product) > 1);
  }
}

TEST_CASE("parts of a row panel are all of its tiles, once") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    const detail::PlanData& plan = sample.plan.data();
    for (const Product product : {Product::forward, Product::backward_rows}) {
      REQUIRE(plan.most_row_slots(product) > 1);
      for (std::int64_t query = 0; query < plan.problem.query_heads; ++query) {
        const detail::Head head = {0, query, query / plan.heads_per_group()};
        std::vector<std::int64_t> seen(static_cast<std::size_t>(plan.row_panels(product)));
        std::vector<bool> slots(static_cast<std::size_t>(plan.most_row_slots(product)));
        for (std::int64_t index = 0; index < plan.row_items(product, head); ++index) {
          const detail::RowItem item = plan.row_item(product, head, index);
          std::int64_t& next = seen[static_cast<std::size_t>(item.panel)];
          const auto all = plan.tiles(product, head).row(item.panel);
          if (item.slot >= 0) {
            CHECK(!slots[static_cast<std::size_t>(item.slot)]);
            slots[static_cast<std::size_t>(item.slot)] = true;
          }
          REQUIRE(next + std::ssize(item.tiles) <= std::ssize(all));
          for (const detail::PlanTile& tile : item.tiles) CHECK(tile == all[static_cast<std::size_t>(next++)]);
        }
        for (std::int64_t panel = 0; panel < plan.row_panels(product); ++panel) {
          CHECK(seen[static_cast<std::size_t>(panel)] == std::ssize(plan.tiles(product, head).row(panel)));
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("shared rows match the reference, with the same bits for any number of threads", T, float, double) {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    const Inputs<T> inputs = normal_inputs<T>(sample.plan, 3);
    const Results<T> expected = on_threads(1, [&] { return run(sample.plan, inputs); });
    check_close(run(sample.plan, inputs), reference_of(sample.plan, inputs));
    for (const int threads : {2, 5}) {
      CHECK(same_bits(on_threads(threads, [&] { return run(sample.plan, inputs); }), expected));
    }
  }
}

TEST_CASE("a sink counts once in a shared row") {
  const Plan plan = make_plan(uneven(60, 20000), {.head_dim = 4}, for_threads(4));
  REQUIRE(plan.data().most_row_slots(Product::forward) > 1);
  const Inputs<double> inputs = normal_inputs<double>(plan, 5);
  const std::vector<double> sinks = {9.5};
  const ScoreTerms<double> terms = {.softcap = 3, .sinks = sinks};
  check_close(run(plan, inputs, terms), reference_of(plan, inputs, terms));
}

TEST_CASE("a value that is not finite stays with the rows that attend to it, in whatever part") {
  const Plan plan = make_plan(uneven(60, 20000), {.head_dim = 4}, for_threads(4));
  Inputs<float> inputs = normal_inputs<float>(plan, 5);
  inputs.value(0, 0, 19999, 1) = std::numeric_limits<float>::quiet_NaN();
  const Attention<float> result = run_forward(plan, inputs);
  for (std::int64_t row = 0; row < 60; ++row) {
    CAPTURE(row);
    const bool attends = row % 5 == 0 || row % 5 == 3 || row % 5 == 4;
    CHECK(std::isnan(result.output(0, 0, row, 1)) == attends);
    CHECK(!std::isnan(result.output(0, 0, row, 0)));
    CHECK(!std::isnan(result.lse(0, 0, row, 0)));
  }
}

TEST_CASE("rows that go through one panel of keys after another match the reference and keep to the rules") {
  const Problem problem = {.head_dim = 8, .value_dim = 5, .query_heads = 2, .key_value_heads = 1};
  PlanOptions options = {.schedule = Schedule::recompute,
                         .fast_memory_bytes = 12000,
                         .threads = 2,
                         .cost_model = {.near_bytes = 64, .far_bytes = 40000}};
  const Pattern scattered = random_pairs(300, 1200, 9, 7) & uneven(300, 1200);
  const std::vector<PlanCandidate> candidates = make_plan(scattered, problem, options).candidates();
  const auto found = std::find_if(candidates.begin(), candidates.end(), [](const PlanCandidate& candidate) {
    return candidate.name.find("one panel of") != std::string::npos;
  });
  REQUIRE(found != candidates.end());
  options.candidate = found - candidates.begin();
  const Plan plan = make_plan(scattered, problem, options);
  REQUIRE(plan.data().product(Product::forward).panel_by_panel);
  REQUIRE(plan.data().column_panels(Product::forward) > 2);
  CHECK(count_forward(plan).peak_resident <= plan.fast_memory_words());
  CHECK(count_backward(plan).peak_resident <= plan.fast_memory_words());
  const std::vector<float> sinks = {1.5F, -2.5F};
  const ScoreTerms<float> terms = {.softcap = 4, .sinks = sinks};
  const Inputs<float> inputs = normal_inputs<float>(plan, 11);
  check_close(run(plan, inputs, terms), reference_of(plan, inputs, terms));
  const Results<float> expected = on_threads(1, [&] { return run(plan, inputs); });
  check_close(run(plan, inputs), reference_of(plan, inputs));
  for (const int threads : {2, 5}) CHECK(same_bits(on_threads(threads, [&] { return run(plan, inputs); }), expected));
}

TEST_CASE("shared rows keep to the rules of the pebble game, and move their parts besides") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    const PebbleCount forward = count_forward(sample.plan);
    const PebbleCount backward = count_backward(sample.plan);
    CHECK(forward.peak_resident <= sample.plan.fast_memory_words());
    CHECK(backward.peak_resident <= sample.plan.fast_memory_words());
    const PlanCandidate* chosen = nullptr;
    for (const PlanCandidate& candidate : sample.plan.candidates()) chosen = candidate.chosen ? &candidate : chosen;
    REQUIRE(chosen != nullptr);
    CHECK(chosen->forward_words == forward.counted());
    CHECK(chosen->backward_words == backward.counted());
  }
}
