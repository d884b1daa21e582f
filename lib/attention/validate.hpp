#pragma once

#include "cobble/attention.hpp"
#include "cobble/compressed_attention.hpp"
#include "cobble/parameter_gradients.hpp"

// What must hold before anything is computed.

namespace cobble::detail {

/// All throw Error{shape_mismatch, invalid_argument, overflow} that names the argument.
template <class T>
void validate_forward(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                      const AttentionView<T>& result, const ScoreTerms<T>& terms);
template <class T>
void validate_backward(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                       const AttentionView<const T>& result, TensorView<const T> grad_output,
                       const BackwardOptions<T>& options, const GradientsView<T>& gradients);

/// The same of inputs in any storage.
template <class T>
void validate_forward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                      const FeaturesView<T>& value, const AttentionView<T>& result, const ScoreTerms<T>& terms);
template <class T>
void validate_backward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                       const FeaturesView<T>& value, const AttentionView<const T>& result,
                       TensorView<const T> grad_output, const BackwardOptions<T>& options,
                       const FeatureGradientsView<T>& gradients);

/// `grad_output` may be null: forward.
template <class T>
void validate_parameters(const Plan& plan, const ParameterInputs<T>& inputs, const TensorView<const T>* grad_output);

/// The shapes that a plan's tensors have.
TensorShape query_shape(const Plan& plan);
TensorShape key_shape(const Plan& plan);
TensorShape value_shape(const Plan& plan);
TensorShape output_shape(const Plan& plan);
TensorShape lse_shape(const Plan& plan);
TensorShape score_weights_shape(const Plan& plan);
TensorShape value_weights_shape(const Plan& plan);

}  // namespace cobble::detail
