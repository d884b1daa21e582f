#pragma once

#include <span>

#include "plan/candidates.hpp"

namespace cobble::detail {

/// Fills in the seconds of each candidate's summary, by the plan's cost model and what a sample of row panels holds,
/// and unless it has been counted its traffic.
void estimate(const PlanData& plan, const PlanOptions& options, std::span<CandidatePlan> candidates);

}  // namespace cobble::detail
