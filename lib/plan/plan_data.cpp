#include "plan/plan_data.hpp"

#include <algorithm>

#include "core/checked.hpp"

namespace cobble::detail {

std::int64_t PlanData::row_panels() const noexcept { return divide_up(patterns.rows(), row_panel); }
std::int64_t PlanData::column_panels() const noexcept { return divide_up(patterns.columns(), column_panel); }

Range PlanData::row_range(std::int64_t row_panel_index) const noexcept {
  const std::int64_t begin = row_panel_index * row_panel;
  return {begin, std::min(begin + row_panel, patterns.rows())};
}

Range PlanData::column_range(std::int64_t column_panel_index) const noexcept {
  const std::int64_t begin = column_panel_index * column_panel;
  return {begin, std::min(begin + column_panel, patterns.columns())};
}

TileLayout tile_layout(std::int64_t rows, std::int64_t columns, std::int64_t pairs) noexcept {
  if (pairs < rows * columns / kSparseTileFill) return {true, 0, round_up(pairs, kPaddedElements)};
  const std::int64_t stride = round_up(columns, kPaddedElements);
  return {false, stride, rows * stride};
}

std::int64_t pair_store_values(const PlanData& plan) noexcept {
  return std::min(plan.largest_group_store, std::max(kPairStoreValues, plan.largest_row_panel_store));
}

ScratchSizes scratch_sizes(const PlanData& plan) noexcept {
  const std::int64_t head_dim = round_up(plan.problem.head_dim, kPaddedElements);
  const std::int64_t value_dim = round_up(plan.problem.value_dim, kPaddedElements);
  ScratchSizes sizes;
  sizes.row_panel_features = plan.row_panel * head_dim;
  sizes.row_panel_value_features = plan.row_panel * value_dim;
  sizes.column_panel_features = plan.column_panel * head_dim;
  sizes.column_panel_value_features = plan.column_panel * value_dim;
  sizes.row_panel = round_up(plan.row_panel, kPaddedElements);
  sizes.tile = plan.largest_tile;
  return sizes;
}

std::int64_t workspace_values(const PlanData& plan, std::int64_t threads) noexcept {
  const std::int64_t deltas = plan.problem.batch * plan.problem.query_heads * plan.patterns.rows();
  return threads * scratch_sizes(plan).total() + 2 * pair_store_values(plan) + deltas;
}

}  // namespace cobble::detail
