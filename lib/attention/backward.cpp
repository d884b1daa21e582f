#include "attention/finite_inputs.hpp"
#include "attention/run_phases.hpp"
#include "attention/term_gradients.hpp"
#include "attention/validate.hpp"
#include "cobble/attention.hpp"
#include "pattern/score_term_checks.hpp"
#include "plan/bias_gradient.hpp"
#include "plan/schedules.hpp"

namespace cobble {
namespace {

template <class T>
void run_backward(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                  AttentionView<const T> result, TensorView<const T> grad_output, GradientsView<T> gradients,
                  Workspace& workspace, const BackwardOptions<T>& options) {
  detail::validate_backward(plan, query, key, value, result, grad_output, options, gradients);
  detail::ScratchPool& pool = workspace.pass_pool();
  const std::int64_t pair_values = detail::pair_store_values(plan.data());
  const TensorShape lse_shape = detail::lse_shape(plan);
  detail::ScratchPool::Lease scores = pool.lend<T>(pair_values);
  detail::ScratchPool::Lease grad_scores = pool.lend<T>(pair_values);
  detail::ScratchPool::Lease key_slots = pool.lend<T>(detail::all_slot_values(plan.data(), plan.problem().head_dim));
  detail::ScratchPool::Lease value_slots = pool.lend<T>(detail::all_slot_values(plan.data(), plan.problem().value_dim));
  // Softcap's derivatives outlive a task together with pairs that stand row by row.
  const bool slopes = options.terms.softcap != 0;
  const bool keeps_slopes = slopes && plan.schedule() == Schedule::materialize;
  detail::ScratchPool::Lease slope_store = pool.lend<T>(keeps_slopes ? pair_values : 0);
  detail::ScratchPool::Lease delta = pool.lend<T>(lse_shape.size());
  const bool bias_in_pass = detail::takes_bias_gradient_along(plan.data(), gradients.bias);
  detail::set_zero_bias_gradient(gradients.bias);
  const detail::PassTensors<T> tensors = {.query = query,
                                          .key = key,
                                          .value = value,
                                          .result_output = result.output,
                                          .result_lse = result.lse,
                                          .grad_output = grad_output,
                                          .grad_lse = options.grad_lse,
                                          .delta = {delta.as<T>(), lse_shape},
                                          .grad_query = gradients.query,
                                          .grad_key = gradients.key,
                                          .grad_value = gradients.value,
                                          .finite = {.query = detail::is_finite(query),
                                                     .key = detail::is_finite(key),
                                                     .grad_output = detail::is_finite(grad_output)},
                                          .key_slots = key_slots.as<T>(),
                                          .value_slots = value_slots.as<T>(),
                                          .score_store = scores.as<T>(),
                                          .grad_score_store = grad_scores.as<T>(),
                                          .terms = {.given = options.terms,
                                                    .slopes = slopes,
                                                    .slope_store = keeps_slopes ? slope_store.as<T>() : nullptr,
                                                    .grad_bias = bias_in_pass ? gradients.bias : TensorView<T>(),
                                                    .add_to_grad_bias = plan.schedule() == Schedule::materialize}};
  detail::backward_phases(plan.data(), [&](const detail::Phase& phase) {
    detail::run_phase(plan.data(), tensors, workspace.task_pool(), phase);
  });
  if (gradients.bias.data() != nullptr && !bias_in_pass) {
    detail::PassTensors<T> bias_tensors = tensors;
    bias_tensors.score_store = bias_tensors.grad_score_store = nullptr;
    bias_tensors.terms.grad_bias = gradients.bias;
    bias_tensors.terms.add_to_grad_bias = true;
    detail::bias_gradient_phase(plan.data(), [&](const detail::Phase& phase) {
      detail::run_phase(plan.data(), bias_tensors, workspace.task_pool(), phase);
    });
  }
  if (!gradients.sinks.empty()) detail::sink_gradients(tensors, gradients.sinks);
}

template <class T>
Gradients<T> allocate_and_run(const Plan& plan, TensorView<const T> query, TensorView<const T> key,
                              TensorView<const T> value, AttentionView<const T> result, TensorView<const T> grad_output,
                              const BackwardOptions<T>& options) {
  Gradients<T> gradients{Tensor<T>(detail::query_shape(plan)), Tensor<T>(detail::key_shape(plan)),
                         Tensor<T>(detail::value_shape(plan))};
  if (options.bias_gradient && detail::has_bias(options.terms))
    gradients.bias = Tensor<T>(options.terms.bias.values.shape());
  if (!options.terms.sinks.empty()) gradients.sinks = Tensor<T>({1, plan.problem().query_heads, 1, 1});
  Workspace workspace;
  run_backward(plan, query, key, value, result, grad_output, gradients.view(), workspace, options);
  return gradients;
}

}  // namespace

Gradients<float> backward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
                          TensorView<const float> value, AttentionView<const float> result,
                          TensorView<const float> grad_output, const BackwardOptions<float>& options) {
  return allocate_and_run(plan, query, key, value, result, grad_output, options);
}

Gradients<double> backward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
                           TensorView<const double> value, AttentionView<const double> result,
                           TensorView<const double> grad_output, const BackwardOptions<double>& options) {
  return allocate_and_run(plan, query, key, value, result, grad_output, options);
}

void backward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
              TensorView<const float> value, AttentionView<const float> result, TensorView<const float> grad_output,
              GradientsView<float> gradients, Workspace& workspace, const BackwardOptions<float>& options) {
  run_backward(plan, query, key, value, result, grad_output, gradients, workspace, options);
}

void backward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
              TensorView<const double> value, AttentionView<const double> result, TensorView<const double> grad_output,
              GradientsView<double> gradients, Workspace& workspace, const BackwardOptions<double>& options) {
  run_backward(plan, query, key, value, result, grad_output, gradients, workspace, options);
}

}  // namespace cobble
