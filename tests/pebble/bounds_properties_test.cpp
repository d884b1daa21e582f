#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cobble/pebble.hpp"
#include "cobble/plan.hpp"
#include "support/schedules.hpp"

// Counted traffic against the bounds of the model (issue: "what it must show"). Larger sizes are counted by
// `cobble pebble`; the constants hold for these as for those.

using namespace cobble;
using namespace cobble::test;

namespace {

constexpr std::int64_t kWordBytes = 4;

/// Pairs spread evenly: n / inverse_density in each row.
Pattern even_pattern(std::int64_t n, std::int64_t inverse_density) {
  return inverse_density == 1 ? full(n) : random_pairs(n, n, n / inverse_density, 1);
}

AttentionSize size_of(const Pattern& pattern, std::int64_t d) {
  return {pattern.rows(), pattern.columns(), pattern.pairs(), d, d};
}

PlanOptions model_tiles(Schedule schedule, std::int64_t fast_memory_words) {
  return {.schedule = schedule, .tile_sizes = TileSizes::model, .fast_memory_bytes = fast_memory_words * kWordBytes};
}

double ratio(std::int64_t counted, double words) { return static_cast<double>(counted) / words; }

/// The extremes of counted / bound.
struct Constants {
  double most = 0;
  double least_bound_by_theorem = 1e300;
  double most_bound_by_theorem = 0;

  void add(std::int64_t counted, const TrafficBound& bound) {
    const double constant = ratio(counted, bound.words());
    most = std::max(most, constant);
    if (!bound.theorem_binds()) return;
    least_bound_by_theorem = std::min(least_bound_by_theorem, constant);
    most_bound_by_theorem = std::max(most_bound_by_theorem, constant);
  }
};

struct Sweep {
  std::int64_t n;
  std::vector<std::int64_t> features, inverse_densities;
  std::int64_t memory_step;
};
const std::vector<Sweep> kSweeps{{256, {16, 64}, {1, 4, 16, 64}, 2}, {512, {16}, {1, 16}, 4}, {512, {64}, {4, 64}, 8}};

/// What the schedule that the regime picks is predicted to move, and moves.
struct Measured {
  std::int64_t n, inverse_density, d, memory;
  AttentionSize size;
  PebbleCount forward, backward;
  PlanCandidate chosen;
};

const PlanCandidate& chosen_of(const Plan& plan) {
  return *std::find_if(plan.candidates().begin(), plan.candidates().end(),
                       [](const PlanCandidate& candidate) { return candidate.chosen; });
}

const std::vector<Measured>& measured_sweeps() {
  static const std::vector<Measured> all = [] {
    std::vector<Measured> results;
    for (const Sweep& sweep : kSweeps) {
      for (const std::int64_t inverse_density : sweep.inverse_densities) {
        const Pattern pattern = even_pattern(sweep.n, inverse_density);
        for (const std::int64_t d : sweep.features) {
          for (std::int64_t memory = 1 << 8; memory <= 1 << 18; memory *= sweep.memory_step) {
            const Plan plan = make_plan(pattern, {.head_dim = d}, model_tiles(Schedule::automatic, memory));
            results.push_back({sweep.n, inverse_density, d, memory, size_of(pattern, d), count_forward(plan),
                               count_backward(plan), chosen_of(plan)});
          }
        }
      }
    }
    return results;
  }();
  return all;
}

std::string describe(const Measured& m) {
  return "n " + std::to_string(m.n) + ", d " + std::to_string(m.d) + ", density 1 / " +
         std::to_string(m.inverse_density) + ", M " + std::to_string(m.memory) + ": " + m.chosen.name;
}

struct Counts {
  bool feasible = false;
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};

Counts count(const Pattern& pattern, std::int64_t d, Schedule schedule, std::int64_t memory) {
  const auto plan = feasible_plan(pattern, {.head_dim = d}, model_tiles(schedule, memory));
  if (!plan) return {};
  return {true, count_forward(*plan).counted(), count_backward(*plan).counted()};
}

}  // namespace

