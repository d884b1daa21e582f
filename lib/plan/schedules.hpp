#pragma once

#include "plan/plan_data.hpp"

// The one door to both schedules.

namespace cobble::detail {

/// How the tasks of recompute's one-pass backward are cut. Both add the same tiles to each gradient in the same order,
/// so that the bits do not depend on the choice.
enum class BackwardTasks {
  heads,  ///< a task is a key/value head: five products a tile, nothing stored
  chunks  ///< chunks of row panels keep P and dS of their tiles; first all rows of the chunk, then all its columns
};

/// Calls consume(phase) for each phase of the plan's schedule, in order.
void forward_phases(const PlanData& plan, const PhaseConsumer& consume);
void backward_phases(const PlanData& plan, BackwardTasks tasks, const PhaseConsumer& consume);

/// What a whole walk moves, in words: exact for the walk, without its rules being checked.
struct WalkTraffic {
  std::int64_t loads = 0;
  std::int64_t stores = 0;

  std::int64_t words() const noexcept { return loads + stores; }
};
WalkTraffic forward_traffic(const PlanData& plan);
/// With BackwardTasks::heads.
WalkTraffic backward_traffic(const PlanData& plan);

}  // namespace cobble::detail
