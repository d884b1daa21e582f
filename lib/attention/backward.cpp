#include "attention/run_phases.hpp"
#include "attention/validate.hpp"
#include "cobble/attention.hpp"
#include "plan/schedules.hpp"

namespace cobble {
namespace {

/// Whole heads keep every thread busy, or chunks of row panels have to.
detail::BackwardTasks choose_tasks(const Problem& problem) {
  const std::int64_t heads = problem.batch * problem.key_value_heads;
  const bool enough = heads >= oneapi::tbb::this_task_arena::max_concurrency();
  return enough ? detail::BackwardTasks::heads : detail::BackwardTasks::chunks;
}

template <class T>
void run_backward(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                  AttentionView<const T> result, TensorView<const T> grad_output, GradientsView<T> gradients,
                  Workspace& workspace, const BackwardOptions<T>& options) {
  detail::validate_backward(plan, query, key, value, result, grad_output, options, gradients);
  detail::ScratchPool& pool = workspace.pass_pool();
  const detail::BackwardTasks tasks = choose_tasks(plan.problem());
  const bool in_chunks = plan.data().backward_passes == BackwardPasses::one && tasks == detail::BackwardTasks::chunks;
  const bool keeps_pairs = plan.schedule() == Schedule::materialize || in_chunks;
  const std::int64_t pair_values = keeps_pairs ? detail::pair_store_values(plan.data()) : 0;
  const TensorShape lse_shape = detail::lse_shape(plan);
  detail::ScratchPool::Lease scores = pool.lend<T>(pair_values);
  detail::ScratchPool::Lease grad_scores = pool.lend<T>(pair_values);
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
                                          .score_store = keeps_pairs ? scores.as<T>() : nullptr,
                                          .grad_score_store = keeps_pairs ? grad_scores.as<T>() : nullptr};
  detail::backward_phases(plan.data(), tasks, [&](const detail::Phase& phase) {
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
