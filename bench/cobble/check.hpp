#pragma once

#include <cstdint>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/reference.hpp"

// `cobble run --check`: every output and gradient against the double reference.

namespace cobble::program {

struct TensorError {
  const char* name = "";
  /// The largest difference over the largest entry of the reference; infinite where one side is not finite and the
  /// other differs.
  double relative = 0;
};

struct CheckResult {
  /// output, lse, grad_query, grad_key, grad_value; grad_bias and grad_sinks where they are given
  std::vector<TensorError> errors;
  double tolerance = 0;
  std::int64_t query_tokens = 0;  ///< compared per head
  std::int64_t key_tokens = 0;

  bool passed() const;
  /// The tensor with the largest error.
  const TensorError& worst() const;
};

/// What is allowed: 2e-5 in float, 1e-12 in double; in halves, which also round what backward reads and multiplies, 4
/// times the error of rounding once.
template <class T>
double check_tolerance();

/// Patterns with up to this many tokens are compared whole.
inline constexpr std::int64_t kFullCheckTokens = 4096;

/// Compares everything for up to `full_check_tokens`; beyond, a seeded sample of queries and keys, of a bias the rows
/// of these queries, and the gradient of sinks with what output and lse say it is. A bias must be stored as CSR. Heads
/// run in parallel.
///
/// Where the exact gradient is 0 because all terms cancel (each row has one pair, say), the reference holds only
/// rounding errors, and differences are taken relative to the largest term instead.
template <class T>
CheckResult check_against_reference(const ReferenceProblem<T>& problem, const AttentionView<const T>& result,
                                    const GradientsView<const T>& gradients, std::uint64_t seed,
                                    std::int64_t full_check_tokens = kFullCheckTokens);

}  // namespace cobble::program
