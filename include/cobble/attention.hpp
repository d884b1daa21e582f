#pragma once

#include <cstdint>
#include <type_traits>

#include "cobble/half.hpp"
#include "cobble/plan.hpp"
#include "cobble/tensor.hpp"
#include "cobble/workspace.hpp"

// Exact attention on a pattern, forward and backward:
//
//   s_ij = scale <q_i, k_j> for (i, j) in the pattern      lse_i = log sum_j exp(s_ij)
//   p_ij = exp(s_ij - lse_i)                               o_i = sum_j p_ij v_j
//
// A query head h uses key/value head h / (H_q / H_kv). A row with no pair has output 0, lse -infinity and gradients 0.
// A token outside a row's pairs is never able to touch that row, whatever it holds. Results have the same bits for
// any number of threads. Work runs on the caller's oneTBB arena.
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
};

/// The result of backward.
template <class T>
struct Gradients {
  Tensor<T> query;  ///< batch x H_q x n_q x d
  Tensor<T> key;    ///< batch x H_kv x n_k x d
  Tensor<T> value;  ///< batch x H_kv x n_k x d_v

  GradientsView<T> view() { return {query.view(), key.view(), value.view()}; }
};

/// Further inputs of backward.
template <class T>
struct BackwardOptions {
  TensorView<const ComputeType<T>> grad_lse = {};  ///< batch x H_q x n_q x 1: the gradient of lse; no data: zero
};

/// query: batch x H_q x n_q x d; key: batch x H_kv x n_k x d; value: batch x H_kv x n_k x d_v; any strides.
Attention<float> forward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
                         TensorView<const float> value);
Attention<double> forward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
                          TensorView<const double> value);
/// The same into the caller's memory.
void forward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
             TensorView<const float> value, AttentionView<float> result, Workspace& workspace);
void forward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
             TensorView<const double> value, AttentionView<double> result, Workspace& workspace);

/// `result` is what forward returned for the same plan and inputs; grad_output: batch x H_q x n_q x d_v.
Gradients<float> backward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
                          TensorView<const float> value, AttentionView<const float> result,
                          TensorView<const float> grad_output, const BackwardOptions<float>& options = {});
Gradients<double> backward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
                           TensorView<const double> value, AttentionView<const double> result,
                           TensorView<const double> grad_output, const BackwardOptions<double>& options = {});
/// The same into the caller's memory. Gradients are overwritten, not added to.
void backward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
              TensorView<const float> value, AttentionView<const float> result, TensorView<const float> grad_output,
              GradientsView<float> gradients, Workspace& workspace, const BackwardOptions<float>& options = {});
void backward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
              TensorView<const double> value, AttentionView<const double> result, TensorView<const double> grad_output,
              GradientsView<double> gradients, Workspace& workspace, const BackwardOptions<double>& options = {});

}  // namespace cobble
