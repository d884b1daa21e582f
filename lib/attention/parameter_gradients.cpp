#include "cobble/parameter_gradients.hpp"

#include "attention/run_phases.hpp"
#include "attention/validate.hpp"
#include "plan/parameters.hpp"

namespace cobble {
namespace {

/// What both passes need beside the caller's tensors.
template <class T>
struct Intermediates {
  Tensor<T> query;
  Tensor<T> value;
  detail::ScratchPool::Lease scores;
  detail::ScratchPool::Lease grad_scores;
};

template <class T>
Intermediates<T> allocate_intermediates(const Plan& plan, detail::ScratchPool& pool) {
  const bool materialized = plan.schedule() == Schedule::materialize;
  const std::int64_t pairs = materialized ? detail::pair_store_values(plan.data()) : 0;
  return {Tensor<T>(detail::query_shape(plan)), Tensor<T>(detail::value_shape(plan)), pool.lend<T>(pairs),
          pool.lend<T>(pairs)};
}

/// The tensors of forward.
template <class T>
detail::PassTensors<T> pass_tensors(const Plan& plan, const ParameterInputs<T>& inputs, Intermediates<T>& intermediates,
                                    Attention<T>& result) {
  const bool materialized = plan.schedule() == Schedule::materialize;
  detail::PassTensors<T> tensors = {.query = intermediates.query.view(),
                                    .key = inputs.key,
                                    .value = intermediates.value.view(),
                                    .output = result.output.view(),
                                    .lse = result.lse.view()};
  tensors.query_input = inputs.query_input;
  tensors.value_input = inputs.value_input;
  tensors.score_weights = inputs.score_weights;
  tensors.value_weights = inputs.value_weights;
  tensors.projected_query = intermediates.query.view();
  tensors.projected_value = intermediates.value.view();
  tensors.score_store = materialized ? intermediates.scores.template as<T>() : nullptr;
  tensors.grad_score_store = materialized ? intermediates.grad_scores.template as<T>() : nullptr;
  return tensors;
}

template <class T>
Attention<T> allocate_result(const Plan& plan) {
  return {Tensor<T>(detail::output_shape(plan)), Tensor<T>(detail::lse_shape(plan))};
}

template <class T>
Attention<T> run_forward(const Plan& plan, const ParameterInputs<T>& inputs) {
  detail::validate_parameters<T>(plan, inputs, nullptr);
  detail::ScratchPool pool;
  Intermediates<T> intermediates = allocate_intermediates<T>(plan, pool);
  Attention<T> result = allocate_result<T>(plan);
  const detail::PassTensors<T> tensors = pass_tensors(plan, inputs, intermediates, result);
  const auto run = [&](const detail::Phase& phase) { detail::run_phase(plan.data(), tensors, pool, phase); };
  detail::projection_phases(plan.data(), run);
  detail::forward_phases(plan.data(), run);
  return result;
}

template <class T>
ParameterGradients<T> run_gradients(const Plan& plan, const ParameterInputs<T>& inputs,
                                    TensorView<const T> grad_output) {
  detail::validate_parameters<T>(plan, inputs, &grad_output);
  detail::ScratchPool pool;
  Intermediates<T> intermediates = allocate_intermediates<T>(plan, pool);
  Attention<T> result = allocate_result<T>(plan);
  Tensor<T> delta(detail::lse_shape(plan));
  Tensor<T> grad_value(detail::value_shape(plan));  // a panel of it at a time is summed up and folded
  const Problem& problem = plan.problem();
  ParameterGradients<T> gradients{Tensor<T>(detail::score_weights_shape(plan)),
                                  Tensor<T>(detail::value_weights_shape(plan))};
  const detail::SliceCounts slices = detail::slice_counts(plan.data());
  Tensor<T> score_slices(
      {problem.batch * problem.query_heads, slices.score_weights - 1, problem.head_dim, problem.head_dim});
  Tensor<T> value_slices(
      {problem.batch * problem.key_value_heads, slices.value_weights - 1, problem.head_dim, problem.value_dim});
  // Slices whose panels are none at all (no tokens) are never begun.
  for (T& word : gradients.score_weights.values()) word = T{0};
  for (T& word : gradients.value_weights.values()) word = T{0};

  detail::PassTensors<T> tensors = pass_tensors(plan, inputs, intermediates, result);
  tensors.result_output = result.output.view();
  tensors.result_lse = result.lse.view();
  tensors.grad_output = grad_output;
  tensors.delta = delta.view();
  tensors.grad_value = grad_value.view();
  tensors.grad_score_weights = gradients.score_weights.view();
  tensors.grad_value_weights = gradients.value_weights.view();
  tensors.score_weight_slices = score_slices.view();
  tensors.value_weight_slices = value_slices.view();
  detail::parameter_gradient_phases(
      plan.data(), [&](const detail::Phase& phase) { detail::run_phase(plan.data(), tensors, pool, phase); });
  return gradients;
}

}  // namespace

Attention<float> parameter_forward(const Plan& plan, const ParameterInputs<float>& inputs) {
  return run_forward(plan, inputs);
}

Attention<double> parameter_forward(const Plan& plan, const ParameterInputs<double>& inputs) {
  return run_forward(plan, inputs);
}

ParameterGradients<float> parameter_gradients(const Plan& plan, const ParameterInputs<float>& inputs,
                                              TensorView<const float> grad_output) {
  return run_gradients(plan, inputs, grad_output);
}

ParameterGradients<double> parameter_gradients(const Plan& plan, const ParameterInputs<double>& inputs,
                                               TensorView<const double> grad_output) {
  return run_gradients(plan, inputs, grad_output);
}

}  // namespace cobble
