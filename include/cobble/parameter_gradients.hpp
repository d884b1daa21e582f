#pragma once

#include "cobble/attention.hpp"

// Attention whose queries and values are products with weights, the setting of arXiv 2410.09397:
//
//   scores  scale A1 X A2^T on the pattern      values  A3 Y
//
// and the gradients of X and Y. The plan must have been made with PlanOptions::parameter_gradients.

namespace cobble {

/// Inputs of either function; T is float or double. d is the plan's head_dim, d_v its value_dim.
template <class T>
struct ParameterInputs {
  TensorView<const T> query_input;    ///< A1: batch x H_q x n_q x d
  TensorView<const T> key;            ///< A2: batch x H_kv x n_k x d
  TensorView<const T> value_input;    ///< A3: batch x H_kv x n_k x d
  TensorView<const T> score_weights;  ///< X: batch x H_q x d x d; strides of 0 share one
  TensorView<const T> value_weights;  ///< Y: batch x H_kv x d x d_v
};

template <class T>
struct ParameterGradients {
  Tensor<T> score_weights;  ///< dX = scale A1^T dS A2: batch x H_q x d x d
  Tensor<T> value_weights;  ///< dY = A3^T P^T dO: batch x H_kv x d x d_v
};

/// O and its LSE. Throws Error{shape_mismatch, invalid_argument}.
Attention<float> parameter_forward(const Plan& plan, const ParameterInputs<float>& inputs);
Attention<double> parameter_forward(const Plan& plan, const ParameterInputs<double>& inputs);

/// dX and dY from dO (batch x H_q x n_q x d_v), forward included. Nothing n x n is held and dQ is never written: a
/// panel of it is folded into dX while it is at hand. For the loss L = 1/2 |O - E|^2, dO = O - E.
ParameterGradients<float> parameter_gradients(const Plan& plan, const ParameterInputs<float>& inputs,
                                              TensorView<const float> grad_output);
ParameterGradients<double> parameter_gradients(const Plan& plan, const ParameterInputs<double>& inputs,
                                               TensorView<const double> grad_output);

}  // namespace cobble
