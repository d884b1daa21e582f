#include "cobble/plan.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>

#include "cobble/fast_memory.hpp"
#include "cobble/model.hpp"
#include "core/checked.hpp"
#include "model/machine_cores.hpp"
#include "plan/candidates.hpp"
#include "plan/estimate.hpp"
#include "plan/plan_data.hpp"

namespace cobble {
namespace {

using detail::Operand;
using detail::PlanData;

void require_positive(std::int64_t value, const char* name) {
  if (value < 1) {
    throw Error(ErrorCode::invalid_argument,
                std::string(name) + " = " + std::to_string(value) + ", expected at least 1");
  }
}

void require_not_negative(std::int64_t value, const char* name) {
  if (value < 0) {
    throw Error(ErrorCode::invalid_argument,
                std::string(name) + " = " + std::to_string(value) + ", expected 0 (automatic) or more");
  }
}

void require_entries(double entries, std::int64_t features, const char* name) {
  if (!(entries >= 0) || entries > static_cast<double>(features)) {
    throw Error(ErrorCode::invalid_argument, std::string(name) + " = " + std::to_string(entries) +
                                                 ", expected 0 (dense) to the number of features, " +
                                                 std::to_string(features));
  }
}

Problem completed(Problem problem) {
  require_positive(problem.head_dim, "head_dim");
  require_not_negative(problem.value_dim, "value_dim");
  require_positive(problem.query_heads, "query_heads");
  require_not_negative(problem.key_value_heads, "key_value_heads");
  require_positive(problem.batch, "batch");
  if (problem.value_dim == 0) problem.value_dim = problem.head_dim;
  if (problem.key_value_heads == 0) problem.key_value_heads = problem.query_heads;
  if (problem.query_heads % problem.key_value_heads != 0) {
    throw Error(ErrorCode::invalid_argument,
                "key_value_heads = " + std::to_string(problem.key_value_heads) +
                    " does not divide query_heads = " + std::to_string(problem.query_heads));
  }
  checked_product({problem.batch, problem.query_heads}, "batch x query heads");
  require_entries(problem.query_entries, problem.head_dim, "query_entries");
  require_entries(problem.key_entries, problem.head_dim, "key_entries");
  require_entries(problem.value_entries, problem.value_dim, "value_entries");
  if (!problem.scale) problem.scale = 1 / std::sqrt(static_cast<double>(problem.head_dim));
  if (!std::isfinite(*problem.scale)) {
    throw Error(ErrorCode::invalid_argument, "scale = " + std::to_string(*problem.scale) + " is not finite");
  }
  return problem;
}

void require_broadcast(std::int64_t grid_size, std::int64_t size, const char* axis) {
  if (grid_size != 1 && grid_size != size) {
    throw Error(ErrorCode::shape_mismatch, std::string("the patterns have ") + axis + " = " +
                                               std::to_string(grid_size) + ", the problem " + std::to_string(size) +
                                               "; expected that or 1");
  }
}

void count_pairs(PlanData& plan) {
  for (const Pattern& pattern : plan.patterns.patterns()) plan.pattern_pairs.push_back(pattern.pairs());
  for (std::int64_t batch = 0; batch < plan.problem.batch; ++batch) {
    for (std::int64_t head = 0; head < plan.problem.query_heads; ++head) {
      const auto index = static_cast<std::size_t>(plan.patterns.index(batch, head));
      plan.total_pairs = checked_sum(plan.total_pairs, plan.pattern_pairs[index], "pairs of all heads");
    }
  }
}

/// One head with as many pairs as the mean of all.
AttentionSize mean_size(const PlanData& plan) {
  const std::int64_t heads = checked_product({plan.problem.batch, plan.problem.query_heads}, "batch x query heads");
  return {plan.patterns.rows(), plan.patterns.columns(), divide_up(plan.total_pairs, heads), plan.problem.head_dim,
          plan.problem.value_dim};
}

/// Z_input of one head: the largest nnz of Q, K and V.
double stored_input_words(const Problem& problem, const AttentionSize& size) {
  const auto nnz = [&](std::int64_t tokens, std::int64_t features, Operand operand) {
    return static_cast<double>(tokens) * static_cast<double>(features) * detail::stored_share(problem, operand);
  };
  return std::max({nnz(size.queries, size.head_dim, Operand::query), nnz(size.keys, size.head_dim, Operand::key),
                   nnz(size.keys, size.value_dim, Operand::value)});
}

[[noreturn]] void throw_infeasible(const PlanData& plan, const PlanOptions& options) {
  throw Error(ErrorCode::infeasible, "fast memory of " + std::to_string(plan.fast_memory_words) +
                                         " words holds no tile of the " + std::string(to_string(options.schedule)) +
                                         " schedule with head_dim = " + std::to_string(plan.problem.head_dim) +
                                         " and value_dim = " + std::to_string(plan.problem.value_dim) +
                                         "; recompute needs a few times head_dim + value_dim words, materialize 64");
}

/// The candidate that was asked for, or the best by `less`.
template <class Less>
std::size_t choose_index(const std::vector<PlanCandidate>& summaries, const PlanOptions& options, Less less) {
  if (options.candidate) {
    const auto count = static_cast<std::int64_t>(summaries.size());
    if (*options.candidate < 0 || *options.candidate >= count) {
      throw Error(ErrorCode::invalid_argument, "candidate = " + std::to_string(*options.candidate) +
                                                   ", expected an index of the " + std::to_string(count) +
                                                   " candidates");
    }
    return static_cast<std::size_t>(*options.candidate);
  }
  return static_cast<std::size_t>(std::min_element(summaries.begin(), summaries.end(), less) - summaries.begin());
}

/// Realizes what a sample promises to be fastest.
PlanData choose_fastest(const PlanData& plan, const AttentionSize& size, const PlanOptions& options,
                        std::vector<detail::CandidatePlan> candidates) {
  predict_by_formula(plan, size, candidates);
  estimate(plan, options, candidates);
  std::vector<PlanCandidate> summaries;
  for (const detail::CandidatePlan& candidate : candidates) summaries.push_back(candidate.summary);
  const std::size_t chosen = choose_index(
      summaries, options, [](const PlanCandidate& a, const PlanCandidate& b) { return a.seconds < b.seconds; });
  const double seconds = summaries[chosen].seconds;
  PlanData realized = realize(plan, std::move(candidates[chosen]), size, options);
  summaries[chosen] = realized.candidates.front();
  summaries[chosen].seconds = seconds;
  summaries[chosen].chosen = true;
  realized.candidates = std::move(summaries);
  return realized;
}

/// Realizes every candidate and keeps the one that moves least.
PlanData choose_least_traffic(const PlanData& plan, const AttentionSize& size, const PlanOptions& options,
                              std::vector<detail::CandidatePlan> candidates) {
  std::vector<PlanData> realized;
  for (detail::CandidatePlan& candidate : candidates) {
    realized.push_back(realize(plan, candidate, size, options));
    candidate.summary = realized.back().candidates.front();
  }
  estimate(plan, options, candidates);
  std::vector<PlanCandidate> summaries;
  for (const detail::CandidatePlan& candidate : candidates) summaries.push_back(candidate.summary);
  const std::size_t chosen = choose_index(summaries, options, [](const PlanCandidate& a, const PlanCandidate& b) {
    return a.forward_words + a.backward_words < b.forward_words + b.backward_words;
  });
  summaries[chosen].chosen = true;
  realized[chosen].candidates = std::move(summaries);
  return std::move(realized[chosen]);
}

PlanData choose(const PlanData& plan, const AttentionSize& size, const PlanOptions& options) {
  std::vector<detail::CandidatePlan> candidates = detail::propose(plan, size, options);
  if (candidates.empty()) throw_infeasible(plan, options);
  if (options.tile_sizes == TileSizes::hardware) return choose_fastest(plan, size, options, std::move(candidates));
  return choose_least_traffic(plan, size, options, std::move(candidates));
}

/// The same plan for tokens in another order.
PlanData reordered(const PlanData& plan, Reordering reordering) {
  const Pattern& pattern = plan.patterns.patterns().front();
  PlanData other = plan;
  other.given_patterns = plan.patterns;
  other.patterns = PatternGrid({permute(pattern, reordering)}, plan.patterns.batch(), plan.patterns.heads());
  other.reordering = std::move(reordering);
  return other;
}

void require_reorderable(const PlanData& plan, const PlanOptions& options) {
  if (plan.patterns.patterns().size() != 1) {
    throw Error(ErrorCode::unsupported, "reorder = " + std::string(to_string(options.reorder)) + " with " +
                                            std::to_string(plan.patterns.patterns().size()) +
                                            " patterns, expected one for all heads");
  }
  if (options.parameter_gradients) {
    throw Error(ErrorCode::unsupported, "reorder = " + std::string(to_string(options.reorder)) +
                                            " with parameter_gradients, expected identity");
  }
}

/// Copies q, k, v, o, dO and back dQ, dK, dV, each read and written once, rows at random places.
double seconds_of_reordering(const PlanData& plan, const PlanOptions& options) {
  const Problem& problem = plan.problem;
  const auto queries = static_cast<double>(problem.query_heads * plan.patterns.rows());
  const auto keys = static_cast<double>(problem.key_value_heads * plan.patterns.columns());
  const auto d = static_cast<double>(problem.head_dim);
  const auto d_v = static_cast<double>(problem.value_dim);
  const double words = static_cast<double>(problem.batch) * (queries * (4 * d + 4 * d_v) + keys * (3 * d + 3 * d_v));
  return 4 * words * static_cast<double>(options.element_bytes) / plan.cost_model.bytes_per_second /
         static_cast<double>(plan.threads);
}

const PlanCandidate& chosen_candidate(const PlanData& plan) {
  return *std::find_if(plan.candidates.begin(), plan.candidates.end(),
                       [](const PlanCandidate& candidate) { return candidate.chosen; });
}

}  // namespace

std::string_view to_string(Schedule schedule) noexcept {
  switch (schedule) {
    case Schedule::automatic: return "auto";
    case Schedule::recompute: return "recompute";
    case Schedule::materialize: return "materialize";
  }
  return "unknown";
}

std::string_view to_string(BackwardPasses passes) noexcept {
  switch (passes) {
    case BackwardPasses::automatic: return "auto";
    case BackwardPasses::one: return "one";
    case BackwardPasses::two: return "two";
  }
  return "unknown";
}

const Problem& Plan::problem() const noexcept { return data_->problem; }
const PatternGrid& Plan::patterns() const noexcept {
  return data_->given_patterns ? *data_->given_patterns : data_->patterns;
}
const Reordering* Plan::reordering() const noexcept { return data_->reordering ? &*data_->reordering : nullptr; }
std::int64_t Plan::total_pairs() const noexcept { return data_->total_pairs; }
Schedule Plan::schedule() const noexcept { return data_->schedule; }
Regime Plan::regime() const noexcept { return data_->regime; }
double Plan::split_point() const noexcept { return data_->split_point; }
std::int64_t Plan::fast_memory_words() const noexcept { return data_->fast_memory_words; }
std::int64_t Plan::row_panel() const noexcept { return chosen_candidate(*data_).row_panel; }
std::int64_t Plan::column_panel() const noexcept { return chosen_candidate(*data_).column_panel; }
std::int64_t Plan::feature_chunk() const noexcept { return chosen_candidate(*data_).feature_chunk; }
const CostModel& Plan::cost_model() const noexcept { return data_->cost_model; }
const std::vector<PlanCandidate>& Plan::candidates() const noexcept { return data_->candidates; }

std::int64_t Plan::tiles() const noexcept {
  std::size_t tiles = 0;
  for (const std::vector<detail::TileList>& lists : data_->tile_lists) {
    for (const detail::TileList& list : lists) tiles += list.tiles.size();
  }
  return static_cast<std::int64_t>(tiles);
}

std::int64_t Plan::memory_bytes() const noexcept {
  auto bytes = static_cast<std::int64_t>(sizeof(PlanData));
  for (const std::vector<detail::TileList>& lists : data_->tile_lists) {
    for (const detail::TileList& list : lists) bytes += list.memory_bytes();
  }
  for (const std::vector<std::int64_t>& offsets : data_->pair_offsets) {
    bytes += static_cast<std::int64_t>(offsets.capacity() * sizeof(std::int64_t));
  }
  return bytes;
}

std::int64_t Plan::workspace_bytes(std::int64_t threads, std::int64_t element_bytes) const noexcept {
  const std::int64_t values = detail::workspace_values(*data_, threads);
  constexpr std::int64_t kFloatBytes = sizeof(float);
  if (element_bytes >= kFloatBytes) return values * element_bytes;
  const Problem& problem = data_->problem;
  const std::int64_t key_sums =
      problem.batch * problem.key_value_heads * data_->patterns.columns() * (problem.head_dim + problem.value_dim);
  return (values + key_sums + threads * detail::bf16_scratch(*data_)) * kFloatBytes;
}

std::string Plan::describe() const {
  std::ostringstream text;
  text << "M* = " << split_point() << " words, M = " << fast_memory_words() << ": " << to_string(regime()) << '\n';
  for (const PlanCandidate& candidate : candidates()) {
    text << (candidate.chosen ? "* " : "  ") << candidate.name << ": forward " << candidate.forward_words
         << " words (evenly spread pairs: " << candidate.forward_formula_words << "), backward "
         << candidate.backward_words << " (" << candidate.backward_formula_words << "), " << candidate.seconds * 1e3
         << " ms by the cost model\n";
  }
  return text.str();
}

Plan make_plan(PatternGrid patterns, const Problem& problem, const PlanOptions& options) {
  require_not_negative(options.fast_memory_bytes, "fast_memory_bytes");
  require_positive(options.element_bytes, "element_bytes");
  require_not_negative(options.row_panel, "row_panel");
  require_not_negative(options.column_panel, "column_panel");
  require_not_negative(options.threads, "threads");
  PlanData plan = {.problem = completed(problem), .patterns = std::move(patterns)};
  require_broadcast(plan.patterns.batch(), plan.problem.batch, "batch");
  require_broadcast(plan.patterns.heads(), plan.problem.query_heads, "heads");
  count_pairs(plan);
  plan.fast_memory_words = fast_memory(options.fast_memory_bytes).bytes / options.element_bytes;
  plan.threads = options.threads > 0 ? options.threads : detail::machine_cores();
  plan.cost_model =
      options.calibrate ? measure_cost_model(options.element_bytes, plan.problem.head_dim) : options.cost_model;
  const AttentionSize size = mean_size(plan);
  plan.split_point = split_point(stored_input_words(plan.problem, size), static_cast<double>(size.pairs));
  plan.regime = regime(plan.fast_memory_words, plan.split_point);
  if (options.reorder == ReorderMethod::identity) {
    return Plan(std::make_shared<const PlanData>(choose(plan, size, options)));
  }
  require_reorderable(plan, options);
  Reordering reordering = reorder(plan.patterns.patterns().front(), options.reorder);
  const bool given = options.reorder != ReorderMethod::automatic;
  if (!given && reordering.method == ReorderMethod::identity) {
    return Plan(std::make_shared<const PlanData>(choose(plan, size, options)));
  }
  PlanData other = choose(reordered(plan, std::move(reordering)), size, options);
  if (given) return Plan(std::make_shared<const PlanData>(std::move(other)));
  PlanData same = choose(plan, size, options);
  const double saved = chosen_candidate(same).seconds - chosen_candidate(other).seconds;
  const bool pays = saved > seconds_of_reordering(plan, options);
  return Plan(std::make_shared<const PlanData>(pays ? std::move(other) : std::move(same)));
}

}  // namespace cobble
