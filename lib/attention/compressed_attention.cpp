#include "cobble/compressed_attention.hpp"

#include <utility>

#include "attention/compressed_operands.hpp"
#include "attention/ordered_features.hpp"
#include "attention/term_passes.hpp"
#include "attention/validate.hpp"
#include "plan/schedules.hpp"

namespace cobble {
namespace {

/// Tensors stand in the order of the plan's patterns.
template <class T>
void forward_in_place(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                      const FeaturesView<T>& value, AttentionView<T> result, Workspace& workspace,
                      const ScoreTerms<T>& terms) {
  const bool materialized = plan.schedule() == Schedule::materialize;
  detail::ScratchPool::Lease scores =
      workspace.pass_pool().lend<T>(materialized ? detail::pair_store_values(plan.data()) : 0);
  detail::ScratchPool::Lease row_slots =
      workspace.pass_pool().lend<T>(detail::all_row_slot_values(plan.data(), detail::Product::forward));
  const bool value_is_finite = detail::is_finite(value);
  const bool takes_entries = detail::may_take_entries(plan.data(), key, value) && value_is_finite &&
                             detail::is_finite(query) && detail::is_finite(key);
  const detail::PassTensors<T> tensors = {.query = detail::dense_tensor(query),
                                          .key = detail::dense_tensor(key),
                                          .value = detail::dense_tensor(value),
                                          .output = result.output,
                                          .lse = result.lse,
                                          .compressed_query = detail::compressed_operand(query, takes_entries),
                                          .compressed_key = detail::compressed_operand(key, takes_entries),
                                          .compressed_value = detail::compressed_operand(value, takes_entries, true),
                                          .finite = {.value = value_is_finite},
                                          .row_slots = row_slots.as<T>(),
                                          .score_store = materialized ? scores.as<T>() : nullptr,
                                          .terms = {.given = terms}};
  detail::forward_phases(plan.data(), [&](const detail::Phase& phase) {
    detail::run_phase(plan.data(), tensors, workspace.task_pool(), phase);
  });
}

template <class T>
void run_forward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                 const FeaturesView<T>& value, AttentionView<T> result, Workspace& workspace,
                 const ScoreTerms<T>& terms) {
  detail::validate_forward(plan, query, key, value, result, terms);
  const Reordering* const order = plan.reordering();
  if (order == nullptr) return forward_in_place(plan, query, key, value, result, workspace, terms);
  detail::require_no_positions(terms);
  detail::ScratchPool& pool = workspace.pass_pool();
  const detail::OrderedTensor<T> output(result.output.shape(), true, pool);
  const detail::OrderedTensor<T> lse(result.lse.shape(), true, pool);
  const detail::OrderedFeatures<T> ordered_query(query, order->queries, pool);
  const detail::OrderedFeatures<T> ordered_key(key, order->keys, pool);
  const detail::OrderedFeatures<T> ordered_value(value, order->keys, pool);
  forward_in_place<T>(plan, ordered_query.view(), ordered_key.view(), ordered_value.view(), {output.view(), lse.view()},
                      workspace, terms);
  detail::scatter_tokens<T>(output.view(), order->queries, result.output);
  detail::scatter_tokens<T>(lse.view(), order->queries, result.lse);
}

/// An input together with where its gradient goes.
template <class T>
detail::CompressedOperand<T> operand_with_gradient(const Plan& plan, const FeaturesView<T>& input,
                                                   const FeatureGradientView<T>& gradient, bool takes_entries,
                                                   bool is_value = false) {
  detail::CompressedOperand<T> operand = detail::compressed_operand(input, takes_entries, is_value);
  operand.grad_values = detail::gradient_values(gradient);
  if (!operand.grad_values.empty() && plan.data().most_slots() > 0) {
    operand.slot_values =
        detail::most_places(input, plan.data().column_range(detail::Product::backward_rows, 0).size());
  }
  return operand;
}

/// Elements of all slots for the gradient of a key/value head's keys or values.
template <class T>
std::int64_t all_slots(const Plan& plan, const detail::CompressedOperand<T>& operand, std::int64_t features) {
  if (operand.grad_values.empty()) return detail::all_slot_values(plan.data(), features);
  return static_cast<std::int64_t>(operand.grad_values.size()) * plan.data().most_slots() * operand.slot_values;
}

template <class T>
void backward_in_place(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                       const FeaturesView<T>& value, AttentionView<const T> result, TensorView<const T> grad_output,
                       const FeatureGradientsView<T>& gradients, Workspace& workspace,
                       const BackwardOptions<T>& options) {
  detail::ScratchPool& pool = workspace.pass_pool();
  const std::int64_t pair_values = detail::pair_store_values(plan.data());
  const TensorShape lse_shape = detail::lse_shape(plan);
  detail::ScratchPool::Lease scores = pool.lend<T>(pair_values);
  detail::ScratchPool::Lease grad_scores = pool.lend<T>(pair_values);
  const detail::FiniteInputs finite = {
      .query = detail::is_finite(query), .key = detail::is_finite(key), .grad_output = detail::is_finite(grad_output)};
  const bool takes_entries = detail::may_take_entries(plan.data(), key, value) && finite.query && finite.key &&
                             finite.grad_output && detail::is_finite(value);
  const auto compressed_key = operand_with_gradient(plan, key, gradients.key, takes_entries);
  const auto compressed_value = operand_with_gradient(plan, value, gradients.value, takes_entries, true);
  detail::ScratchPool::Lease key_slots = pool.lend<T>(all_slots(plan, compressed_key, plan.problem().head_dim));
  detail::ScratchPool::Lease value_slots = pool.lend<T>(all_slots(plan, compressed_value, plan.problem().value_dim));
  detail::ScratchPool::Lease row_slots =
      pool.lend<T>(detail::all_row_slot_values(plan.data(), detail::Product::backward_rows));
  // Softcap's derivatives outlive a task together with pairs that stand row by row.
  const bool slopes = options.terms.softcap != 0;
  const bool keeps_slopes = slopes && plan.schedule() == Schedule::materialize;
  detail::ScratchPool::Lease slope_store = pool.lend<T>(keeps_slopes ? pair_values : 0);
  detail::ScratchPool::Lease delta = pool.lend<T>(lse_shape.size());
  const bool bias_in_pass = detail::takes_bias_gradient_along(plan.data(), gradients.bias);
  detail::set_zero_bias_gradient(gradients.bias);
  const detail::PassTensors<T> tensors = {
      .query = detail::dense_tensor(query),
      .key = detail::dense_tensor(key),
      .value = detail::dense_tensor(value),
      .result_output = result.output,
      .result_lse = result.lse,
      .grad_output = grad_output,
      .grad_lse = options.grad_lse,
      .delta = {delta.as<T>(), lse_shape},
      .grad_query = detail::dense_gradient(gradients.query),
      .grad_key = detail::dense_gradient(gradients.key),
      .grad_value = detail::dense_gradient(gradients.value),
      .compressed_query = operand_with_gradient(plan, query, gradients.query, takes_entries),
      .compressed_key = compressed_key,
      .compressed_value = compressed_value,
      .finite = finite,
      .key_slots = key_slots.as<T>(),
      .value_slots = value_slots.as<T>(),
      .row_slots = row_slots.as<T>(),
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
  detail::finish_term_gradients<T>(plan.data(), tensors, gradients.bias, gradients.sinks, workspace.task_pool());
}

template <class T>
void run_backward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                  const FeaturesView<T>& value, AttentionView<const T> result, TensorView<const T> grad_output,
                  const FeatureGradientsView<T>& gradients, Workspace& workspace, const BackwardOptions<T>& options) {
  detail::validate_backward(plan, query, key, value, result, grad_output, options, gradients);
  const Reordering* const order = plan.reordering();
  if (order == nullptr) {
    return backward_in_place(plan, query, key, value, result, grad_output, gradients, workspace, options);
  }
  detail::require_no_positions(options.terms);
  detail::ScratchPool& pool = workspace.pass_pool();
  const detail::OrderedFeatures<T> ordered_query(query, order->queries, pool);
  const detail::OrderedFeatures<T> ordered_key(key, order->keys, pool);
  const detail::OrderedFeatures<T> ordered_value(value, order->keys, pool);
  const detail::OrderedTensor<T> output(result.output, order->queries, pool);
  const detail::OrderedTensor<T> lse(result.lse, order->queries, pool);
  const detail::OrderedTensor<T> ordered_grad_output(grad_output, order->queries, pool);
  const detail::OrderedTensor<T> grad_lse(options.grad_lse, order->queries, pool);
  detail::OrderedGradient<T> grad_query(ordered_query, gradients.query, query.shape(), pool);
  detail::OrderedGradient<T> grad_key(ordered_key, gradients.key, key.shape(), pool);
  detail::OrderedGradient<T> grad_value(ordered_value, gradients.value, value.shape(), pool);
  BackwardOptions<T> ordered_options = options;
  ordered_options.grad_lse = grad_lse.view();
  backward_in_place<T>(plan, ordered_query.view(), ordered_key.view(), ordered_value.view(),
                       {output.view(), lse.view()}, ordered_grad_output.view(),
                       {grad_query.view(), grad_key.view(), grad_value.view(), gradients.bias, gradients.sinks},
                       workspace, ordered_options);
  grad_query.scatter();
  grad_key.scatter();
  grad_value.scatter();
}

/// The same structure, with values of 0.
template <class T>
CsrMatrix<T> zeros_like(const CsrView<T>& matrix) {
  CsrMatrix<T> zeros;
  zeros.rows = matrix.rows;
  zeros.columns = matrix.columns;
  zeros.row_offsets.assign(matrix.row_offsets.begin(), matrix.row_offsets.end());
  zeros.column_indices.assign(matrix.column_indices.begin(), matrix.column_indices.end());
  zeros.values.assign(matrix.values.size(), T{0});
  return zeros;
}

template <class T>
BsrMatrix<T> zeros_like(const BsrView<T>& matrix) {
  BsrMatrix<T> zeros;
  zeros.rows = matrix.rows;
  zeros.columns = matrix.columns;
  zeros.block_rows = matrix.block_rows;
  zeros.block_columns = matrix.block_columns;
  zeros.block_row_offsets.assign(matrix.block_row_offsets.begin(), matrix.block_row_offsets.end());
  zeros.block_column_indices.assign(matrix.block_column_indices.begin(), matrix.block_column_indices.end());
  zeros.values.assign(matrix.values.size(), T{0});
  return zeros;
}

template <class Matrix, class View>
CompressedTensor<Matrix> zeros_like(const CompressedTensorView<View>& tensor) {
  std::vector<Matrix> matrices;
  for (const View& matrix : tensor.matrices()) matrices.push_back(zeros_like(matrix));
  return {std::move(matrices), tensor.shape().batch, tensor.shape().heads};
}

template <class T>
Features<T> allocate_gradient(const FeaturesView<T>& input, GradientStorage storage) {
  if (storage == GradientStorage::dense || input.storage() == FeatureStorage::dense) return Tensor<T>(input.shape());
  if (input.storage() == FeatureStorage::csr) return zeros_like<CsrMatrix<T>>(input.csr());
  return zeros_like<BsrMatrix<T>>(input.bsr());
}

template <class T>
FeatureGradientView<T> gradient_view(Features<T>& gradient) {
  if (auto* dense = std::get_if<Tensor<T>>(&gradient)) return dense->view();
  std::vector<std::span<T>> values;
  const auto add_values = [&](auto& tensor) {
    for (std::int64_t batch = 0; batch < tensor.shape().batch; ++batch) {
      for (std::int64_t head = 0; head < tensor.shape().heads; ++head) values.push_back(tensor.values(batch, head));
    }
  };
  if (auto* csr = std::get_if<CsrTensor<T>>(&gradient)) {
    add_values(*csr);
  } else {
    add_values(std::get<BsrTensor<T>>(gradient));
  }
  return values;
}

}  // namespace

