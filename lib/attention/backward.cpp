#include <atomic>

#include "attention/finite_inputs.hpp"
#include "attention/pass_memory.hpp"
#include "attention/reordered_passes.hpp"
#include "attention/term_passes.hpp"
#include "attention/validate.hpp"
#include "cobble/attention.hpp"
#include "plan/schedules.hpp"

namespace cobble {
namespace {

/// On tokens in the plan's order.
template <class Storage>
void run_in_order(const Plan& plan, TensorView<const Storage> query, TensorView<const Storage> key,
                  TensorView<const Storage> value, AttentionView<const Storage> result,
                  TensorView<const Storage> grad_output, GradientsView<Storage> gradients, Workspace& workspace,
                  const BackwardOptions<Storage>& options) {
  using T = ComputeType<Storage>;
  detail::ScratchPool& pool = workspace.pass_pool();
  const detail::ComputeTerms<Storage> terms(options.terms, pool);
  detail::GradientSums<Storage> grad_key(gradients.key, pool);
  detail::GradientSums<Storage> grad_value(gradients.value, pool);
  detail::GradientSums<Storage> grad_bias(gradients.bias, pool);
  const std::int64_t pair_values = detail::pair_store_values(plan.data());
  const TensorShape lse_shape = detail::lse_shape(plan);
  detail::ScratchPool::Lease scores = pool.lend<T>(pair_values);
  detail::ScratchPool::Lease grad_scores = pool.lend<T>(pair_values);
  detail::ScratchPool::Lease key_slots = pool.lend<T>(detail::all_slot_values(plan.data(), plan.problem().head_dim));
  detail::ScratchPool::Lease value_slots = pool.lend<T>(detail::all_slot_values(plan.data(), plan.problem().value_dim));
  detail::ScratchPool::Lease row_slots =
      pool.lend<T>(detail::all_row_slot_values(plan.data(), detail::Product::backward_rows));
  // Softcap's derivatives outlive a task together with pairs that stand row by row.
  const bool slopes = options.terms.softcap != 0;
  const bool keeps_slopes = slopes && plan.schedule() == Schedule::materialize;
  detail::ScratchPool::Lease slope_store = pool.lend<T>(keeps_slopes ? pair_values : 0);
  detail::ScratchPool::Lease delta = pool.lend<T>(lse_shape.size());
  const bool bias_in_pass = detail::takes_bias_gradient_along(plan.data(), grad_bias.view());
  std::atomic<bool> doubtful = false;
  // A query that is not finite shows in its row's lse, unless softcap or a sink hides it.
  const bool query_shows = options.terms.softcap == 0 && options.terms.sinks.empty() && detail::is_finite(result.lse);
  detail::PassTensors<Storage> tensors = {
      .query = query,
      .key = key,
      .value = value,
      .result_output = result.output,
      .result_lse = result.lse,
      .grad_output = grad_output,
      .grad_lse = options.grad_lse,
      .delta = {delta.as<T>(), lse_shape},
      .grad_query = gradients.query,
      .grad_key = grad_key.view(),
      .grad_value = grad_value.view(),
      .finite = {.query = query_shows || detail::is_finite(query), .key = true, .grad_output = true},
      .doubtful = &doubtful,
      .key_slots = key_slots.as<T>(),
      .value_slots = value_slots.as<T>(),
      .row_slots = row_slots.as<T>(),
      .score_store = scores.as<T>(),
      .grad_score_store = grad_scores.as<T>(),
      .terms = {.given = terms.terms(),
                .slopes = slopes,
                .slope_store = keeps_slopes ? slope_store.as<T>() : nullptr,
                .grad_bias = bias_in_pass ? grad_bias.view() : TensorView<T>(),
                .add_to_grad_bias = plan.schedule() == Schedule::materialize}};
  const auto run = [&] {
    detail::set_zero_bias_gradient(grad_bias.view());
    detail::backward_phases(plan.data(), [&](const detail::Phase& phase) {
      detail::run_phase(plan.data(), tensors, workspace.task_pool(), phase);
    });
  };
  run();
  // A key that is not finite shows in the gradients of queries, a gradient of the output in delta.
  if (doubtful) {
    tensors.finite.key = detail::is_finite(key);
    tensors.finite.grad_output = detail::is_finite(grad_output);
    if (!tensors.finite.key || !tensors.finite.grad_output) run();
  }
  tensors.doubtful = nullptr;
  detail::finish_term_gradients<Storage>(plan.data(), tensors, grad_bias.view(), gradients.sinks,
                                         workspace.task_pool());
  grad_key.finish();
  grad_value.finish();
  grad_bias.finish();
}

template <class T>
void run_backward(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                  AttentionView<const T> result, TensorView<const T> grad_output, GradientsView<T> gradients,
                  Workspace& workspace, const BackwardOptions<T>& options) {
  detail::validate_backward(plan, query, key, value, result, grad_output, options, gradients);
  if (plan.reordering() == nullptr) {
    return run_in_order(plan, query, key, value, result, grad_output, gradients, workspace, options);
  }
  detail::require_no_positions(options.terms);
  detail::backward_in_order<T>(*plan.reordering(), query, key, value, result, grad_output, options.grad_lse, gradients,
                               workspace.pass_pool(),
                               [&](auto q, auto k, auto v, auto r, auto grad, auto grad_lse, auto ordered) {
                                 BackwardOptions<T> ordered_options = options;
                                 ordered_options.grad_lse = grad_lse;
                                 run_in_order<T>(plan, q, k, v, r, grad, ordered, workspace, ordered_options);
                               });
}

template <class T>
Gradients<T> allocate_and_run(const Plan& plan, TensorView<const T> query, TensorView<const T> key,
                              TensorView<const T> value, AttentionView<const T> result, TensorView<const T> grad_output,
                              const BackwardOptions<T>& options) {
  Gradients<T> gradients{Tensor<T>(detail::query_shape(plan)), Tensor<T>(detail::key_shape(plan)),
                         Tensor<T>(detail::value_shape(plan))};
  detail::allocate_term_gradients(plan, options, gradients);
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

Gradients<bfloat16> backward(const Plan& plan, TensorView<const bfloat16> query, TensorView<const bfloat16> key,
                             TensorView<const bfloat16> value, AttentionView<const bfloat16> result,
                             TensorView<const bfloat16> grad_output, const BackwardOptions<bfloat16>& options) {
  return allocate_and_run(plan, query, key, value, result, grad_output, options);
}

Gradients<float16> backward(const Plan& plan, TensorView<const float16> query, TensorView<const float16> key,
                            TensorView<const float16> value, AttentionView<const float16> result,
                            TensorView<const float16> grad_output, const BackwardOptions<float16>& options) {
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

void backward(const Plan& plan, TensorView<const bfloat16> query, TensorView<const bfloat16> key,
              TensorView<const bfloat16> value, AttentionView<const bfloat16> result,
              TensorView<const bfloat16> grad_output, GradientsView<bfloat16> gradients, Workspace& workspace,
              const BackwardOptions<bfloat16>& options) {
  run_backward(plan, query, key, value, result, grad_output, gradients, workspace, options);
}

void backward(const Plan& plan, TensorView<const float16> query, TensorView<const float16> key,
              TensorView<const float16> value, AttentionView<const float16> result,
              TensorView<const float16> grad_output, GradientsView<float16> gradients, Workspace& workspace,
              const BackwardOptions<float16>& options) {
  run_backward(plan, query, key, value, result, grad_output, gradients, workspace, options);
}

}  // namespace cobble
