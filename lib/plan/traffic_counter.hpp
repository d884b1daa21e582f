#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/parallel_for.hpp"
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

/// What the phases move that phases(plan, consume) consumes, counted on the caller's threads.
template <class Phases>
WalkTraffic count_traffic(const PlanData& plan, const Phases& phases) {
  std::atomic<std::int64_t> loads = 0;
  std::atomic<std::int64_t> stores = 0;
  phases(plan, [&](const Phase& phase) {
    constexpr std::int64_t kMostParts = 16;
    const std::int64_t parts = std::min(phase.tasks, kMostParts);
    parallel_for(parts, [&](std::int64_t part) {
      TrafficCounter counter(plan);
      for (std::int64_t task = phase.tasks * part / parts; task < phase.tasks * (part + 1) / parts; ++task) {
        phase.walk(task, counter);
      }
      loads += counter.traffic().loads;
      stores += counter.traffic().stores;
    });
  });
  return {loads, stores};
}

}  // namespace cobble::detail
