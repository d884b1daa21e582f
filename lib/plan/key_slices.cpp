#include <algorithm>
#include <map>

#include "core/checked.hpp"
#include "plan/plan_data.hpp"

namespace cobble::detail {
namespace {

/// A group's row panels in order, each with its pattern's index, and how many pairs stand before each.
struct Sequence {
  std::vector<std::int64_t> pairs_before = {0};
  std::vector<std::size_t> pattern_of_member;
};

Sequence sequence_of(const PlanData& plan, const std::vector<std::size_t>& members) {
  Sequence sequence;
  sequence.pattern_of_member = members;
  const auto cut = static_cast<std::size_t>(plan.product(Product::backward_rows).cut);
  for (const std::size_t pattern : members) {
    for (std::int64_t panel = 0; panel < plan.row_panels(Product::backward_rows); ++panel) {
      std::int64_t pairs = sequence.pairs_before.back();
      for (const PlanTile& tile : plan.tile_lists[pattern][cut].row(panel)) pairs += tile.pairs;
      sequence.pairs_before.push_back(pairs);
    }
  }
  return sequence;
}

KeySlices cut_sequence(const PlanData& plan, const Sequence& sequence, std::int64_t count) {
  KeySlices slices;
  slices.column_panels = plan.column_panels(Product::backward_rows);
  const std::int64_t total = sequence.pairs_before.back();
  const auto end = static_cast<std::int64_t>(sequence.pairs_before.size()) - 1;
  for (std::int64_t slice = 1; slice < count; ++slice) {
    const std::int64_t target = total / count * slice;
    const auto at = std::lower_bound(sequence.pairs_before.begin(), sequence.pairs_before.end(), target);
    const std::int64_t index = at - sequence.pairs_before.begin();
    if (index > slices.begins.back() && index < end) slices.begins.push_back(index);
  }
  slices.begins.push_back(end);
  slices.slots.assign(static_cast<std::size_t>(slices.count() * slices.column_panels), -1);
  std::vector<bool> claimed(static_cast<std::size_t>(slices.column_panels), false);
  const std::int64_t panels = plan.row_panels(Product::backward_rows);
  const auto cut = static_cast<std::size_t>(plan.product(Product::backward_rows).cut);
  for (std::int64_t slice = 0; slice < slices.count(); ++slice) {
    const auto row = slices.slots.begin() + slice * slices.column_panels;
    for (std::int64_t index = slices.begins[static_cast<std::size_t>(slice)];
         index < slices.begins[static_cast<std::size_t>(slice) + 1]; ++index) {
      const std::size_t pattern = sequence.pattern_of_member[static_cast<std::size_t>(index / panels)];
      for (const PlanTile& tile : plan.tile_lists[pattern][cut].row(index % panels)) {
        const std::int64_t panel = plan.key_panel(tile.column_begin);
        if (row[panel] >= 0) continue;
        row[panel] = claimed[static_cast<std::size_t>(panel)] ? static_cast<std::int32_t>(++slices.slot_count) : 0;
        claimed[static_cast<std::size_t>(panel)] = true;
      }
    }
  }
  // Keys that nobody attends to: their gradients are 0 all the same.
  for (std::int64_t panel = 0; panel < slices.column_panels; ++panel) {
    if (!claimed[static_cast<std::size_t>(panel)]) slices.slots[static_cast<std::size_t>(panel)] = 0;
  }
  return slices;
}

}  // namespace

std::int64_t PlanData::most_slices() const noexcept {
  std::int64_t most = 0;
  for (const KeySlices& slices : key_slices) most = std::max(most, slices.count());
  return most;
}

std::int64_t PlanData::most_slots() const noexcept {
  std::int64_t most = 0;
  for (const KeySlices& slices : key_slices) most = std::max(most, slices.slot_count);
  return most;
}

std::int64_t slot_values(const PlanData& plan, std::int64_t features) noexcept {
  if (plan.key_slices.empty()) return 0;
  return plan.column_range(Product::backward_rows, 0).size() * round_up(features, kPaddedElements);
}

std::int64_t all_slot_values(const PlanData& plan, std::int64_t features) noexcept {
  return plan.problem.batch * plan.problem.key_value_heads * plan.most_slots() * slot_values(plan, features);
}

void cut_slices(PlanData& plan, std::int64_t most) {
  const Problem& problem = plan.problem;
  const std::int64_t groups = problem.batch * problem.key_value_heads;
  // Tasks for many threads, and slots that take up little memory beside q, k, v, o and their gradients.
  constexpr std::int64_t kTasks = 32;
  constexpr std::int64_t kCheapValues = std::int64_t{1} << 24;
  const std::int64_t features = problem.head_dim + problem.value_dim;
  const std::int64_t tensors =
      2 * problem.batch * features *
      (problem.query_heads * plan.patterns.rows() + problem.key_value_heads * plan.patterns.columns());
  // A value of a slot is set to 0, written, read and added, which takes as long as a quarter of a pair's products.
  constexpr std::int64_t kPairsPerSlotValue = 8;
  const std::int64_t room = std::min(std::max(kCheapValues, tensors / 16), plan.total_pairs / kPairsPerSlotValue);
  most = std::clamp<std::int64_t>(divide_up(kTasks, groups), 1, std::max<std::int64_t>(most, 1));
  std::map<std::vector<std::size_t>, std::int32_t> known;
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    for (std::int64_t key_value = 0; key_value < problem.key_value_heads; ++key_value) {
      std::vector<std::size_t> members;
      for (std::int64_t member = 0; member < plan.heads_per_group(); ++member) {
        members.push_back(plan.pattern_index({batch, key_value * plan.heads_per_group() + member, key_value}));
      }
      const auto [entry, is_new] = known.try_emplace(members, static_cast<std::int32_t>(plan.key_slices.size()));
      plan.slices_of_group.push_back(entry->second);
      if (!is_new) continue;
      const Sequence sequence = sequence_of(plan, members);
      std::int64_t count = std::clamp<std::int64_t>(sequence.pairs_before.back() / kSlicePairs, 1, most);
      plan.key_slices.push_back(cut_sequence(plan, sequence, count));
      const auto too_large = [&] {
        const std::int64_t values = slot_values(plan, problem.head_dim) + slot_values(plan, problem.value_dim);
        return groups * plan.key_slices.back().slot_count * values > room;
      };
      while (count > 1 && too_large()) {
        count = divide_up(count, 2);
        plan.key_slices.back() = cut_sequence(plan, sequence, count);
      }
    }
  }
}

}  // namespace cobble::detail
