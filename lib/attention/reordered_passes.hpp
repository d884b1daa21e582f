#pragma once

#include "attention/scratch_pool.hpp"
#include "attention/token_order.hpp"
#include "cobble/attention.hpp"
#include "cobble/error.hpp"
#include "plan/plan_data.hpp"

// Passes of a plan that lets its tokens stand in another order: tensors are copied into that order, results back.

namespace cobble::detail {

/// Memory of a pass for a tensor in the plan's order.
template <class T>
class OrderedTensor {
 public:
  /// Not filled. Of no elements without `data`.
  OrderedTensor(const TensorShape& shape, bool exists, ScratchPool& pool)
      : memory_(pool.lend<T>(exists ? shape.size() : 0)),
        view_(exists ? TensorView<T>(memory_.template as<T>(), shape) : TensorView<T>()) {}
  OrderedTensor(const TensorView<const T>& tensor, std::span<const std::int32_t> order, ScratchPool& pool)
      : OrderedTensor(tensor.shape(), tensor.data() != nullptr, pool) {
    if (tensor.data() != nullptr) gather_tokens<T>(tensor, order, view_);
  }

  TensorView<T> view() const noexcept { return view_; }

 private:
  ScratchPool::Lease memory_;
  TensorView<T> view_;
};

/// Biases and ALiBi belong to positions. Throws Error{unsupported}.
template <class T>
void require_no_positions(const ScoreTerms<T>& terms) {
  if (terms.bias.values.data() != nullptr || !terms.alibi_slopes.empty()) {
    throw Error(ErrorCode::unsupported,
                "terms have a bias or ALiBi slopes, which belong to positions; expected none with a plan that reorders "
                "tokens");
  }
}

/// run(query, key, value, result) in the plan's order.
template <class T, class Run>
void forward_in_order(const Reordering& order, const TensorView<const T>& query, const TensorView<const T>& key,
                      const TensorView<const T>& value, const AttentionView<T>& result, ScratchPool& pool, Run&& run) {
  const OrderedTensor<T> ordered_query(query, order.queries, pool);
  const OrderedTensor<T> ordered_key(key, order.keys, pool);
  const OrderedTensor<T> ordered_value(value, order.keys, pool);
  const OrderedTensor<T> output(result.output.shape(), true, pool);
  const OrderedTensor<ComputeType<T>> lse(result.lse.shape(), true, pool);
  run(ordered_query.view(), ordered_key.view(), ordered_value.view(), AttentionView<T>{output.view(), lse.view()});
  scatter_tokens<T>(output.view(), order.queries, result.output);
  scatter_tokens<ComputeType<T>>(lse.view(), order.queries, result.lse);
}

/// run(query, key, value, result, grad_output, grad_lse, gradients) in the plan's order; gradients of sinks are written
/// where they belong.
template <class T, class Run>
void backward_in_order(const Reordering& order, const TensorView<const T>& query, const TensorView<const T>& key,
                       const TensorView<const T>& value, const AttentionView<const T>& result,
                       const TensorView<const T>& grad_output, const TensorView<const ComputeType<T>>& grad_lse,
                       const GradientsView<T>& gradients, ScratchPool& pool, Run&& run) {
  const OrderedTensor<T> ordered_query(query, order.queries, pool);
  const OrderedTensor<T> ordered_key(key, order.keys, pool);
  const OrderedTensor<T> ordered_value(value, order.keys, pool);
  const OrderedTensor<T> output(result.output, order.queries, pool);
  const OrderedTensor<ComputeType<T>> lse(result.lse, order.queries, pool);
  const OrderedTensor<T> ordered_grad_output(grad_output, order.queries, pool);
  const OrderedTensor<ComputeType<T>> ordered_grad_lse(grad_lse, order.queries, pool);
  const OrderedTensor<T> grad_query(gradients.query.shape(), true, pool);
  const OrderedTensor<T> grad_key(gradients.key.shape(), true, pool);
  const OrderedTensor<T> grad_value(gradients.value.shape(), true, pool);
  GradientsView<T> ordered = gradients;
  ordered.query = grad_query.view();
  ordered.key = grad_key.view();
  ordered.value = grad_value.view();
  run(ordered_query.view(), ordered_key.view(), ordered_value.view(), AttentionView<const T>{output.view(), lse.view()},
      ordered_grad_output.view(), ordered_grad_lse.view(), ordered);
  scatter_tokens<T>(grad_query.view(), order.queries, gradients.query);
  scatter_tokens<T>(grad_key.view(), order.keys, gradients.key);
  scatter_tokens<T>(grad_value.view(), order.keys, gradients.value);
}

}  // namespace cobble::detail
