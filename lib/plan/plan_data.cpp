#include "plan/plan_data.hpp"

#include <algorithm>
#include <cmath>

#include "core/checked.hpp"

namespace cobble::detail {
namespace {

Range panel_range(std::int64_t panel, std::int64_t height, std::int64_t size) noexcept {
  return {panel * height, std::min((panel + 1) * height, size)};
}

/// The largest number of columns that a tile of the plan spans.
std::int64_t widest_tile(const PlanData& plan) noexcept {
  std::int64_t widest = 0;
  for (const std::vector<TileList>& lists : plan.tile_lists) {
    for (const TileList& list : lists) {
      for (const PlanTile& tile : list.tiles) widest = std::max(widest, plan.width(tile));
    }
  }
  return widest;
}

std::int64_t largest_tile(const PlanData& plan) noexcept {
  std::int64_t largest = 0;
  for (const std::vector<TileList>& lists : plan.tile_lists) {
    for (std::size_t cut = 0; cut < lists.size(); ++cut) {
      const std::int64_t height = plan.cuts[cut].row_panel;
      const TileList& list = lists[cut];
      for (std::size_t panel = 0; panel + 1 < list.row_offsets.size(); ++panel) {
        const auto index = static_cast<std::int64_t>(panel);
        const Range rows = panel_range(index, height, plan.patterns.rows());
        for (const PlanTile& tile : list.row(index)) {
          const std::int64_t width = plan.width(tile);
          const TileLayout layout = tile_layout(rows.size(), width, tile.pairs, plan.lists);
          largest = std::max(largest, layout.values);
          if (plan.gathers) largest = std::max(largest, width * round_up(rows.size(), kPaddedElements));
        }
      }
    }
  }
  return largest;
}

}  // namespace

std::int64_t PlanData::row_panels(Product p) const noexcept { return divide_up(patterns.rows(), cut(p).row_panel); }
std::int64_t PlanData::column_panels(Product p) const noexcept {
  return gathers ? std::min<std::int64_t>(patterns.columns(), 1) : divide_up(patterns.columns(), cut(p).column_panel);
}
Range PlanData::row_range(Product p, std::int64_t row_panel) const noexcept {
  return panel_range(row_panel, cut(p).row_panel, patterns.rows());
}
Range PlanData::column_range(Product p, std::int64_t column_panel) const noexcept {
  if (gathers) return {0, patterns.columns()};
  return panel_range(column_panel, cut(p).column_panel, patterns.columns());
}

TileLayout tile_layout(std::int64_t rows, std::int64_t columns, std::int64_t pairs, bool lists) noexcept {
  if (pairs < rows * columns / (lists ? 1 : kSparseTileFill)) return {true, round_up(pairs, kPaddedElements)};
  return {false, columns * round_up(rows, kPaddedElements)};
}

double stored_share(const Problem& problem, Operand operand) noexcept {
  const auto share = [](double entries, std::int64_t features) {
    return entries > 0 ? entries / static_cast<double>(features) : 1.0;
  };
  switch (operand) {
    case Operand::query:
    case Operand::grad_query: return share(problem.query_entries, problem.head_dim);
    case Operand::key:
    case Operand::grad_key: return share(problem.key_entries, problem.head_dim);
    case Operand::value:
    case Operand::grad_value: return share(problem.value_entries, problem.value_dim);
    default: return 1;
  }
}

std::int64_t moved_words(const PlanData& plan, const Block& block) noexcept {
  const double share = stored_share(plan.problem, block.operand);
  return share == 1 ? words(block) : std::llround(static_cast<double>(words(block)) * share);
}

void measure_store(PlanData& plan) {
  plan.largest_tile = largest_tile(plan);
  plan.widest_tile = widest_tile(plan);
  if (plan.schedule == Schedule::materialize) {
    for (const Pattern& pattern : plan.patterns.patterns()) {
      std::vector<std::int64_t>& offsets = plan.pair_offsets.emplace_back();
      offsets.reserve(static_cast<std::size_t>(pattern.rows()) + 1);
      offsets.push_back(0);
      for (std::int64_t row = 0; row < pattern.rows(); ++row) {
        offsets.push_back(offsets.back() + pattern.pairs(row, row + 1));
      }
    }
  }
}

std::int64_t pair_store_values(const PlanData& plan) noexcept {
  if (plan.schedule != Schedule::materialize) return 0;
  return *std::max_element(plan.pattern_pairs.begin(), plan.pattern_pairs.end());
}

ScratchSizes scratch_sizes(const PlanData& plan) noexcept {
  std::int64_t rows = 0;
  for (const TileCut& cut : plan.cuts) rows = std::max(rows, cut.row_panel);
  rows = std::min(rows, plan.patterns.rows());
  std::int64_t chunk = 0;
  for (const ProductTiles& product : plan.products) chunk = std::max(chunk, product.features);
  // Recompute keeps whole rows; chunks concern only what it streams.
  if (plan.schedule == Schedule::recompute) chunk = std::max(plan.problem.head_dim, plan.problem.value_dim);
  const std::int64_t head_dim = round_up(std::min(chunk, plan.problem.head_dim), kPaddedElements);
  const std::int64_t value_dim = round_up(std::min(chunk, plan.problem.value_dim), kPaddedElements);
  ScratchSizes sizes;
  sizes.row_panel_features = rows * head_dim;
  sizes.row_panel_value_features = rows * value_dim;
  if (plan.schedule == Schedule::materialize) {  // delta takes rows of output and grad_output whole
    const std::int64_t delta_rows = std::min(plan.cut(Product::scores).row_panel, plan.patterns.rows());
    sizes.row_panel_value_features =
        std::max(sizes.row_panel_value_features, delta_rows * round_up(plan.problem.value_dim, kPaddedElements));
  }
  sizes.transposed_features = round_up(rows, kPaddedElements) * head_dim;
  sizes.transposed_value_features = round_up(rows, kPaddedElements) * value_dim;
  sizes.column_panel_features = plan.widest_tile * head_dim;
  sizes.column_panel_value_features = plan.widest_tile * value_dim;
  sizes.row_panel = round_up(rows, kPaddedElements);
  sizes.tile = plan.largest_tile;
  return sizes;
}

std::int64_t bf16_scratch(const PlanData& plan) noexcept {
  return plan.largest_tile + round_up(plan.problem.head_dim, kPaddedElements) +
         round_up(plan.problem.value_dim, kPaddedElements);
}

std::int64_t workspace_values(const PlanData& plan, std::int64_t threads) noexcept {
  const std::int64_t deltas = plan.problem.batch * plan.problem.query_heads * plan.patterns.rows();
  const std::int64_t slots =
      all_slot_values(plan, plan.problem.head_dim) + all_slot_values(plan, plan.problem.value_dim);
  const std::int64_t row_slots =
      std::max(all_row_slot_values(plan, Product::forward), all_row_slot_values(plan, Product::backward_rows));
  return threads * scratch_sizes(plan).total() + 2 * pair_store_values(plan) + slots + row_slots + deltas;
}

}  // namespace cobble::detail
