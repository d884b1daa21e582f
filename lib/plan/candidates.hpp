#pragma once

#include <vector>

#include "cobble/model.hpp"
#include "plan/plan_data.hpp"

// What the planner may choose from. A candidate says how each product of its schedule is cut; realize() cuts.

namespace cobble::detail {

struct CandidatePlan {
  PlanCandidate summary;
  std::array<ProductTiles, kProductCount> products;
  std::vector<TileCut> cuts;

  void use(Product product, const TileCut& cut, std::int64_t features, std::int64_t streamed);
};

/// The candidates for a problem of `size` (one head, mean pairs). Empty when none fits fast memory.
std::vector<CandidatePlan> propose(const PlanData& plan, const AttentionSize& size, const PlanOptions& options);

/// Cuts the patterns for a candidate, counts its traffic and estimates its time.
PlanData realize(const PlanData& plan, CandidatePlan candidate, const AttentionSize& size, const PlanOptions& options);

}  // namespace cobble::detail
