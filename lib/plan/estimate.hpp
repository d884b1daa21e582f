#pragma once

#include "plan/candidates.hpp"

namespace cobble::detail {

/// Fills in the seconds of a candidate's summary, by the plan's cost model and what a sample of row panels holds, and
/// unless it has been counted its traffic.
void estimate(const PlanData& plan, const PlanOptions& options, CandidatePlan& candidate);

}  // namespace cobble::detail
