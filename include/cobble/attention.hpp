#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "cobble/half.hpp"
#include "cobble/plan.hpp"
#include "cobble/score_terms.hpp"
#include "cobble/tensor.hpp"
#include "cobble/workspace.hpp"

// Exact attention on a pattern, forward and backward:
//
//   s_ij = scale <q_i, k_j> for (i, j) in the pattern      lse_i = log sum_j exp(s_ij)
//   p_ij = exp(s_ij - lse_i)                               o_i = sum_j p_ij v_j
//
// Scores may have further terms (softcap, a bias, ALiBi, sinks): score_terms.hpp.
//
// A query head h uses key/value head h / (H_q / H_kv). A row with no pair has output 0, lse -infinity and gradients 0.
// A token outside a row's pairs is never able to touch that row, whatever it holds: a NaN there may change other rows
// in their last bits, since products then go pair by pair, and in nothing else. Results have the same bits for
// any number of threads. Work runs on the caller's oneTBB arena.
//
// Tensors hold float, double, bfloat16 or float16. Halves are computed with in float: every element is converted when a
// tile reads it, all sums, the softmax and delta are float, and each result is rounded once, when it is complete.
// backward then takes the sums of dK, dV and dbias in float from the workspace, and delta from the rounded output.
// Where isa() is avx512_bf16, the products of dense tiles multiply bfloat16 as it is: P and dS are rounded to it on
// their way into them, which may be as much as the rounding of the result, and subnormal numbers count as 0.
//
// All functions throw Error{shape_mismatch, invalid_argument, overflow} before anything is computed when an argument
// does not fit the plan; inputs are never written, outputs must not overlap inputs or themselves.

namespace cobble {

/// Where forward writes, or what backward reads (T const): no ownership.
template <class T>
struct AttentionView {
  using Lse = std::conditional_t<std::is_const_v<T>, const ComputeType<T>, ComputeType<T>>;

  TensorView<T> output;  ///< batch x H_q x n_q x d_v
  TensorView<Lse> lse;   ///< batch x H_q x n_q x 1, natural logarithm
};

/// The result of forward.
template <class T>
struct Attention {
  Tensor<T> output;            ///< batch x H_q x n_q x d_v
  Tensor<ComputeType<T>> lse;  ///< batch x H_q x n_q x 1, natural logarithm

  AttentionView<T> view() { return {output.view(), lse.view()}; }
  AttentionView<const T> view() const { return {output.view(), lse.view()}; }
  operator AttentionView<const T>() const { return view(); }
};

/// Where backward writes.
template <class T>
struct GradientsView {
  TensorView<T> query;  ///< batch x H_q x n_q x d
  TensorView<T> key;    ///< batch x H_kv x n_k x d
  TensorView<T> value;  ///< batch x H_kv x n_k x d_v
  /// In the shape and order of terms.bias.values, summed over axes of 1; no data: not wanted.
  TensorView<T> bias = {};
  std::span<T> sinks = {};  ///< H_q, summed over batch entries; empty: not wanted
};

namespace detail {
/// What is empty is not wanted.
template <class T, class Tensors>
GradientsView<T> gradients_view(Tensors& gradients) {
  GradientsView<T> view{gradients.query.view(), gradients.key.view(), gradients.value.view()};
  if (gradients.bias.data() != nullptr) view.bias = gradients.bias.view();
  view.sinks = gradients.sinks.values();
  return view;
}
}  // namespace detail

/// The result of backward.
template <class T>
struct Gradients {
  Tensor<T> query;       ///< batch x H_q x n_q x d
  Tensor<T> key;         ///< batch x H_kv x n_k x d
  Tensor<T> value;       ///< batch x H_kv x n_k x d_v
  Tensor<T> bias = {};   ///< as terms.bias.values; empty unless BackwardOptions asks for it
  Tensor<T> sinks = {};  ///< 1 x H_q x 1 x 1; empty without sinks

