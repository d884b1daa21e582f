#include "attention/finite_inputs.hpp"
#include "attention/run_phases.hpp"
#include "attention/validate.hpp"
#include "cobble/attention.hpp"
#include "plan/schedules.hpp"

namespace cobble {
namespace {

template <class T>
void run_forward(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                 AttentionView<T> result, Workspace& workspace, const ScoreTerms<T>& terms) {
  detail::validate_forward(plan, query, key, value, result, terms);
  const bool materialized = plan.schedule() == Schedule::materialize;
  detail::ScratchPool::Lease scores =
      workspace.pass_pool().lend<T>(materialized ? detail::pair_store_values(plan.data()) : 0);
  const detail::PassTensors<T> tensors = {.query = query,
                                          .key = key,
                                          .value = value,
                                          .output = result.output,
                                          .lse = result.lse,
                                          .finite = {.value = detail::is_finite(value)},
                                          .score_store = materialized ? scores.as<T>() : nullptr,
                                          .terms = {.given = terms}};
  detail::forward_phases(plan.data(), [&](const detail::Phase& phase) {
    detail::run_phase(plan.data(), tensors, workspace.task_pool(), phase);
  });
}

template <class T>
Attention<T> allocate_and_run(const Plan& plan, TensorView<const T> query, TensorView<const T> key,
                              TensorView<const T> value, const ScoreTerms<T>& terms) {
  Attention<T> result{Tensor<T>(detail::output_shape(plan)), Tensor<T>(detail::lse_shape(plan))};
  Workspace workspace;
  run_forward(plan, query, key, value, result.view(), workspace, terms);
  return result;
}

}  // namespace

Attention<float> forward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
                         TensorView<const float> value, const ScoreTerms<float>& terms) {
  return allocate_and_run(plan, query, key, value, terms);
}

Attention<double> forward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
                          TensorView<const double> value, const ScoreTerms<double>& terms) {
  return allocate_and_run(plan, query, key, value, terms);
}

void forward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
             TensorView<const float> value, AttentionView<float> result, Workspace& workspace,
             const ScoreTerms<float>& terms) {
  run_forward(plan, query, key, value, result, workspace, terms);
}

void forward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
             TensorView<const double> value, AttentionView<double> result, Workspace& workspace,
             const ScoreTerms<double>& terms) {
  run_forward(plan, query, key, value, result, workspace, terms);
}

}  // namespace cobble
