#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench_suites.hpp"
#include "candidate_times.hpp"
#include "check.hpp"
#include "peers.hpp"
#include "reordering.hpp"
#include "statistics.hpp"
#include "yardstick.hpp"

// One case of `cobble bench`, measured.

namespace cobble::program {

struct BenchOptions {
  double seconds = 1;  ///< for each pass of each case
  bool check = true;
  bool regret = false;
  bool peers = false;  ///< measure other implementations, where they are installed
  std::uint64_t seed = 0;
};

/// The same problem without what the case is about, measured in turn with it.
struct Counterpart {
  std::string name;  ///< "densified": Q and K in full; "as it stands": in the order that is given
  double plan_ms = 0;
  Measurement forward;
  Measurement backward;
  double forward_traffic_bytes = 0;
  double backward_traffic_bytes = 0;
  std::int64_t tensor_bytes = 0;

  double total_ms() const { return forward.median_ms + backward.median_ms; }
};

struct CaseResult {
  BenchCase measured;
  std::int64_t threads = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t pairs = 0;         ///< of all heads and batch entries
  double features_per_token = 0;  ///< that Q and K store; d where they are dense
  std::string schedule;
  std::string plan;  ///< the chosen candidate's name
  double plan_ms = 0;
  Measurement forward;
  Measurement backward;
  double forward_flop = 0;  ///< useful
  double backward_flop = 0;
  std::optional<double> gemm_gflops;  ///< none without OpenBLAS
  double gemm_mad_gflops = 0;
  /// Useful FLOP of full attention of dense inputs over that of the case: by how much less arithmetic it is.
  double flop_bound_speedup = 0;
  /// The time of full(rows x columns) over that of the case, forward and backward together.
  double dense_speedup = 0;
  bool dense_estimated = false;  ///< the dense time is that of the largest size measured, times the ratio of the areas
  std::int64_t dense_measured = 0;  ///< that size: tokens
  std::int64_t fast_memory_bytes = 0;
  double forward_traffic_bytes = 0;  ///< counted, at that much fast memory
  double backward_traffic_bytes = 0;
  std::int64_t tensor_bytes = 0;  ///< all inputs, outputs and gradients
  std::int64_t peak_bytes = 0;    ///< by how much the process grew, tensors included
  std::int64_t workspace_bytes = 0;
  std::optional<PlanOrder> order;          ///< of a case that reorders
  std::optional<Counterpart> counterpart;  ///< of a case with compressed inputs or another order
  std::optional<CheckResult> check;
  std::vector<CandidateTime> candidates;  ///< those that could be forced, when regret is asked for
  std::vector<PeerResult> peers;

  double total_ms() const { return forward.median_ms + backward.median_ms; }
  double forward_gflops() const { return forward_flop / (forward.median_ms * 1e6); }
  double backward_gflops() const { return backward_flop / (backward.median_ms * 1e6); }
  /// The counterpart's time over the case's, forward and backward.
  std::optional<double> counterpart_speedup() const;
  /// The time of the automatic choice over that of the fastest candidate; none when the choice was not among those
  /// measured.
  std::optional<double> regret() const;
};

/// What times are held against.
struct Roof {
  std::string dtype;  ///< of halves: gemm rates are those of f32
  int threads = 1;
  std::optional<double> gemm_gflops;           ///< the median of all products of the run; none without OpenBLAS
  std::optional<double> detected_gemm_gflops;  ///< with the kernels that OpenBLAS takes by itself
  double copy_bytes_per_second = 0;            ///< read and written
};

class Bench {
 public:
  explicit Bench(BenchOptions options);

  /// Runs on an arena of its own with `threads` threads. Throws what patterns, plans and passes throw.
  CaseResult run(const BenchCase& measured, int threads);
  const Yardstick& yardstick() const noexcept { return yardstick_; }
  /// Those that peers asks for and that are not installed.
  const std::vector<AbsentPeer>& absent_peers() const noexcept { return peers_.absent; }
  /// What the machine did in the cases so far, for each type and number of threads.
  std::vector<Roof> roofs();

 private:
  template <class T>
  CaseResult run_typed(const BenchCase& measured, int threads);
  template <class T>
  double dense_milliseconds(const BenchCase& measured, std::int64_t rows, std::int64_t columns, int threads);

  BenchOptions options_;
  Yardstick yardstick_;
  Peers peers_;
  std::map<std::pair<std::string, int>, std::vector<double>> gemm_gflops_;  ///< by type and threads
  std::map<std::string, double> dense_ms_;                                  ///< of one head
};

}  // namespace cobble::program
