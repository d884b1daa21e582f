#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cobble/model.hpp"
#include "cobble/pattern.hpp"
#include "cobble/pebble.hpp"
#include "cobble/plan.hpp"
#include "feature_options.hpp"

// What `cobble pebble` counts: every schedule and pass at every size of fast memory, beside the floor of the model.

namespace cobble::program {

enum class PebblePass {
  forward,
  backward,
  parameter_gradients  ///< dX and dY for scores A1 X A2^T and values A3 Y, forward included
};
std::string_view to_string(PebblePass pass) noexcept;

/// One head of a pattern, and what to count of it.
struct PebbleProblem {
  Pattern pattern;
  Problem sizes = {.head_dim = 64, .value_dim = 64};
  FeatureOptions features;
  std::vector<Schedule> schedules;
  std::vector<PebblePass> passes;
  std::vector<std::int64_t> fast_memory_words;

  AttentionSize size() const {
    const Problem model = model_problem(sizes, features);
    return {pattern.rows(), pattern.columns(), pattern.pairs(), model.head_dim, model.value_dim};
  }
};

struct PebbleCase {
  Schedule schedule = Schedule::recompute;
  PebblePass pass = PebblePass::forward;
  std::int64_t fast_memory_words = 0;
  double split_point = 0;
  TrafficBound bound;
  bool regime_pick = false;  ///< the schedule for this side of the split point
  bool feasible = false;     ///< whether fast memory holds a tile of the schedule; otherwise nothing was counted
  PebbleCount count;

  /// Counted words over the floor.
  double ratio() const { return static_cast<double>(count.counted()) / bound.words(); }
};

TrafficBound pass_bound(PebblePass pass, const AttentionSize& size, std::int64_t fast_memory_words);

/// By pass, fast memory and schedule, in the order in which the problem lists them. Tiles are the model's, to the word.
std::vector<PebbleCase> count_cases(const PebbleProblem& problem);

}  // namespace cobble::program
