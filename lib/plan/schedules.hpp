#pragma once

#include "plan/plan_data.hpp"

// The one door to both schedules.

namespace cobble::detail {

/// Calls consume(phase) for each phase of the plan's schedule, in order.
void forward_phases(const PlanData& plan, const PhaseConsumer& consume);
void backward_phases(const PlanData& plan, const PhaseConsumer& consume);

/// What a whole walk moves, in words: exact for the walk, without its rules being checked.
struct WalkTraffic {
  std::int64_t loads = 0;
  std::int64_t stores = 0;

  std::int64_t words() const noexcept { return loads + stores; }
};
WalkTraffic forward_traffic(const PlanData& plan);
WalkTraffic backward_traffic(const PlanData& plan);

}  // namespace cobble::detail
