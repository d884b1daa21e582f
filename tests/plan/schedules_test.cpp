#include "plan/schedules.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cobble/pebble.hpp"
#include "plan/candidates.hpp"
#include "support/sample_patterns.hpp"
#include "support/schedules.hpp"

// What a walk is said to move is what the pebble machine counts, which checks its rules, for every kind of pattern.

using namespace cobble;
using namespace cobble::test;
using cobble::detail::backward_traffic;
using cobble::detail::CandidatePlan;
using cobble::detail::forward_traffic;
using cobble::detail::PlanData;
using cobble::detail::WalkTraffic;

namespace {

void check_counts(const Plan& plan) {
  const PebbleCount forward = count_forward(plan);
  const PebbleCount backward = count_backward(plan);
  const WalkTraffic forward_walk = forward_traffic(plan.data());
  const WalkTraffic backward_walk = backward_traffic(plan.data());
  CHECK(forward.loads == forward_walk.loads);
  CHECK(forward.stores == forward_walk.stores);
  CHECK(backward.loads == backward_walk.loads);
  CHECK(backward.stores == backward_walk.stores);
  CHECK(forward.peak_resident <= plan.fast_memory_words());
  CHECK(backward.peak_resident <= plan.fast_memory_words());
}

struct Sizes {
  std::int64_t n_q, n_k;
  Problem problem;
};

const std::vector<Sizes> kSizes{{33, 33, {.head_dim = 9, .value_dim = 13}},
                                {50, 24, {.head_dim = 4, .value_dim = 1, .query_heads = 2, .key_value_heads = 1}},
                                {24, 50, {.head_dim = 1, .value_dim = 7, .batch = 2}}};

/// What make_plan hands to the planner: sizes and counts, nothing chosen yet.
PlanData undecided(const Plan& plan) {
  const PlanData& data = plan.data();
  PlanData base = {.problem = data.problem, .patterns = data.patterns};
  base.regime = data.regime;
  base.split_point = data.split_point;
  base.fast_memory_words = data.fast_memory_words;
  base.total_pairs = data.total_pairs;
  base.pattern_pairs = data.pattern_pairs;
  return base;
}

AttentionSize mean_size(const Plan& plan) {
  const std::int64_t heads = plan.problem().batch * plan.problem().query_heads;
  return {plan.patterns().rows(), plan.patterns().columns(), (plan.total_pairs() + heads - 1) / heads,
          plan.problem().head_dim, plan.problem().value_dim};
}

}  // namespace

TEST_CASE("the traffic of every walk is what the pebble machine counts, within fast memory") {
  for (const Sizes& sizes : kSizes) {
    for (const SamplePattern& sample : named_sample_patterns(sizes.n_q, sizes.n_k)) {
      for (const std::int64_t words : kFastMemories) {
        for (const PlanOptions& options : all_schedules(words)) {
          INFO(sample.name, ", ", sizes.n_q, " x ", sizes.n_k, ", ", describe(options));
          const auto plan = feasible_plan(sample.pattern, sizes.problem, options);
          if (options.schedule == Schedule::materialize || words >= 256) REQUIRE(plan.has_value());
          if (plan) check_counts(*plan);
        }
      }
    }
  }
}

TEST_CASE("every candidate moves what its summary says") {
  const std::vector<Pattern> patterns{full(90), causal(90), window(200, 12, 3), random_pairs(120, 120, 5, 3),
                                      from_csr({4, 9, {0, 0, 0, 0, 0}, {}})};
  std::size_t most_candidates = 0;
  for (const Pattern& pattern : patterns) {
    for (const std::int64_t words : {64, 300, 2000, 20000}) {
      for (const TileSizes sizes : {TileSizes::hardware, TileSizes::model}) {
        const PlanOptions options{.tile_sizes = sizes, .fast_memory_bytes = words * 4};
        INFO(pattern.describe(), ", ", describe(options));
        const Plan plan = make_plan(pattern, {.head_dim = 8, .value_dim = 5}, options);
        std::vector<std::string> names;
        const PlanData base = undecided(plan);
        for (CandidatePlan& candidate : propose(base, mean_size(plan), options)) {
          PlanData realized = realize(base, std::move(candidate), mean_size(plan), options);
          const PlanCandidate summary = realized.candidates.front();
          realized.candidates.front().chosen = true;
          const Plan of_candidate(std::make_shared<const PlanData>(std::move(realized)));
          CAPTURE(summary.name);
          CHECK(summary.forward_words == count_forward(of_candidate).counted());
          CHECK(summary.backward_words == count_backward(of_candidate).counted());
          names.push_back(summary.name);
        }
        std::vector<std::string> listed;
        for (const PlanCandidate& candidate : plan.candidates()) listed.push_back(candidate.name);
        CHECK(names == listed);
        most_candidates = std::max(most_candidates, names.size());
      }
    }
  }
  CHECK(most_candidates >= 3);
}

TEST_CASE("heads are counted each, and key/value heads once for their group") {
  // Of more threads, one head would keep busy those that six do not leave idle.
  const auto count = [](const Problem& problem, PlanOptions options) {
    options.threads = 1;
    return make_plan(window(60, 10, 2), problem, options);
  };
  for (const PlanOptions& options : all_schedules(2000)) {
    INFO(describe(options));
    const Plan one = count({.head_dim = 8}, options);
    const Plan six = count({.head_dim = 8, .query_heads = 3, .batch = 2}, options);
    CHECK(count_forward(six).counted() == 6 * count_forward(one).counted());
    CHECK(count_backward(six).counted() == 6 * count_backward(one).counted());
    const Plan grouped = count({.head_dim = 8, .query_heads = 3, .key_value_heads = 1, .batch = 2}, options);
    CHECK(count_forward(grouped).counted() == count_forward(six).counted());
    if (options.schedule != Schedule::recompute) continue;
    const bool begins_with_tiles = grouped.data().backward_passes == BackwardPasses::one &&
                                   grouped.data().product(cobble::detail::Product::backward_rows).streamed == 0;
    if (!begins_with_tiles) {
      CHECK(count_backward(grouped).counted() < count_backward(six).counted());
    } else {  // the second and third head of a group find sums of keys begun, and read them
      const std::int64_t read = 2 * 2 * 60 * (8 + 8);
      CHECK(count_backward(grouped).counted() == count_backward(six).counted() + read);
    }
  }
}
