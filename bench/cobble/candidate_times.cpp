#include "candidate_times.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "cobble/error.hpp"
#include "statistics.hpp"

namespace cobble::program {
namespace {

/// The plan that takes candidate `index`; none when it cannot be made.
template <class T>
std::optional<Plan> forced_plan(const Passes<T>& passes, std::size_t index) {
  PlanOptions options;
  options.candidate = static_cast<std::int64_t>(index);
  const Reordering* const reordering = passes.plan().reordering();
  if (reordering != nullptr) options.reorder = reordering->method;
  try {
    return passes.make_plan(options);
  } catch (const Error&) {
    return std::nullopt;
  }
}

struct Contestant {
  Plan plan;
  CandidateTime time;
  std::vector<double> forward_ms;
  std::vector<double> backward_ms;

  double best_ms() const {
    return *std::min_element(forward_ms.begin(), forward_ms.end()) +
           *std::min_element(backward_ms.begin(), backward_ms.end());
  }
};

}  // namespace

template <class T>
std::vector<CandidateTime> measure_candidates(Passes<T>& passes, double seconds) {
  constexpr std::size_t kLeastRounds = 3;  // unless one is already longer than the time there is
  constexpr std::size_t kMostRounds = 25;
  constexpr double kFarFromBest = 2;
  constexpr double kShortMs = 20;
  const std::vector<PlanCandidate>& candidates = passes.plan().candidates();
  std::vector<Contestant> contestants;
  for (std::size_t index = 0; index < candidates.size(); ++index) {
    std::optional<Plan> plan = candidates[index].chosen ? passes.plan() : forced_plan(passes, index);
    if (plan) contestants.push_back({*plan, {candidates[index].name, 0, 0, candidates[index].chosen}, {}, {}});
  }

  const auto run = [&](Contestant& contestant) {
    contestant.forward_ms.push_back(milliseconds_of([&] { passes.forward(contestant.plan); }));
    contestant.backward_ms.push_back(milliseconds_of([&] { passes.backward(contestant.plan); }));
  };
  double best_ms = std::numeric_limits<double>::infinity();
  for (Contestant& contestant : contestants) {
    // The first run brings scratch memory to its size, which may take longer than a short pass, and counts only where
    // it is enough to go by.
    run(contestant);
    if (contestant.best_ms() <= std::max(kFarFromBest * best_ms, kShortMs)) {
      contestant.forward_ms.clear();
      contestant.backward_ms.clear();
      run(contestant);
      best_ms = std::min(best_ms, contestant.best_ms());
    }
  }
  const double budget_ms = seconds * 1e3;
  double spent_ms = best_ms;
  const std::size_t least_rounds = best_ms > budget_ms ? 1 : kLeastRounds;
  for (std::size_t round = 1; round < kMostRounds && (round < least_rounds || spent_ms < budget_ms); ++round) {
    double slowest_ms = 0;
    for (Contestant& contestant : contestants) {
      if (contestant.best_ms() > kFarFromBest * best_ms) continue;
      run(contestant);
      slowest_ms = std::max(slowest_ms, contestant.forward_ms.back() + contestant.backward_ms.back());
    }
    spent_ms += slowest_ms;
  }

  std::vector<CandidateTime> times;
  for (Contestant& contestant : contestants) {
    contestant.time.forward_ms = median(contestant.forward_ms);
    contestant.time.backward_ms = median(contestant.backward_ms);
    times.push_back(contestant.time);
  }
  return times;
}

template std::vector<CandidateTime> measure_candidates(Passes<float>&, double);
template std::vector<CandidateTime> measure_candidates(Passes<double>&, double);
template std::vector<CandidateTime> measure_candidates(Passes<bfloat16>&, double);
template std::vector<CandidateTime> measure_candidates(Passes<float16>&, double);

}  // namespace cobble::program
