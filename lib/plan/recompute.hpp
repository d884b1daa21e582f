#pragma once

#include "plan/schedules.hpp"

// The recompute schedule: panels of query rows are kept whole in fast memory while keys and values stream past; scores
// are never written to slow memory (FlashAttention, arXiv 2205.14135; section 5 of arXiv 2410.09397).

namespace cobble::detail {

/// One phase; a task is a row panel of a query head.
void recompute_forward(const PlanData& plan, const PhaseConsumer& consume);

/// One pass over rows with the gradients of the keys beside, or two passes, as the plan says.
void recompute_backward(const PlanData& plan, const PhaseConsumer& consume);

/// Two passes, each panel's dQ and dV folded into slices of dX and dY; dK is not computed.
void recompute_folded_backward(const PlanData& plan, const PhaseConsumer& consume);

}  // namespace cobble::detail
