#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "cobble/pebble.hpp"
#include "cobble/plan.hpp"
#include "plan/plan_data.hpp"
#include "support/error_of.hpp"

// Plans for inputs that store some of their features.

using namespace cobble;
using namespace cobble::test;

namespace {

const PlanCandidate& chosen_of(const Plan& plan) {
  return *std::find_if(plan.candidates().begin(), plan.candidates().end(),
                       [](const PlanCandidate& candidate) { return candidate.chosen; });
}

Problem stored(double query, double key, double value, std::int64_t d = 64) {
  return {.head_dim = d, .query_entries = query, .key_entries = key, .value_entries = value};
}

}  // namespace

TEST_CASE("Z_input is the largest nnz of the three, and sets the split point and the regime") {
  const Pattern pattern = random_pairs(256, 512, 32, 1);
  const auto pairs = static_cast<double>(pattern.pairs());
  const auto split_of = [&](const Problem& problem) { return make_plan(pattern, problem).split_point(); };
  CHECK(split_of({.head_dim = 64}) == doctest::Approx(std::pow(512 * 64, 2) / pairs));
  CHECK(split_of(stored(8, 8, 0)) == doctest::Approx(std::pow(512 * 64, 2) / pairs));  // V is dense
  CHECK(split_of(stored(8, 4, 6)) == doctest::Approx(std::pow(512 * 6, 2) / pairs));
  CHECK(split_of(stored(40, 4, 6)) == doctest::Approx(std::pow(256 * 40, 2) / pairs));
  CHECK(split_of(stored(8, 12.5, 6)) == doctest::Approx(std::pow(512 * 12.5, 2) / pairs));

  const PlanOptions options{.fast_memory_bytes = 4 * 4096};
  CHECK(make_plan(pattern, {.head_dim = 64}, options).regime() == Regime::small_fast_memory);
  CHECK(make_plan(pattern, stored(8, 8, 8), options).regime() == Regime::large_fast_memory);
}

TEST_CASE("entries that no token can store are refused") {
  const auto error_with = [](const Problem& problem) { return error_of([&] { make_plan(full(4), problem); }); };
  CHECK(error_with(stored(-1, 0, 0)) ==
        "invalid_argument: query_entries = -1.000000, expected 0 (dense) to the number of features, 64");
  CHECK(error_with(stored(0, 64.5, 0)) ==
        "invalid_argument: key_entries = 64.500000, expected 0 (dense) to the number of features, 64");
  CHECK(error_with(stored(0, 0, std::numeric_limits<double>::quiet_NaN()))
            .starts_with("invalid_argument: value_entries"));
  CHECK(error_with(stored(64, 64, 64)) == "no error");
}

TEST_CASE("what compressed inputs move is counted in entries, by the plan and by the machine") {
  for (const Pattern& pattern : {causal(200), random_pairs(150, 150, 6, 2)}) {
    for (const Schedule schedule : {Schedule::recompute, Schedule::materialize}) {
      const PlanOptions options{.schedule = schedule, .fast_memory_bytes = 4 * 20000};
      const Plan dense = make_plan(pattern, stored(0, 0, 0, 32), options);
      const Plan compressed = make_plan(pattern, stored(4, 4, 0, 32), options);
      CHECK(count_forward(compressed).counted() == chosen_of(compressed).forward_words);
      CHECK(count_backward(compressed).counted() == chosen_of(compressed).backward_words);
      CHECK(chosen_of(compressed).forward_words < chosen_of(dense).forward_words);
      CHECK(chosen_of(compressed).backward_words < chosen_of(dense).backward_words);
    }
  }
  // Everything fits: Q and K by entries, V, O and LSE in full, each once.
  const Plan plan = make_plan(full(100), stored(4, 8, 0, 32), {.fast_memory_bytes = 4 << 18});
  CHECK(count_forward(plan).counted() >= 100 * (4 + 8 + 32 + 32 + 1));
  CHECK(count_forward(plan).counted() < 100 * (32 + 32 + 32 + 32 + 1));
}

TEST_CASE("entries lower the time that dense tiles are expected to take, more so the fewer they are") {
  const auto seconds = [](const Problem& problem) { return chosen_of(make_plan(causal(2048), problem)).seconds; };
  const double dense = seconds(stored(0, 0, 0, 256));
  const double eighth = seconds(stored(32, 32, 0, 256));
  const double few = seconds(stored(8, 8, 0, 256));
  const double all_few = seconds(stored(8, 8, 8, 256));
  CHECK(eighth < dense);
  CHECK(few < eighth);
  CHECK(all_few < few);
}

TEST_CASE("tiles that write compressed panels out are candidates, and chosen where entries are many") {
  const auto is_whole = [](const PlanCandidate& candidate) {
    return candidate.name.find("compressed panels in full") != std::string::npos;
  };
  for (const double entries : {1.0, 8.0, 30.0, 34.0, 60.0}) {
    CAPTURE(entries);
    const Plan plan = make_plan(causal(2048), stored(entries, entries, entries));
    const auto wholes = std::count_if(plan.candidates().begin(), plan.candidates().end(), is_whole);
    CHECK(2 * wholes == std::ssize(plan.candidates()));
    CHECK(is_whole(chosen_of(plan)) == (entries > 32));
    CHECK(plan.data().whole_panels == (entries > 32));
  }
  const Plan dense = make_plan(causal(2048), {.head_dim = 64});
  CHECK(std::none_of(dense.candidates().begin(), dense.candidates().end(), is_whole));
}

TEST_CASE("the counted traffic of the regime's schedule is the bound of Z_input times a constant that spreads little") {
  // The constant grows with features per entry, since panels of queries and sums are held in full.
  for (const double entries : {4.0, 8.0, 12.0}) {
    double least = 1e300;
    double most = 0;
    int bound_by_theorem = 0;
    for (const Pattern& pattern : {full(512), random_pairs(512, 512, 32, 1), random_pairs(1024, 1024, 16, 2)}) {
      const auto tokens = static_cast<double>(pattern.rows());
      for (std::int64_t memory = 1 << 7; memory <= 1 << 14; memory *= 2) {
        const Plan plan = make_plan(pattern, stored(entries, entries, entries, 16),
                                    {.tile_sizes = TileSizes::model, .fast_memory_bytes = 4 * memory});
        const double theorem = sparse_bound(tokens * entries, static_cast<double>(pattern.pairs()), memory);
        const double compulsory = tokens * (3 * entries + 16 + 1);  // Q, K, V, O, LSE
        if (theorem < compulsory) continue;
        const double constant = static_cast<double>(count_forward(plan).counted()) / theorem;
        ++bound_by_theorem;
        least = std::min(least, constant);
        most = std::max(most, constant);
      }
    }
    MESSAGE(entries, " entries: ", least, " to ", most, " in ", bound_by_theorem, " cases");
    CHECK(bound_by_theorem >= 5);
    CHECK(most <= 6 * least);
    CHECK(least >= 1);
  }
}

TEST_CASE("products of scattered pairs are expected to take entries of CSR, but not of BSR") {
  const Pattern pattern = random_pairs(1024, 1024, 16, 1);
  const auto seconds_of_rows = [&](bool in_blocks) {
    Problem problem = stored(4, 4, 0);
    problem.key_in_blocks = in_blocks;
    const Plan plan = make_plan(pattern, problem);
    for (const PlanCandidate& candidate : plan.candidates()) {
      if (candidate.name.find("row-wise") != std::string::npos) return candidate.seconds;
    }
    return 0.0;
  };
  CHECK(seconds_of_rows(false) > 0);
  CHECK(seconds_of_rows(false) < seconds_of_rows(true));
}