TEST_CASE("the schedule that the regime picks counts at most 8 times the bound forward, 20 times backward") {
  Constants forward, backward;
  std::int64_t by_theorem = 0;
  for (const Measured& m : measured_sweeps()) {
    INFO(describe(m));
    const TrafficBound forward_floor = forward_bound(m.size, m.memory);
    const TrafficBound backward_floor = backward_bound(m.size, m.memory);
    CHECK(ratio(m.forward.counted(), forward_floor.words()) <= 8);
    CHECK(ratio(m.backward.counted(), backward_floor.words()) <= 20);
    // No schedule does with less than compulsory traffic; keys without a pair, of which there are few, are not read.
    CHECK(ratio(m.forward.counted(), forward_floor.compulsory) >= 0.98);
    CHECK(ratio(m.backward.counted(), backward_floor.compulsory) >= 0.98);
    CHECK(m.forward.peak_resident <= m.memory);
    CHECK(m.backward.peak_resident <= m.memory);
    forward.add(m.forward.counted(), forward_floor);
    backward.add(m.backward.counted(), backward_floor);
    by_theorem += forward_floor.theorem_binds() ? 1 : 0;
  }
  MESSAGE("largest constants: forward ", forward.most, ", backward ", backward.most);
  CHECK(by_theorem >= 10);
  // Where the theorem binds the constant spreads by a factor of 4 at most.
  CHECK(forward.most_bound_by_theorem <= 4 * forward.least_bound_by_theorem);
  CHECK(backward.most_bound_by_theorem <= 4 * backward.least_bound_by_theorem);
}

TEST_CASE("the model's formulas predict what is counted when pairs are spread evenly") {
  double worst = 0;
  for (const Measured& m : measured_sweeps()) {
    INFO(describe(m));
    const double forward = m.chosen.forward_formula_words / static_cast<double>(m.forward.counted());
    const double backward = m.chosen.backward_formula_words / static_cast<double>(m.backward.counted());
    CHECK(forward == doctest::Approx(1).epsilon(0.1));
    CHECK(backward == doctest::Approx(1).epsilon(0.1));
    worst = std::max({worst, std::abs(forward - 1), std::abs(backward - 1)});
  }
  MESSAGE("largest relative error of the prediction: ", worst);
}

TEST_CASE("where everything fits, forward moves each input and each output once") {
  const Pattern pattern = full(200);
  const Plan plan = make_plan(pattern, {.head_dim = 16}, model_tiles(Schedule::automatic, 1 << 18));
  CHECK(static_cast<double>(count_forward(plan).counted()) == forward_compulsory(size_of(pattern, 16)));
}

TEST_CASE("recompute counts less from about M* on: the two schedules cross within a factor of 4 of it") {
  int crossings_by_theorem = 0;
  const auto check = [&](const Pattern& pattern, std::int64_t d) {
    const AttentionSize size = size_of(pattern, d);
    const double split = split_point(input_words(size), static_cast<double>(size.pairs));
    bool crossed_forward = false, crossed_backward = false;
    const auto see = [&](std::int64_t memory, bool cheaper, const TrafficBound& bound, bool& crossed) {
      if (!cheaper || crossed) return;
      crossed = true;
      // Where compulsory traffic binds, both schedules are near it, and whichever wins by a little says nothing.
      if (!bound.theorem_binds()) return;
      ++crossings_by_theorem;
      CHECK(static_cast<double>(memory) <= 4 * split);
      CHECK(static_cast<double>(memory) > split / 4);
    };
    for (std::int64_t memory = 128; memory <= 1 << 18 && (!crossed_forward || !crossed_backward); memory *= 2) {
      INFO("n ", pattern.rows(), ", d ", d, ", pairs ", pattern.pairs(), ", M ", memory, ", M* ", split);
      const Counts recompute = count(pattern, d, Schedule::recompute, memory);
      const Counts materialize = count(pattern, d, Schedule::materialize, memory);
      see(memory, recompute.feasible && recompute.forward <= materialize.forward, forward_bound(size, memory),
          crossed_forward);
      see(memory, recompute.feasible && recompute.backward <= materialize.backward, backward_bound(size, memory),
          crossed_backward);
    }
  };
  check(even_pattern(256, 1), 16);
  check(even_pattern(256, 1), 32);
  check(even_pattern(512, 1), 16);
  check(even_pattern(512, 4), 16);
  CHECK(crossings_by_theorem >= 5);
}

