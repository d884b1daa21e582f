#include "attention/compressed_operands.hpp"
#include "attention/run_phases.hpp"
#include "attention/validate.hpp"
#include "cobble/compressed_attention.hpp"
#include "plan/schedules.hpp"

namespace cobble {
namespace {

template <class T>
void run_forward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                 const FeaturesView<T>& value, AttentionView<T> result, Workspace& workspace,
                 const ScoreTerms<T>& terms) {
  detail::validate_forward(plan, query, key, value, result, terms);
  const bool materialized = plan.schedule() == Schedule::materialize;
  detail::ScratchPool::Lease scores =
      workspace.pass_pool().lend<T>(materialized ? detail::pair_store_values(plan.data()) : 0);
  const bool value_is_finite = detail::is_finite(value);
  const bool all_finite = (detail::has_few_entries(key) || detail::has_few_entries(value)) && value_is_finite &&
                          detail::is_finite(query) && detail::is_finite(key);
  const detail::PassTensors<T> tensors = {.query = detail::dense_tensor(query),
                                          .key = detail::dense_tensor(key),
                                          .value = detail::dense_tensor(value),
                                          .output = result.output,
                                          .lse = result.lse,
                                          .compressed_query = detail::compressed_operand(query, all_finite),
                                          .compressed_key = detail::compressed_operand(key, all_finite),
                                          .compressed_value = detail::compressed_operand(value, all_finite),
                                          .finite = {.value = value_is_finite},
                                          .score_store = materialized ? scores.as<T>() : nullptr,
                                          .terms = {.given = terms}};
  detail::forward_phases(plan.data(), [&](const detail::Phase& phase) {
    detail::run_phase(plan.data(), tensors, workspace.task_pool(), phase);
  });
}

template <class T>
Attention<T> allocate_and_run(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                              const FeaturesView<T>& value, const ScoreTerms<T>& terms) {
  Attention<T> result{Tensor<T>(detail::output_shape(plan)), Tensor<T>(detail::lse_shape(plan))};
  Workspace workspace;
  run_forward(plan, query, key, value, result.view(), workspace, terms);
  return result;
}

}  // namespace

Attention<float> forward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
                         TensorView<const float> value, const ScoreTerms<float>& terms) {
  return allocate_and_run<float>(plan, query, key, value, terms);
}

Attention<double> forward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
                          TensorView<const double> value, const ScoreTerms<double>& terms) {
  return allocate_and_run<double>(plan, query, key, value, terms);
}

void forward(const Plan& plan, TensorView<const float> query, TensorView<const float> key,
             TensorView<const float> value, AttentionView<float> result, Workspace& workspace,
             const ScoreTerms<float>& terms) {
  run_forward<float>(plan, query, key, value, result, workspace, terms);
}

void forward(const Plan& plan, TensorView<const double> query, TensorView<const double> key,
             TensorView<const double> value, AttentionView<double> result, Workspace& workspace,
             const ScoreTerms<double>& terms) {
  run_forward<double>(plan, query, key, value, result, workspace, terms);
}

template <class T>
Attention<T> forward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                     const FeaturesView<T>& value, const ScoreTerms<T>& terms) {
  return allocate_and_run(plan, query, key, value, terms);
}

template <class T>
void forward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key, const FeaturesView<T>& value,
             AttentionView<T> result, Workspace& workspace, const ScoreTerms<T>& terms) {
  run_forward(plan, query, key, value, result, workspace, terms);
}

#define COBBLE_INSTANTIATE(T)                                                                                        \
  template Attention<T> forward(const Plan&, const FeaturesView<T>&, const FeaturesView<T>&, const FeaturesView<T>&, \
                                const ScoreTerms<T>&);                                                               \
  template void forward(const Plan&, const FeaturesView<T>&, const FeaturesView<T>&, const FeaturesView<T>&,         \
                        AttentionView<T>, Workspace&, const ScoreTerms<T>&);
COBBLE_INSTANTIATE(float)
COBBLE_INSTANTIATE(double)
#undef COBBLE_INSTANTIATE

}  // namespace cobble
