#pragma once

#include <span>

#include "attention/run_phases.hpp"
#include "attention/term_gradients.hpp"
#include "cobble/attention.hpp"
#include "pattern/score_term_checks.hpp"
#include "plan/bias_gradient.hpp"

// What every backward pass does for the terms of scores, whatever its inputs are stored in.

namespace cobble::detail {

/// After the passes over pairs: the gradient of a bias that they did not take along, in a pass of its own, and those of
/// sinks. No data, or an empty span: not asked for.
template <class Storage>
void finish_term_gradients(const PlanData& plan, const PassTensors<Storage>& tensors,
                           const TensorView<ComputeType<Storage>>& grad_bias, std::span<Storage> grad_sinks,
                           ScratchPool& pool) {
  if (grad_bias.data() != nullptr && !takes_bias_gradient_along(plan, grad_bias)) {
    PassTensors<Storage> bias_tensors = tensors;
    bias_tensors.score_store = bias_tensors.grad_score_store = nullptr;
    bias_tensors.terms.grad_bias = grad_bias;
    bias_tensors.terms.add_to_grad_bias = true;
    bias_gradient_phase(plan, [&](const Phase& phase) { run_phase(plan, bias_tensors, pool, phase); });
  }
  if (!grad_sinks.empty()) sink_gradients(tensors, grad_sinks);
}

/// Memory for the gradients of bias and sinks, if they are asked for.
template <class T, class Result>
void allocate_term_gradients(const Plan& plan, const BackwardOptions<T>& options, Result& gradients) {
  if (options.bias_gradient && has_bias(options.terms)) {
    gradients.bias = Tensor<T>(options.terms.bias.values.shape());
  }
  if (!options.terms.sinks.empty()) gradients.sinks = Tensor<T>({1, plan.problem().query_heads, 1, 1});
}

}  // namespace cobble::detail
