#include "attention/finite_inputs.hpp"
#include "attention/run_phases.hpp"
#include "attention/validate.hpp"
#include "cobble/attention.hpp"
#include "plan/schedules.hpp"

namespace cobble {
namespace {

template <class T>
void run_forward(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                 AttentionView<T> result, Workspace& workspace) {
  detail::validate_forward(plan, query, key, value, result);
  const bool materialized = plan.schedule() == Schedule::materialize;
  detail::ScratchPool::Lease scores =
      workspace.pass_pool().lend<T>(materialized ? detail::pair_store_values(plan.data()) : 0);
  const detail::PassTensors<T> tensors = {.query = query,
                                          .key = key,
                                          .value = value,
                                          .output = result.output,
                                          .lse = result.lse,
                                          .finite = {.value = detail::is_finite(value)},
                                          .score_store = materialized ? scores.as<T>() : nullptr};
  detail::forward_phases(plan.data(), [&](const detail::Phase& phase) {
    detail::run_phase(plan.data(), tensors, workspace.task_pool(), phase);
  });
}

template <class T>
Attention<T> allocate_and_run(const Plan& plan, TensorView<const T> query, TensorView<const T> key,
                              TensorView<const T> value) {
  Attention<T> result{Tensor<T>(detail::output_shape(plan)), Tensor<T>(detail::lse_shape(plan))};
  Workspace workspace;
  run_forward(plan, query, key, value, result.view(), workspace);
  return result;
}

}  // namespace

Attention<float> forward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
                         TensorView<const float> value) {
  return allocate_and_run(plan, query, key, value);
}

Attention<double> forward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
                          TensorView<const double> value) {
  return allocate_and_run(plan, query, key, value);
}

void forward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
             TensorView<const float> value, AttentionView<float> result, Workspace& workspace) {
  run_forward(plan, query, key, value, result, workspace);
}

void forward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
             TensorView<const double> value, AttentionView<double> result, Workspace& workspace) {
  run_forward(plan, query, key, value, result, workspace);
}

}  // namespace cobble
