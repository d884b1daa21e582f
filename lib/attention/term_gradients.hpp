#pragma once

#include <span>

#include "attention/executor.hpp"
#include "plan/plan_data.hpp"

// The gradients of a bias and of sinks, as far as they are not a matter of tiles.

namespace cobble::detail {

/// Whether the passes over pairs write the gradient of a bias on their way. A bias that heads share is added to, which
/// recompute's tasks would do at the same time.
template <class T>
bool takes_bias_gradient_along(const PlanData& plan, const TensorView<T>& grad_bias);

/// Values outside the pattern are met by no one.
template <class T>
void set_zero_bias_gradient(const TensorView<T>& grad_bias);

/// dsink_h = -sum p_sink delta over the rows of all batch entries, p_sink = exp(sink_h - lse), after the backward
/// passes.
template <class Storage>
void sink_gradients(const PassTensors<Storage>& tensors, std::span<Storage> grad_sinks);

}  // namespace cobble::detail
