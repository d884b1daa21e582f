#pragma once

#include "plan/plan_data.hpp"

// The materialize schedule: Algorithm 6 of arXiv 2410.09397 for scores that are stored on the pattern alone. One matrix
// product at a time, each with tiles of its own; features pass in chunks, so that any fast memory from a few words up
// will do. Heads follow one another, because the store holds the pairs of one.

namespace cobble::detail {

/// For each head: S and the row statistics, then O = P V.
void materialize_forward(const PlanData& plan, const PhaseConsumer& consume);

/// delta; for each head P, then dS, then dQ, dV and dK. For parameter gradients dQ and dV are folded into slices of dX
/// and dY panel by panel, and dK is left out.
void materialize_backward(const PlanData& plan, const PhaseConsumer& consume);

}  // namespace cobble::detail
