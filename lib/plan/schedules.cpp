#include "plan/schedules.hpp"

#include "plan/materialize.hpp"
#include "plan/recompute.hpp"
#include "plan/traffic_counter.hpp"

namespace cobble::detail {
void forward_phases(const PlanData& plan, const PhaseConsumer& consume) {
  if (plan.schedule == Schedule::materialize) {
    materialize_forward(plan, consume);
  } else {
    recompute_forward(plan, consume);
  }
}

void backward_phases(const PlanData& plan, const PhaseConsumer& consume) {
  if (plan.schedule == Schedule::materialize) {
    materialize_backward(plan, consume);
  } else {
    recompute_backward(plan, consume);
  }
}

WalkTraffic forward_traffic(const PlanData& plan) { return count_traffic(plan, forward_phases); }

WalkTraffic backward_traffic(const PlanData& plan) { return count_traffic(plan, backward_phases); }

}  // namespace cobble::detail
