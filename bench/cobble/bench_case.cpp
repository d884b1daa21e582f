#include "bench_case.hpp"

#include <fmt/core.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "candidate_times.hpp"
#include "cobble/attention.hpp"
#include "cobble/plan.hpp"
#include "machine.hpp"
#include "passes.hpp"
#include "pattern_argument.hpp"
#include "progress.hpp"

namespace cobble::program {
namespace {

/// Dense attention of more tokens is estimated.
constexpr std::int64_t kDenseTokens = 4096;
/// Patterns of more tokens are checked by sample.
constexpr std::int64_t kCheckTokens = 1024;

double useful_flop(const Plan& plan, std::int64_t width) {
  return 2 * static_cast<double>(plan.total_pairs()) * static_cast<double>(width);
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

}  // namespace

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
    return measured.dtype == "f64" ? run_typed<double>(measured, threads) : run_typed<float>(measured, threads);
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
  const std::string key = fmt::format("{} {} {} {} {}", rows, columns, measured.head_dim, measured.dtype, threads);
  const auto found = dense_ms_.find(key);
  if (found != dense_ms_.end()) return found->second;
  BenchCase dense = measured;
  dense.heads = dense.batch = 1;
  Passes<T> passes(full(rows, columns), dense, options_.seed);
  const Repetition repetition{options_.seconds / 2};
  const double ms =
      median(measure(repetition, [&] { passes.forward(); })) + median(measure(repetition, [&] { passes.backward(); }));
  return dense_ms_[key] = ms;
}

template <class T>
CaseResult Bench::run_typed(const BenchCase& measured, int threads) {
  const Progress progress(fmt::format("{}, {} thread{}", measured.name, threads, threads == 1 ? "" : "s"));
  PatternArgument argument;
  argument.text = measured.pattern;
  argument.seed = options_.seed;
  const Pattern pattern = load_pattern(argument).pattern;

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
  const Plan& plan = passes.plan();
  result.forward = summarize(measure(repetition, [&] { passes.forward(); }));
  more_gemm();
  result.backward = summarize(measure(repetition, [&] { passes.backward(); }));
  result.peak_bytes = peak_of_case ? peak_memory_bytes() - resident_before : peak_memory_bytes();
  more_gemm();
  result.plan_ms = median(measure({options_.seconds / 4}, [&] { passes.make_plan(); }));
  if (!gemm.empty()) result.gemm_gflops = median(gemm);
  std::vector<double>& of_run = gemm_gflops_[{measured.dtype, threads}];
  of_run.insert(of_run.end(), gemm.begin(), gemm.end());
  result.gemm_mad_gflops = median_absolute_deviation(gemm);

  const Problem& problem = plan.problem();
  result.pairs = plan.total_pairs();
  result.schedule = to_string(plan.schedule());
  result.forward_flop = useful_flop(plan, problem.head_dim + problem.value_dim);
  result.backward_flop = useful_flop(plan, 3 * problem.head_dim + 2 * problem.value_dim);
  result.fast_memory_bytes = plan.fast_memory_words() * static_cast<std::int64_t>(sizeof(T));
  for (const PlanCandidate& candidate : plan.candidates()) {
    if (!candidate.chosen) continue;
    result.plan = candidate.name;
    result.forward_traffic_bytes = static_cast<double>(candidate.forward_words) * sizeof(T);
    result.backward_traffic_bytes = static_cast<double>(candidate.backward_words) * sizeof(T);
  }
  result.tensor_bytes = passes.tensor_bytes();
  result.workspace_bytes = passes.workspace_bytes();
  if (options_.check) result.check = passes.check(options_.seed, kCheckTokens);

  const double heads = static_cast<double>(problem.batch * problem.query_heads);
  const double area = static_cast<double>(result.rows) * static_cast<double>(result.columns) * heads;
  if (result.pairs > 0) {
    result.flop_bound_speedup = area / static_cast<double>(result.pairs);
    const std::int64_t dense_rows = std::min(result.rows, kDenseTokens);
    const std::int64_t dense_columns = std::min(result.columns, kDenseTokens);
    result.dense_measured = std::max(dense_rows, dense_columns);
    result.dense_estimated = dense_rows < result.rows || dense_columns < result.columns || heads > 1;
    const bool is_dense = without_blanks(measured.pattern) == fmt::format("full({})", result.rows);
    const double dense_ms = is_dense && !result.dense_estimated
                                ? result.total_ms()
                                : dense_milliseconds<T>(measured, dense_rows, dense_columns, threads) * area /
                                      (static_cast<double>(dense_rows) * static_cast<double>(dense_columns));
    result.dense_speedup = dense_ms / result.total_ms();
  }
  for (const Peer& peer : peers_.present) {
    std::optional<PeerResult> of_peer = run_peer(peer, yardstick_, passes, threads, options_.seconds);
    if (of_peer) result.peers.push_back(std::move(*of_peer));
  }
  if (options_.regret) result.candidates = measure_candidates(passes, options_.seconds);
  return result;
}

}  // namespace cobble::program