  GradientsView<T> view() { return detail::gradients_view<T>(*this); }
  GradientsView<const T> view() const { return detail::gradients_view<const T>(*this); }
};

/// Further inputs of backward.
template <class T>
struct BackwardOptions {
  TensorView<const ComputeType<T>> grad_lse = {};  ///< batch x H_q x n_q x 1: the gradient of lse; no data: zero
  ScoreTerms<T> terms = {};                        ///< those that forward had
  bool bias_gradient = false;  ///< whether the overload that allocates returns the gradient of the bias
};

/// query: batch x H_q x n_q x d; key: batch x H_kv x n_k x d; value: batch x H_kv x n_k x d_v; any strides.
Attention<float> forward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
                         TensorView<const float> value, const ScoreTerms<float>& terms = {});
Attention<double> forward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
                          TensorView<const double> value, const ScoreTerms<double>& terms = {});
Attention<bfloat16> forward(const Plan& plan, TensorView<const bfloat16> query, TensorView<const bfloat16> key,
                            TensorView<const bfloat16> value, const ScoreTerms<bfloat16>& terms = {});
Attention<float16> forward(const Plan& plan, TensorView<const float16> query, TensorView<const float16> key,
                           TensorView<const float16> value, const ScoreTerms<float16>& terms = {});
/// The same into the caller's memory.
void forward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
             TensorView<const float> value, AttentionView<float> result, Workspace& workspace,
             const ScoreTerms<float>& terms = {});
void forward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
             TensorView<const double> value, AttentionView<double> result, Workspace& workspace,
             const ScoreTerms<double>& terms = {});
void forward(const Plan& plan, TensorView<const bfloat16> query, TensorView<const bfloat16> key,
             TensorView<const bfloat16> value, AttentionView<bfloat16> result, Workspace& workspace,
             const ScoreTerms<bfloat16>& terms = {});
void forward(const Plan& plan, TensorView<const float16> query, TensorView<const float16> key,
             TensorView<const float16> value, AttentionView<float16> result, Workspace& workspace,
             const ScoreTerms<float16>& terms = {});

/// `result` is what forward returned for the same plan and inputs; grad_output: batch x H_q x n_q x d_v.
Gradients<float> backward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
                          TensorView<const float> value, AttentionView<const float> result,
                          TensorView<const float> grad_output, const BackwardOptions<float>& options = {});
Gradients<double> backward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
                           TensorView<const double> value, AttentionView<const double> result,
                           TensorView<const double> grad_output, const BackwardOptions<double>& options = {});
Gradients<bfloat16> backward(const Plan& plan, TensorView<const bfloat16> query, TensorView<const bfloat16> key,
                             TensorView<const bfloat16> value, AttentionView<const bfloat16> result,
                             TensorView<const bfloat16> grad_output, const BackwardOptions<bfloat16>& options = {});
Gradients<float16> backward(const Plan& plan, TensorView<const float16> query, TensorView<const float16> key,
                            TensorView<const float16> value, AttentionView<const float16> result,
                            TensorView<const float16> grad_output, const BackwardOptions<float16>& options = {});
/// The same into the caller's memory. Gradients are overwritten, not added to.
void backward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
              TensorView<const float> value, AttentionView<const float> result, TensorView<const float> grad_output,
              GradientsView<float> gradients, Workspace& workspace, const BackwardOptions<float>& options = {});
void backward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
              TensorView<const double> value, AttentionView<const double> result, TensorView<const double> grad_output,
              GradientsView<double> gradients, Workspace& workspace, const BackwardOptions<double>& options = {});
void backward(const Plan& plan, TensorView<const bfloat16> query, TensorView<const bfloat16> key,
              TensorView<const bfloat16> value, AttentionView<const bfloat16> result,
              TensorView<const bfloat16> grad_output, GradientsView<bfloat16> gradients, Workspace& workspace,
              const BackwardOptions<bfloat16>& options = {});
void backward(const Plan& plan, TensorView<const float16> query, TensorView<const float16> key,
              TensorView<const float16> value, AttentionView<const float16> result,
              TensorView<const float16> grad_output, GradientsView<float16> gradients, Workspace& workspace,
              const BackwardOptions<float16>& options = {});

}  // namespace cobble
