#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cobble/error.hpp"
#include "cobble/plan.hpp"

// Every schedule at a given fast memory.

namespace cobble::test {

/// The fast memories, in words, that schedules are tested at.
inline constexpr std::int64_t kFastMemories[] = {64, 256, 4096, 1 << 18};

/// Recompute in one pass and in two, and materialize, each with hardware and model tile sizes.
inline std::vector<PlanOptions> all_schedules(std::int64_t fast_memory_words, std::int64_t element_bytes = 4) {
  std::vector<PlanOptions> all;
  for (const TileSizes sizes : {TileSizes::hardware, TileSizes::model}) {
    const PlanOptions options{
        .tile_sizes = sizes, .fast_memory_bytes = fast_memory_words * element_bytes, .element_bytes = element_bytes};
    for (const BackwardPasses passes : {BackwardPasses::one, BackwardPasses::two}) {
      all.push_back(options);
      all.back().schedule = Schedule::recompute;
      all.back().backward_passes = passes;
    }
    all.push_back(options);
    all.back().schedule = Schedule::materialize;
  }
  return all;
}

inline std::string describe(const PlanOptions& options) {
  std::string text(to_string(options.schedule));
  if (options.schedule != Schedule::materialize) text += ", passes: " + std::string(to_string(options.backward_passes));
  text += options.tile_sizes == TileSizes::model ? ", model tiles" : ", hardware tiles";
  return text + ", M = " + std::to_string(options.fast_memory_bytes / options.element_bytes);
}

/// Empty where the schedule is infeasible; any other error is passed on.
inline std::optional<Plan> feasible_plan(const PatternGrid& patterns, const Problem& problem,
                                         const PlanOptions& options) {
  try {
    return make_plan(patterns, problem, options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::infeasible) throw;
    return std::nullopt;
  }
}

}  // namespace cobble::test
