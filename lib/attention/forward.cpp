#include <atomic>

#include "attention/finite_inputs.hpp"
#include "attention/pass_memory.hpp"
#include "attention/reordered_passes.hpp"
#include "attention/run_phases.hpp"
#include "attention/validate.hpp"
#include "cobble/attention.hpp"
#include "plan/schedules.hpp"

namespace cobble {
namespace {

/// On tokens in the plan's order.
template <class T>
void run_in_order(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                  AttentionView<T> result, Workspace& workspace, const ScoreTerms<T>& terms) {
  const detail::ComputeTerms<T> compute_terms(terms, workspace.pass_pool());
  const bool materialized = plan.schedule() == Schedule::materialize;
  detail::ScratchPool::Lease scores =
      workspace.pass_pool().lend<ComputeType<T>>(materialized ? detail::pair_store_values(plan.data()) : 0);
  detail::ScratchPool::Lease row_slots =
      workspace.pass_pool().lend<ComputeType<T>>(detail::all_row_slot_values(plan.data(), detail::Product::forward));
  std::atomic<bool> doubtful = false;
  detail::PassTensors<T> tensors = {.query = query,
                                    .key = key,
                                    .value = value,
                                    .output = result.output,
                                    .lse = result.lse,
                                    .finite = {.value = true},
                                    .doubtful = &doubtful,
                                    .row_slots = row_slots.as<ComputeType<T>>(),
                                    .score_store = materialized ? scores.as<ComputeType<T>>() : nullptr,
                                    .terms = {.given = compute_terms.terms()}};
  const auto run = [&] {
    detail::forward_phases(plan.data(), [&](const detail::Phase& phase) {
      detail::run_phase(plan.data(), tensors, workspace.task_pool(), phase);
    });
  };
  run();
  // A value that is not finite leaks into every row that it is multiplied with, were it by 0, and is seen there. To
  // look for it first would take longer than a few of the products.
  if (!doubtful) return;
  tensors.finite.value = detail::is_finite(value);
  tensors.doubtful = nullptr;
  if (!tensors.finite.value) run();
}

template <class T>
void run_forward(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                 AttentionView<T> result, Workspace& workspace, const ScoreTerms<T>& terms) {
  detail::validate_forward(plan, query, key, value, result, terms);
  if (plan.reordering() == nullptr) return run_in_order(plan, query, key, value, result, workspace, terms);
  detail::require_no_positions(terms);
  detail::forward_in_order<T>(
      *plan.reordering(), query, key, value, result, workspace.pass_pool(),
      [&](auto q, auto k, auto v, auto r) { run_in_order<T>(plan, q, k, v, r, workspace, terms); });
}

template <class T>
Attention<T> allocate_and_run(const Plan& plan, TensorView<const T> query, TensorView<const T> key,
                              TensorView<const T> value, const ScoreTerms<T>& terms) {
  Attention<T> result{Tensor<T>(detail::output_shape(plan)), Tensor<ComputeType<T>>(detail::lse_shape(plan))};
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

Attention<bfloat16> forward(const Plan& plan, TensorView<const bfloat16> query, TensorView<const bfloat16> key,
                            TensorView<const bfloat16> value, const ScoreTerms<bfloat16>& terms) {
  return allocate_and_run(plan, query, key, value, terms);
}

Attention<float16> forward(const Plan& plan, TensorView<const float16> query, TensorView<const float16> key,
                           TensorView<const float16> value, const ScoreTerms<float16>& terms) {
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

void forward(const Plan& plan, TensorView<const bfloat16> query, TensorView<const bfloat16> key,
             TensorView<const bfloat16> value, AttentionView<bfloat16> result, Workspace& workspace,
             const ScoreTerms<bfloat16>& terms) {
  run_forward(plan, query, key, value, result, workspace, terms);
}

void forward(const Plan& plan, TensorView<const float16> query, TensorView<const float16> key,
             TensorView<const float16> value, AttentionView<float16> result, Workspace& workspace,
             const ScoreTerms<float16>& terms) {
  run_forward(plan, query, key, value, result, workspace, terms);
}

}  // namespace cobble
