#pragma once

#include "plan/schedules.hpp"

// Parameter gradients, the setting of arXiv 2410.09397: scores A1 X A2^T, values A3 Y.

namespace cobble::detail {

/// Q = A1 X and V = A3 Y.
void projection_phases(const PlanData& plan, const PhaseConsumer& consume);

/// All of it: the projections, forward, backward with dQ and dV folded into slices of dX and dY, and the slices added
/// up in order.
void parameter_gradient_phases(const PlanData& plan, const PhaseConsumer& consume);

/// Slices of dX, and of dY, that a head needs.
struct SliceCounts {
  std::int64_t score_weights = 1;
  std::int64_t value_weights = 1;
};
SliceCounts slice_counts(const PlanData& plan) noexcept;

WalkTraffic parameter_gradients_traffic(const PlanData& plan);

}  // namespace cobble::detail