TEST_CASE("well below M* materialize counts less, well above it recompute does") {
  for (const std::int64_t inverse_density : {1, 4}) {
    const Pattern pattern = even_pattern(384, inverse_density);
    const std::int64_t d = 32;
    const std::int64_t split = d * d * inverse_density;
    const Counts recompute_below = count(pattern, d, Schedule::recompute, split / 4);
    const Counts materialize_below = count(pattern, d, Schedule::materialize, split / 4);
    CHECK(materialize_below.forward < recompute_below.forward);
    CHECK(materialize_below.backward < recompute_below.backward);
    const Counts recompute_above = count(pattern, d, Schedule::recompute, split * 4);
    const Counts materialize_above = count(pattern, d, Schedule::materialize, split * 4);
    CHECK(recompute_above.forward < materialize_above.forward);
    CHECK(recompute_above.backward < materialize_above.backward);
  }
}

TEST_CASE("windows, blocks and documents count below the worst case, within 6 times compulsory traffic") {
  struct Structured {
    Pattern pattern;
    std::int64_t width;  ///< keys that a row attends to
  };
  const std::int64_t n = 4096;
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(n / 64), 64);
  const std::vector<Structured> all{{window(n, 31, 0), 32},           {window(n, 127, 0), 128},
                                    {window(n, 32, 32), 65},          {random_blocks(n, 64, 2, 1), 128},
                                    {random_blocks(n, 16, 4, 1), 64}, {documents(lengths), 64}};
  int below_theorem = 0;
  for (const Structured& structured : all) {
    for (const std::int64_t d : {16, 64}) {
      const AttentionSize size = size_of(structured.pattern, d);
      // The keys and values of a window fit.
      for (std::int64_t memory = 2 * d * structured.width; memory <= 1 << 15; memory *= 4) {
        const Plan plan = make_plan(structured.pattern, {.head_dim = d}, model_tiles(Schedule::automatic, memory));
        INFO(structured.pattern.describe(), ", d ", d, "\n", plan.describe());
        const std::int64_t forward = count_forward(plan).counted();
        const std::int64_t backward = count_backward(plan).counted();
        CHECK(ratio(forward, forward_compulsory(size)) <= 6);
        CHECK(ratio(backward, backward_compulsory(size)) <= 6);
        // What as many pairs would cost, were they spread evenly.
        const PlanCandidate& chosen = chosen_of(plan);
        CHECK(static_cast<double>(forward) < chosen.forward_formula_words);
        CHECK(static_cast<double>(backward) < chosen.backward_formula_words);
        if (forward_bound(size, memory).theorem > static_cast<double>(forward)) ++below_theorem;
      }
    }
  }
  CHECK(below_theorem >= 4);
}

TEST_CASE("a long window counts below the theorem's worst case, constant and all, forward and backward") {
  // The worst case grows with n^1.5, a window's traffic with n.
  const std::int64_t n = 32768, d = 16, memory = 2048;
  const Pattern pattern = window(n, 63, 0);
  const AttentionSize size = size_of(pattern, d);
  const Plan plan = make_plan(pattern, {.head_dim = d}, model_tiles(Schedule::automatic, memory));
  INFO(plan.describe());
  REQUIRE(forward_bound(size, memory).theorem_binds());
  REQUIRE(backward_bound(size, memory).theorem_binds());
  CHECK(ratio(count_forward(plan).counted(), forward_bound(size, memory).theorem) < 0.5);
  CHECK(ratio(count_backward(plan).counted(), backward_bound(size, memory).theorem) < 0.8);
}
