#pragma once

#include "plan/plan_data.hpp"
#include "plan/schedules.hpp"

namespace cobble::detail {

/// The visitor that adds up what moves, without checking any rule.
class TrafficCounter final : public WalkVisitor {
 public:
  explicit TrafficCounter(const PlanData& plan) : plan_(plan) {}

  void load(const Block& block) override { traffic_.loads += moved_words(plan_, block); }
  void create(const Block&) override {}
  void stream(const Block& block, std::int64_t, Stream direction) override {
    if (direction != Stream::out) traffic_.loads += moved_words(plan_, block);
    if (direction != Stream::in) traffic_.stores += moved_words(plan_, block);
  }
  void compute(const Step&) override {}
  void store(const Block& block) override { traffic_.stores += moved_words(plan_, block); }
  void drop(const Block&) override {}

  const WalkTraffic& traffic() const noexcept { return traffic_; }

 private:
  const PlanData& plan_;
  WalkTraffic traffic_;
};

/// Lets a visitor walk all tasks of each phase, one after another.
inline PhaseConsumer walk_all(WalkVisitor& visitor) {
  return [&visitor](const Phase& phase) {
    for (std::int64_t task = 0; task < phase.tasks; ++task) phase.walk(task, visitor);
  };
}

}  // namespace cobble::detail
