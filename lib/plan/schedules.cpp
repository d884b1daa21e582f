#include "plan/schedules.hpp"

#include "plan/materialize.hpp"
#include "plan/recompute.hpp"

namespace cobble::detail {
namespace {

/// Adds up what moves.
class TrafficCounter final : public WalkVisitor {
 public:
  void load(const Block& block) override { traffic_.loads += words(block); }
  void create(const Block&) override {}
  void stream(const Block& block, std::int64_t, Stream direction) override {
    if (direction != Stream::out) traffic_.loads += words(block);
    if (direction != Stream::in) traffic_.stores += words(block);
  }
  void compute(const Step&) override {}
  void store(const Block& block) override { traffic_.stores += words(block); }
  void drop(const Block&) override {}

  const WalkTraffic& traffic() const noexcept { return traffic_; }

 private:
  WalkTraffic traffic_;
};

PhaseConsumer walk_all(WalkVisitor& visitor) {
  return [&visitor](const Phase& phase) {
    for (std::int64_t task = 0; task < phase.tasks; ++task) phase.walk(task, visitor);
  };
}

}  // namespace

void forward_phases(const PlanData& plan, const PhaseConsumer& consume) {
  if (plan.schedule == Schedule::materialize) {
    materialize_forward(plan, consume);
  } else {
    recompute_forward(plan, consume);
  }
}

void backward_phases(const PlanData& plan, BackwardTasks tasks, const PhaseConsumer& consume) {
  if (plan.schedule == Schedule::materialize) {
    materialize_backward(plan, consume);
  } else {
    recompute_backward(plan, tasks, consume);
  }
}

WalkTraffic forward_traffic(const PlanData& plan) {
  TrafficCounter counter;
  forward_phases(plan, walk_all(counter));
  return counter.traffic();
}

WalkTraffic backward_traffic(const PlanData& plan) {
  TrafficCounter counter;
  backward_phases(plan, BackwardTasks::heads, walk_all(counter));
  return counter.traffic();
}

}  // namespace cobble::detail
