#pragma once

#include "plan/plan_data.hpp"
#include "plan/walk.hpp"

namespace cobble::detail {

/// The phase that computes dS once more, for the gradient of a bias that several heads share: a task has a panel of
/// rows and takes one head after another, so that no two tasks add to the same value. Of recompute, with delta at hand.
void bias_gradient_phase(const PlanData& plan, const PhaseConsumer& consume);

}  // namespace cobble::detail
