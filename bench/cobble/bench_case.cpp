#include "bench_case.hpp"

#include <fmt/core.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "candidate_times.hpp"
#include "cobble/attention.hpp"
#include "cobble/plan.hpp"
#include "cobble/reorder.hpp"
#include "machine.hpp"
#include "passes.hpp"
#include "pattern_argument.hpp"
#include "progress.hpp"
#include "random.hpp"

namespace cobble::program {
namespace {

/// Dense attention of more tokens is estimated.
constexpr std::int64_t kDenseTokens = 4096;
/// Patterns of more tokens are checked by sample.
constexpr std::int64_t kCheckTokens = 1024;

/// Multiplications and additions a pair, forward and backward, with so many features a token of Q and K.
double forward_flop_per_pair(double features, const Problem& problem) {
  return 2 * (features + static_cast<double>(problem.value_dim));
}
double backward_flop_per_pair(double features, const Problem& problem) {
  return 2 * (3 * features + 2 * static_cast<double>(problem.value_dim));
}

/// Queries and keys in a random order.
Pattern shuffle(const Pattern& pattern, std::uint64_t seed) {
  return permute(pattern, {ReorderMethod::identity, random_permutation(pattern.rows(), seed, 1),
                           random_permutation(pattern.columns(), seed, 2)});
}

Pattern pattern_of(const BenchCase& measured, std::uint64_t seed) {
  PatternArgument argument;
  argument.text = measured.pattern;
  argument.seed = seed;
  const Pattern pattern = load_pattern(argument).pattern;
  return measured.shuffled ? shuffle(pattern, seed) : pattern;
}

const PlanCandidate& chosen_candidate(const Plan& plan) {
  return *std::find_if(plan.candidates().begin(), plan.candidates().end(),
                       [](const PlanCandidate& candidate) { return candidate.chosen; });
}

template <class Of>
void take_traffic(const Plan& plan, std::int64_t element_bytes, Of& of) {
  const PlanCandidate& chosen = chosen_candidate(plan);
  const auto bytes = static_cast<double>(element_bytes);
  of.forward_traffic_bytes = static_cast<double>(chosen.forward_words) * bytes;
  of.backward_traffic_bytes = static_cast<double>(chosen.backward_words) * bytes;
}

template <class Work>
auto on_threads(int threads, const Work& work) {
  // More threads than cores are possible only when the global limit is raised as well.
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  return arena.execute(work);
}

int products_at_a_time(const BenchOptions& options) { return options.seconds < 0.5 ? 1 : 2; }

std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

/// Peers and compressed inputs take no halves.
template <class T>
constexpr bool kIsHalf = !std::is_same_v<T, ComputeType<T>>;

/// What a case's counterpart runs.
template <class T>
struct CounterpartPasses {
  std::unique_ptr<Passes<T>> own;  ///< unless it shares the case's
  Passes<T>* passes = nullptr;
  PlanOptions plan_options;
  Plan plan;
};

/// Empty where a case has none. Calls take_memory() when the case has run and nothing of its counterpart is there yet.
template <class T>
std::optional<CounterpartPasses<T>> counterpart_of(const BenchCase& measured, Passes<T>& passes,
                                                   const std::function<void()>& take_memory) {
  if (!measured.compressed() && measured.reorder.empty()) return std::nullopt;
  passes.forward();
  passes.backward();
  take_memory();
  if (!measured.compressed()) return CounterpartPasses<T>{nullptr, &passes, {}, passes.make_plan({})};
  if constexpr (kIsHalf<T>) {
    return std::nullopt;
  } else {
    auto own =
        std::make_unique<Passes<T>>(passes.pattern(), densified(passes.tensors()), reorder_method(measured.reorder));
    Passes<T>* const dense = own.get();
    return CounterpartPasses<T>{std::move(own), dense, dense->plan_options(), dense->plan()};
  }
}

}  // namespace

std::optional<double> CaseResult::counterpart_speedup() const {
  if (!counterpart) return std::nullopt;
  return counterpart->total_ms() / total_ms();
}

std::optional<double> CaseResult::regret() const {
  const CandidateTime* best = nullptr;
  const CandidateTime* chosen = nullptr;
  for (const CandidateTime& candidate : candidates) {
    if (best == nullptr || candidate.total_ms() < best->total_ms()) best = &candidate;
    if (candidate.chosen) chosen = &candidate;
  }
  if (chosen == nullptr) return std::nullopt;
  return chosen->total_ms() / best->total_ms();
}

Bench::Bench(BenchOptions options) : options_(options) {
  if (options_.peers) peers_ = find_peers(yardstick_);
}

CaseResult Bench::run(const BenchCase& measured, int threads) {
  return on_threads(threads, [&] {
    if (measured.dtype == "f64") return run_typed<double>(measured, threads);
    if (measured.dtype == "bf16") return run_typed<bfloat16>(measured, threads);
    if (measured.dtype == "f16") return run_typed<float16>(measured, threads);
    return run_typed<float>(measured, threads);
  });
}

std::vector<Roof> Bench::roofs() {
  std::vector<Roof> roofs;
  std::map<int, double> copies;
  for (const auto& [key, gflops] : gemm_gflops_) {
    const auto& [dtype, threads] = key;
    if (!copies.contains(threads)) copies[threads] = on_threads(threads, copy_bytes_per_second);
    Roof roof{dtype, threads, std::nullopt,
              yardstick_.detected_gemm_gflops(dtype, threads, products_at_a_time(options_)), copies[threads]};
    if (!gflops.empty()) roof.gemm_gflops = median(gflops);
    roofs.push_back(roof);
  }
  return roofs;
}

template <class T>
double Bench::dense_milliseconds(const BenchCase& measured, std::int64_t rows, std::int64_t columns, int threads) {
  const std::string key =
      fmt::format("{} {} {} {} {} {}", rows, columns, measured.head_dim, measured.value_dim, measured.dtype, threads);
  const auto found = dense_ms_.find(key);
  if (found != dense_ms_.end()) return found->second;
  BenchCase dense = measured;
  dense.heads = dense.batch = 1;
  dense.features = {};
  dense.reorder = {};
  Passes<T> passes(full(rows, columns), dense, options_.seed);
  const Repetition repetition{options_.seconds / 2};
  const double ms =
      median(measure(repetition, [&] { passes.forward(); })) + median(measure(repetition, [&] { passes.backward(); }));
  return dense_ms_[key] = ms;
}

template <class T>
CaseResult Bench::run_typed(const BenchCase& measured, int threads) {
  const Progress progress(fmt::format("{}, {} thread{}", measured.name, threads, threads == 1 ? "" : "s"));
  const Pattern pattern = pattern_of(measured, options_.seed);

  CaseResult result;
  result.measured = measured;
  result.threads = threads;
  result.rows = pattern.rows();
  result.columns = pattern.columns();
  const Repetition repetition{options_.seconds};
  // Products before, between and after the passes, so that what slows the machine down slows both.
  const int products = products_at_a_time(options_);
  std::vector<double> gemm = yardstick_.gemm_gflops(measured.dtype, threads, products);
  const auto more_gemm = [&] {
    const std::vector<double> more = yardstick_.gemm_gflops(measured.dtype, threads, products);
    gemm.insert(gemm.end(), more.begin(), more.end());
  };

  const std::int64_t resident_before = resident_memory_bytes();
  const bool peak_of_case = reset_peak_memory();
  Passes<T> passes(pattern, measured, options_.seed);
  const auto take_memory = [&] {
    result.peak_bytes = peak_of_case ? peak_memory_bytes() - resident_before : peak_memory_bytes();
    result.workspace_bytes = passes.workspace_bytes();
  };
  const Plan& plan = passes.plan();
  const std::optional<CounterpartPasses<T>> other = counterpart_of(measured, passes, take_memory);
  // The case comes last of each round: its results stay.
  const auto times_of = [&](const auto& work) {
    std::vector<std::function<void()>> works;
    if (other) works.emplace_back([&] { work(*other->passes, other->plan); });
    works.emplace_back([&] { work(passes, plan); });
    return measure_in_turn(repetition, works);
  };
  const auto forward_ms = times_of([](Passes<T>& of, const Plan& by) { of.forward(by); });
  more_gemm();
  const auto backward_ms = times_of([](Passes<T>& of, const Plan& by) { of.backward(by); });
  if (!other) take_memory();
  more_gemm();
  const auto plan_ms = [&](const Passes<T>& of, const PlanOptions& options) {
    return median(measure({options_.seconds / 4}, [&] { of.make_plan(options); }));
  };
  result.forward = summarize(forward_ms.back());
  result.backward = summarize(backward_ms.back());
  result.plan_ms = plan_ms(passes, passes.plan_options());
  take_traffic(plan, sizeof(ComputeType<T>), result);
  result.tensor_bytes = passes.tensor_bytes();
  if (other) {
    Counterpart& counterpart = result.counterpart.emplace();
    counterpart.name = measured.compressed() ? "densified" : "as it stands";
    counterpart.forward = summarize(forward_ms.front());
    counterpart.backward = summarize(backward_ms.front());
    counterpart.plan_ms = plan_ms(*other->passes, other->plan_options);
    take_traffic(other->plan, sizeof(ComputeType<T>), counterpart);
    counterpart.tensor_bytes = other->passes->tensor_bytes();
  }
  if (!gemm.empty()) result.gemm_gflops = median(gemm);
  std::vector<double>& of_run = gemm_gflops_[{measured.dtype, threads}];
  of_run.insert(of_run.end(), gemm.begin(), gemm.end());
  result.gemm_mad_gflops = median_absolute_deviation(gemm);

  const Problem& problem = plan.problem();
  const auto head_dim = static_cast<double>(problem.head_dim);
  result.pairs = plan.total_pairs();
  result.features_per_token = measured.compressed() ? entries_per_token(passes.tensors().key_input()) : head_dim;
  result.schedule = to_string(plan.schedule());
  result.plan = chosen_candidate(plan).name;
  const auto pairs = static_cast<double>(result.pairs);
  result.forward_flop = pairs * forward_flop_per_pair(result.features_per_token, problem);
  result.backward_flop = pairs * backward_flop_per_pair(result.features_per_token, problem);
  result.fast_memory_bytes = plan.fast_memory_words() * static_cast<std::int64_t>(sizeof(ComputeType<T>));
  if (!measured.reorder.empty()) result.order = plan_order(plan, measured.reorder);
  if (options_.check) result.check = passes.check(options_.seed, kCheckTokens);

  const double heads = static_cast<double>(problem.batch * problem.query_heads);
  const double area = static_cast<double>(result.rows) * static_cast<double>(result.columns) * heads;
  if (result.pairs > 0) {
    result.flop_bound_speedup = area *
                                (forward_flop_per_pair(head_dim, problem) + backward_flop_per_pair(head_dim, problem)) /
                                (result.forward_flop + result.backward_flop);
    const std::int64_t dense_rows = std::min(result.rows, kDenseTokens);
    const std::int64_t dense_columns = std::min(result.columns, kDenseTokens);
    result.dense_measured = std::max(dense_rows, dense_columns);
    result.dense_estimated = dense_rows < result.rows || dense_columns < result.columns || heads > 1;
    const bool is_dense =
        !measured.compressed() && without_blanks(measured.pattern) == fmt::format("full({})", result.rows);
    const double dense_ms = is_dense && !result.dense_estimated
                                ? result.total_ms()
                                : dense_milliseconds<T>(measured, dense_rows, dense_columns, threads) * area /
                                      (static_cast<double>(dense_rows) * static_cast<double>(dense_columns));
    result.dense_speedup = dense_ms / result.total_ms();
  }
  if constexpr (!kIsHalf<T>) {
    const Passes<T>& dense_passes = other ? *other->passes : passes;
    for (const Peer& peer : peers_.present) {
      std::optional<PeerResult> of_peer = run_peer(peer, yardstick_, dense_passes, threads, options_.seconds);
      if (of_peer) result.peers.push_back(std::move(*of_peer));
    }
  }
  if (options_.regret) result.candidates = measure_candidates(passes, options_.seconds);
  return result;
}

}  // namespace cobble::program
