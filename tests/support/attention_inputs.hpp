#pragma once

#include <doctest/doctest.h>

#include <type_traits>

#include "cobble/attention.hpp"
#include "cobble/plan.hpp"
#include "cobble/reference.hpp"
#include "cobble/score_terms.hpp"
#include "support/tensors.hpp"

// The inputs of a forward and backward, and the comparison of their results with the reference.

namespace cobble::test {

/// Errors relative to the reference's largest entry that are allowed in T.
template <class T>
inline constexpr double kTolerance = std::is_same_v<T, float> ? 2e-5 : 1e-12;

struct InputLayouts {
  Layout query = Layout::contiguous;
  Layout key = Layout::contiguous;
  Layout value = Layout::contiguous;
  Layout grad_output = Layout::contiguous;
  Layout grad_lse = Layout::contiguous;
};

template <class T>
struct Inputs {
  LaidOut<T> query;
  LaidOut<T> key;
  LaidOut<T> value;
  LaidOut<T> grad_output;
  LaidOut<ComputeType<T>> grad_lse;
};

inline TensorShape query_shape(const Plan& plan) {
  return {plan.problem().batch, plan.problem().query_heads, plan.patterns().rows(), plan.problem().head_dim};
}
inline TensorShape key_shape(const Plan& plan) {
  return {plan.problem().batch, plan.problem().key_value_heads, plan.patterns().columns(), plan.problem().head_dim};
}
inline TensorShape value_shape(const Plan& plan) {
  return {plan.problem().batch, plan.problem().key_value_heads, plan.patterns().columns(), plan.problem().value_dim};
}
inline TensorShape output_shape(const Plan& plan) {
  return {plan.problem().batch, plan.problem().query_heads, plan.patterns().rows(), plan.problem().value_dim};
}
inline TensorShape lse_shape(const Plan& plan) {
  return {plan.problem().batch, plan.problem().query_heads, plan.patterns().rows(), 1};
}

template <class T>
Inputs<T> normal_inputs(const Plan& plan, Random& random, const InputLayouts& layouts = {}) {
  return {normal_tensor<T>(query_shape(plan), random, layouts.query),
          normal_tensor<T>(key_shape(plan), random, layouts.key),
          normal_tensor<T>(value_shape(plan), random, layouts.value),
          normal_tensor<T>(output_shape(plan), random, layouts.grad_output),
          normal_tensor<ComputeType<T>>(lse_shape(plan), random, layouts.grad_lse)};
}

template <class T>
Inputs<T> normal_inputs(const Plan& plan, std::uint64_t seed) {
  Random random(seed);
  return normal_inputs<T>(plan, random);
}

template <class T>
ReferenceResult reference_of(const Plan& plan, const Inputs<T>& inputs, const ScoreTerms<T>& terms = {}) {
  return reference_attention(ReferenceProblem<T>{plan.patterns(), inputs.query, inputs.key, inputs.value,
                                                 inputs.grad_output, inputs.grad_lse, plan.problem().scale, terms});
}

/// What forward and backward return.
template <class T>
struct Results {
  Attention<T> attention;
  Gradients<T> gradients;
};

template <class T>
Attention<T> run_forward(const Plan& plan, const Inputs<T>& inputs) {
  return forward(plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key),
                 TensorView<const T>(inputs.value));
}

template <class T>
Gradients<T> run_backward(const Plan& plan, const Inputs<T>& inputs, const Attention<T>& attention) {
  return backward(plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key),
                  TensorView<const T>(inputs.value), attention.view(), TensorView<const T>(inputs.grad_output),
                  BackwardOptions<T>{inputs.grad_lse});
}

template <class T>
Results<T> run(const Plan& plan, const Inputs<T>& inputs) {
  Results<T> results;
  results.attention = run_forward(plan, inputs);
  results.gradients = run_backward(plan, inputs, results.attention);
  return results;
}

/// With terms of scores, and the gradients of all of them.
template <class T>
Results<T> run(const Plan& plan, const Inputs<T>& inputs, const ScoreTerms<T>& terms) {
  const TensorView<const T> query = inputs.query, key = inputs.key, value = inputs.value;
  Results<T> results;
  results.attention = forward(plan, query, key, value, terms);
  results.gradients = backward(plan, query, key, value, results.attention, TensorView<const T>(inputs.grad_output),
                               BackwardOptions<T>{.grad_lse = inputs.grad_lse, .terms = terms, .bias_gradient = true});
  return results;
}

template <class T>
void check_close(const AttentionView<T>& attention, const GradientsView<T>& gradients, const ReferenceResult& reference,
                 double tolerance = kTolerance<T>) {
  CHECK(max_relative_error(attention.output, reference.output.view()) < tolerance);
  CHECK(max_relative_error(attention.lse, reference.lse.view()) < tolerance);
  CHECK(max_relative_error(gradients.query, reference.grad_query.view()) < tolerance);
  CHECK(max_relative_error(gradients.key, reference.grad_key.view()) < tolerance);
  CHECK(max_relative_error(gradients.value, reference.grad_value.view()) < tolerance);
}

template <class T>
void check_close(Results<T> results, const ReferenceResult& reference, double tolerance = kTolerance<T>) {
  check_close(results.attention.view(), results.gradients.view(), reference, tolerance);
}

/// Forward and backward on seeded inputs against the reference.
template <class T>
void check_against_reference(const Plan& plan, std::uint64_t seed) {
  CAPTURE(seed);
  const Inputs<T> inputs = normal_inputs<T>(plan, seed);
  check_close(run(plan, inputs), reference_of(plan, inputs));
}

template <class T>
bool same_bits(const Attention<T>& a, const Attention<T>& b) {
  return same_bits(a.output, b.output) && same_bits(a.lse, b.lse);
}
template <class T>
bool same_bits(const Gradients<T>& a, const Gradients<T>& b) {
  return same_bits(a.query, b.query) && same_bits(a.key, b.key) && same_bits(a.value, b.value);
}
template <class T>
bool same_bits(const Results<T>& a, const Results<T>& b) {
  return same_bits(a.attention, b.attention) && same_bits(a.gradients, b.gradients);
}

}  // namespace cobble::test
