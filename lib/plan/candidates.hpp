#pragma once

#include <span>
#include <vector>

#include "cobble/model.hpp"
#include "plan/plan_data.hpp"

// What the planner may choose from. A candidate says how each product of its schedule is cut; realize() cuts.

namespace cobble::detail {

struct CandidatePlan {
  PlanCandidate summary;
  std::array<ProductTiles, kProductCount> products;
  std::vector<TileCut> cuts;
  bool lists = false;    ///< as PlanData has it
  bool gathers = false;  ///< likewise
  bool whole_panels = false;
  double backward_seconds = 0;  ///< on one thread, by the cost model

  void use(Product product, const TileCut& cut, std::int64_t features, std::int64_t streamed);
  ProductTiles& product(Product product) noexcept { return products[static_cast<std::size_t>(product)]; }
  const ProductTiles& product(Product product) const noexcept { return products[static_cast<std::size_t>(product)]; }
  const TileCut& cut(Product p) const noexcept { return cuts[static_cast<std::size_t>(product(p).cut)]; }
};

/// The candidates for a problem of `size` (one head, mean pairs). Empty when none fits fast memory.
std::vector<CandidatePlan> propose(const PlanData& plan, const AttentionSize& size, const PlanOptions& options);

/// Fills in the worst case of candidates: what their tiles would move if the pairs were spread evenly.
void predict_by_formula(const PlanData& plan, const AttentionSize& size, std::span<CandidatePlan> candidates);

/// Cuts the patterns for a candidate and counts its traffic.
PlanData realize(const PlanData& plan, CandidatePlan candidate, const AttentionSize& size, const PlanOptions& options);

}  // namespace cobble::detail
