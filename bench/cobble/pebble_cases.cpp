#include "pebble_cases.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <optional>

#include "cobble/error.hpp"
#include "progress.hpp"

namespace cobble::program {
namespace {

constexpr std::int64_t kWordBytes = 4;

std::optional<Plan> plan_if_feasible(const PebbleProblem& problem, Schedule schedule, std::int64_t fast_memory_words,
                                     bool parameter_gradients) {
  PlanOptions options;
  options.schedule = schedule;
  options.tile_sizes = TileSizes::model;
  options.parameter_gradients = parameter_gradients;
  options.fast_memory_bytes = fast_memory_words * kWordBytes;
  options.element_bytes = kWordBytes;
  try {
    return make_plan(problem.pattern, model_problem(problem.sizes, problem.features), options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::infeasible) throw;
    return std::nullopt;
  }
}

PebbleCount count_pass(PebblePass pass, const Plan& plan) {
  switch (pass) {
    case PebblePass::forward: return count_forward(plan);
    case PebblePass::backward: return count_backward(plan);
    case PebblePass::parameter_gradients: return count_parameter_gradients(plan);
  }
  return {};
}

Schedule schedule_of(Regime regime) {
  return regime == Regime::large_fast_memory ? Schedule::recompute : Schedule::materialize;
}

}  // namespace

std::string_view to_string(PebblePass pass) noexcept {
  switch (pass) {
    case PebblePass::forward: return "forward";
    case PebblePass::backward: return "backward";
    case PebblePass::parameter_gradients: return "parameter_gradients";
  }
  return "unknown";
}

TrafficBound pass_bound(PebblePass pass, const AttentionSize& size, std::int64_t fast_memory_words) {
  switch (pass) {
    case PebblePass::forward: return forward_bound(size, fast_memory_words);
    case PebblePass::backward: return backward_bound(size, fast_memory_words);
    case PebblePass::parameter_gradients:
      return {parameter_gradients_bound(size, fast_memory_words), parameter_gradients_compulsory(size)};
  }
  return {};
}

std::vector<PebbleCase> count_cases(const PebbleProblem& problem) {
  const AttentionSize size = problem.size();
  const double split = split_point(input_words(size), static_cast<double>(size.pairs));
  const std::size_t schedules = problem.schedules.size();
  const std::size_t memories = problem.fast_memory_words.size();
  std::vector<PebbleCase> cases(problem.passes.size() * memories * schedules);
  Progress progress("counting words moved", static_cast<std::int64_t>(cases.size()));

  const bool weights =
      std::find(problem.passes.begin(), problem.passes.end(), PebblePass::parameter_gradients) != problem.passes.end();

  // The smallest fast memory has the most tiles, so it is begun first.
  tbb::parallel_for(std::size_t{0}, memories * schedules, [&](std::size_t index) {
    const std::int64_t words = problem.fast_memory_words[index / schedules];
    const Schedule schedule = problem.schedules[index % schedules];
    const std::optional<Plan> attention = plan_if_feasible(problem, schedule, words, false);
    const std::optional<Plan> projected = weights ? plan_if_feasible(problem, schedule, words, true) : std::nullopt;
    for (std::size_t pass = 0; pass < problem.passes.size(); ++pass) {
      PebbleCase& result = cases[pass * memories * schedules + index];
      result.schedule = schedule;
      result.pass = problem.passes[pass];
      const std::optional<Plan>& plan = result.pass == PebblePass::parameter_gradients ? projected : attention;
      result.fast_memory_words = words;
      result.split_point = split;
      result.bound = pass_bound(result.pass, size, words);
      result.regime_pick = schedule == schedule_of(regime(words, split));
      result.feasible = plan.has_value();
      if (plan) result.count = count_pass(result.pass, *plan);
      progress.advance();
    }
  });
  return cases;
}

}  // namespace cobble::program