template <class T>
Problem with_entries(Problem problem, const FeaturesView<T>& query, const FeaturesView<T>& key,
                     const FeaturesView<T>& value) {
  const auto entries = [](const FeaturesView<T>& input) {
    const TensorShape& shape = input.shape();
    const auto tokens = static_cast<double>(shape.batch) * static_cast<double>(shape.heads * shape.tokens);
    if (input.storage() == FeatureStorage::dense || tokens == 0) return 0.0;
    return static_cast<double>(input.nnz()) / tokens;
  };
  problem.query_entries = entries(query);
  problem.key_entries = entries(key);
  problem.value_entries = entries(value);
  problem.key_in_blocks = key.storage() == FeatureStorage::bsr;
  problem.value_in_blocks = value.storage() == FeatureStorage::bsr;
  return problem;
}

template <class T>
Attention<T> forward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                     const FeaturesView<T>& value, const ScoreTerms<T>& terms) {
  Attention<T> result{Tensor<T>(detail::output_shape(plan)), Tensor<T>(detail::lse_shape(plan))};
  Workspace workspace;
  run_forward(plan, query, key, value, result.view(), workspace, terms);
  return result;
}

template <class T>
void forward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key, const FeaturesView<T>& value,
             AttentionView<T> result, Workspace& workspace, const ScoreTerms<T>& terms) {
  run_forward(plan, query, key, value, result, workspace, terms);
}

