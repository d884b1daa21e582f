#pragma once

#include <array>
#include <cstdint>
#include <string>

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
  std::array<TensorError, 5> errors;  ///< output, lse, grad_query, grad_key, grad_value
  double tolerance = 0;
  std::int64_t query_tokens = 0;  ///< compared per head
  std::int64_t key_tokens = 0;

  bool passed() const;
  /// The tensor with the largest error.
  const TensorError& worst() const;
};

/// What is allowed: 2e-5 in float, 1e-12 in double.
template <class T>
double check_tolerance();

/// Patterns with up to this many tokens are compared whole.
inline constexpr std::int64_t kFullCheckTokens = 4096;

/// Compares everything for up to `full_check_tokens`; beyond, a seeded sample of queries and keys. Heads run in
/// parallel.
///
/// Where the exact gradient is 0 because all terms cancel (each row has one pair, say), the reference holds only
/// rounding errors, and differences are taken relative to the largest term instead.
template <class T>
CheckResult check_against_reference(const ReferenceProblem<T>& problem, const AttentionView<const T>& result,
                                    const GradientsView<const T>& gradients, std::uint64_t seed,
                                    std::int64_t full_check_tokens = kFullCheckTokens);

}  // namespace cobble::program
