#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cobble/half.hpp"
#include "cobble/pattern_grid.hpp"
#include "cobble/score_terms.hpp"
#include "cobble/tensor.hpp"

// Textbook attention, forward and backward, in double, on one thread: what everything fast is tested against.

namespace cobble {

/// T is float, double, bfloat16 or float16; every element is converted to double before it is used.
template <class T>
struct ReferenceProblem {
  PatternGrid patterns;
  TensorView<const T> query;                  ///< batch x H_q x n_q x d
  TensorView<const T> key;                    ///< batch x H_kv x n_k x d
  TensorView<const T> value;                  ///< batch x H_kv x n_k x d_v
  TensorView<const T> grad_output;            ///< batch x H_q x n_q x d_v; no data: forward only
  TensorView<const ComputeType<T>> grad_lse;  ///< batch x H_q x n_q x 1; no data: zero
  std::optional<double> scale;                ///< default 1 / sqrt(d)
  ScoreTerms<T> terms = {};
};

/// Which tokens to compute: all, or a sample of queries and keys (sorted, distinct).
struct ReferenceSample {
  std::vector<std::int64_t> query_tokens;
  std::vector<std::int64_t> key_tokens;
};

/// Tensors over the selected tokens only, in the sample's order: output, lse and grad_query over query_tokens,
/// grad_key and grad_value over key_tokens. Gradients are empty without grad_output, those of terms also without their
/// term.
struct ReferenceResult {
  Tensor<double> output;
  Tensor<double> lse;
  Tensor<double> grad_query;
  Tensor<double> grad_key;
  Tensor<double> grad_value;
  Tensor<double> grad_bias;   ///< as terms.bias.values; of a sample, 0 in rows other than query_tokens
  Tensor<double> grad_sinks;  ///< 1 x H_q x 1 x 1; empty for a sample, as it sums over all rows
};

/// Throws Error{shape_mismatch, invalid_argument}. O(pairs (d + d_v)) time for all tokens; for a sample, only the rows
/// that it needs (its queries, and whoever attends to its keys).
ReferenceResult reference_attention(const ReferenceProblem<float>& problem,
                                    const std::optional<ReferenceSample>& sample = std::nullopt);
ReferenceResult reference_attention(const ReferenceProblem<double>& problem,
                                    const std::optional<ReferenceSample>& sample = std::nullopt);
ReferenceResult reference_attention(const ReferenceProblem<bfloat16>& problem,
                                    const std::optional<ReferenceSample>& sample = std::nullopt);
ReferenceResult reference_attention(const ReferenceProblem<float16>& problem,
                                    const std::optional<ReferenceSample>& sample = std::nullopt);

}  // namespace cobble
