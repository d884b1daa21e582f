#include "plan/row_parts.hpp"

#include <algorithm>

#include "core/checked.hpp"
#include "plan/plan_data.hpp"

namespace cobble::detail {
namespace {

/// A panel's tiles in parts of about as many pairs, at least `least` of them.
SharedPanel cut_panel(std::int64_t panel, std::span<const PlanTile> tiles, std::int64_t pairs, std::int64_t least) {
  SharedPanel shared;
  shared.panel = panel;
  const std::int64_t parts = pairs / least;
  std::int64_t before = 0;
  for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
    before += tiles[tile].pairs;
    const bool last = tile + 1 == tiles.size();
    if (last || before >= pairs / parts * shared.parts() + pairs / parts) {
      shared.tile_begins.push_back(static_cast<std::int64_t>(tile) + 1);
    }
  }
  return shared;
}

SharedPanels share(const PlanData& plan, Product product, std::size_t pattern, std::int64_t least) {
  SharedPanels shared;
  const TileList& list = plan.tile_lists[pattern][static_cast<std::size_t>(plan.product(product).cut)];
  for (std::int64_t panel = 0; panel < plan.row_panels(product); ++panel) {
    const std::span<const PlanTile> tiles = list.row(panel);
    std::int64_t pairs = 0;
    for (const PlanTile& tile : tiles) pairs += tile.pairs;
    if (pairs < 2 * least) continue;
    SharedPanel parts = cut_panel(panel, tiles, pairs, least);
    if (parts.parts() < 2) continue;
    parts.first_slot = shared.slots;
    shared.slots += parts.parts();
    shared.panels.push_back(std::move(parts));
  }
  return shared;
}

SharedPanels slot_each(const PlanData& plan, Product product, std::size_t pattern) {
  SharedPanels shared;
  const TileList& list = plan.tile_lists[pattern][static_cast<std::size_t>(plan.product(product).cut)];
  for (std::int64_t panel = 0; panel < plan.row_panels(product); ++panel) {
    shared.panels.push_back({panel, {0, std::ssize(list.row(panel))}, shared.slots++});
  }
  return shared;
}

/// The largest count of any pattern; 0 where nothing is shared.
template <class SharedRows, class Count>
std::int64_t most(const SharedRows& shared_rows, Product product, Count count) noexcept {
  std::int64_t largest = 0;
  for (const SharedPanels& panels : shared_rows[static_cast<std::size_t>(product)]) {
    largest = std::max<std::int64_t>(largest, count(panels));
  }
  return largest;
}

}  // namespace

void share_rows(PlanData& plan, std::int64_t least_pairs) {
  // A task is to be short beside the whole, and long beside what its slot costs.
  constexpr std::int64_t kTasksPerThread = 8;
  const std::int64_t least = std::max(least_pairs, plan.total_pairs / (kTasksPerThread * plan.threads));
  if (plan.schedule != Schedule::recompute) return;
  for (const Product product : {Product::forward, Product::backward_rows}) {
    const bool two_passes = product == Product::backward_rows && plan.backward_passes == BackwardPasses::two;
    if (two_passes || plan.product(product).rows_pass) continue;
    const bool panel_by_panel = plan.product(product).panel_by_panel;
    if (plan.threads < 2 && !panel_by_panel) continue;
    std::vector<SharedPanels>& shared = plan.shared_rows[static_cast<std::size_t>(product)];
    for (std::size_t pattern = 0; pattern < plan.tile_lists.size(); ++pattern) {
      shared.push_back(panel_by_panel ? slot_each(plan, product, pattern) : share(plan, product, pattern, least));
    }
  }
}

const SharedPanels* PlanData::shared(Product product, const Head& head) const noexcept {
  const std::vector<SharedPanels>& all = shared_rows[static_cast<std::size_t>(product)];
  return all.empty() ? nullptr : &all[pattern_index(head)];
}

std::int64_t PlanData::row_items(Product product, const Head& head) const noexcept {
  const SharedPanels* const panels = shared(product, head);
  return row_panels(product) + (panels == nullptr ? 0 : panels->further_parts());
}

RowItem PlanData::row_item(Product product, const Head& head, std::int64_t index) const noexcept {
  const TileList& list = tiles(product, head);
  const SharedPanels* const all = shared(product, head);
  if (this->product(product).panel_by_panel) return {index, list.row(index), index};
  const std::int64_t panels = row_panels(product);
  std::int64_t further = index - panels;
  for (std::size_t i = 0; all != nullptr && i < all->panels.size(); ++i) {
    const SharedPanel& panel = all->panels[i];
    const bool first = panel.panel == index;
    if (!first && (further < 0 || further >= panel.parts() - 1)) {
      further -= further < 0 ? 0 : panel.parts() - 1;
      continue;
    }
    const auto part = static_cast<std::size_t>(first ? 0 : further + 1);
    const auto begin = static_cast<std::size_t>(panel.tile_begins[part]);
    const auto end = static_cast<std::size_t>(panel.tile_begins[part + 1]);
    return {panel.panel, list.row(panel.panel).subspan(begin, end - begin),
            panel.first_slot + static_cast<std::int64_t>(part)};
  }
  return {index, list.row(index)};
}

std::int64_t PlanData::most_row_items(Product product) const noexcept {
  return row_panels(product) +
         most(shared_rows, product, [](const SharedPanels& panels) { return panels.further_parts(); });
}

std::int64_t PlanData::most_row_slots(Product product) const noexcept {
  return most(shared_rows, product, [](const SharedPanels& panels) { return panels.slots; });
}

std::int64_t PlanData::most_shared_panels(Product product) const noexcept {
  return most(shared_rows, product, [](const SharedPanels& panels) { return std::ssize(panels.panels); });
}

std::int64_t row_slot_values(const PlanData& plan, Product product) noexcept {
  const std::int64_t rows = std::min(plan.cut(product).row_panel, plan.patterns.rows());
  if (product == Product::forward) {
    return rows * round_up(plan.problem.value_dim, kPaddedElements) + 2 * round_up(rows, kPaddedElements);
  }
  return rows * round_up(plan.problem.head_dim, kPaddedElements);
}

std::int64_t all_row_slot_values(const PlanData& plan, Product product) noexcept {
  const std::int64_t slots = plan.most_row_slots(product);
  return slots == 0 ? 0 : plan.problem.batch * plan.problem.query_heads * slots * row_slot_values(plan, product);
}

}  // namespace cobble::detail