template <class T>
FeatureGradients<T> backward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                             const FeaturesView<T>& value, AttentionView<const T> result,
                             TensorView<const T> grad_output, const BackwardOptions<T>& options,
                             GradientStorage storage) {
  FeatureGradients<T> gradients{allocate_gradient(query, storage), allocate_gradient(key, storage),
                                allocate_gradient(value, storage)};
  detail::allocate_term_gradients(plan, options, gradients);
  FeatureGradientsView<T> view{gradient_view(gradients.query), gradient_view(gradients.key),
                               gradient_view(gradients.value)};
  if (gradients.bias.data() != nullptr) view.bias = gradients.bias.view();
  view.sinks = gradients.sinks.values();
  Workspace workspace;
  run_backward(plan, query, key, value, result, grad_output, view, workspace, options);
  return gradients;
}

template <class T>
void backward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key, const FeaturesView<T>& value,
              AttentionView<const T> result, TensorView<const T> grad_output, const FeatureGradientsView<T>& gradients,
              Workspace& workspace, const BackwardOptions<T>& options) {
  run_backward(plan, query, key, value, result, grad_output, gradients, workspace, options);
}

#define COBBLE_INSTANTIATE(T)                                                                                        \
  template Problem with_entries(Problem, const FeaturesView<T>&, const FeaturesView<T>&, const FeaturesView<T>&);    \
  template Attention<T> forward(const Plan&, const FeaturesView<T>&, const FeaturesView<T>&, const FeaturesView<T>&, \
                                const ScoreTerms<T>&);                                                               \
  template void forward(const Plan&, const FeaturesView<T>&, const FeaturesView<T>&, const FeaturesView<T>&,         \
                        AttentionView<T>, Workspace&, const ScoreTerms<T>&);                                         \
  template FeatureGradients<T> backward(const Plan&, const FeaturesView<T>&, const FeaturesView<T>&,                 \
                                        const FeaturesView<T>&, AttentionView<const T>, TensorView<const T>,         \
                                        const BackwardOptions<T>&, GradientStorage);                                 \
  template void backward(const Plan&, const FeaturesView<T>&, const FeaturesView<T>&, const FeaturesView<T>&,        \
                         AttentionView<const T>, TensorView<const T>, const FeatureGradientsView<T>&, Workspace&,    \
                         const BackwardOptions<T>&);
COBBLE_INSTANTIATE(float)
COBBLE_INSTANTIATE(double)
#undef COBBLE_INSTANTIATE

}  // namespace cobble
