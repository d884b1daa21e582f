#include "attention/finite_inputs.hpp"
#include "attention/run_phases.hpp"
#include "attention/validate.hpp"
#include "cobble/attention.hpp"
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
  detail::ScratchPool::Lease delta = pool.lend<T>(lse_shape.size());
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
                                          .grad_score_store = grad_scores.as<T>()};
  detail::backward_phases(plan.data(), [&](const detail::Phase& phase) {
    detail::run_phase(plan.data(), tensors, workspace.task_pool(), phase);
  });
}

template <class T>
Gradients<T> allocate_and_run(const Plan& plan, TensorView<const T> query, TensorView<const T> key,
                              TensorView<const T> value, AttentionView<const T> result, TensorView<const T> grad_output,
                              const BackwardOptions<T>& options) {
  Gradients<T> gradients{Tensor<T>(detail::query_shape(plan)), Tensor<T>(detail::key_shape(plan)),
                         Tensor<T>(detail::value_shape(plan))};
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
