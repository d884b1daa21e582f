#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/checked.hpp"
#include "plan/plan_data.hpp"

namespace cobble::detail {
namespace {

/// A group's row items in order, and how many pairs stand before each.
struct Sequence {
  std::vector<std::int64_t> members = {0};
  std::vector<std::int64_t> pairs_before = {0};
  std::vector<std::span<const PlanTile>> tiles;
};

Sequence sequence_of(const PlanData& plan, const Head& group) {
  Sequence sequence;
  for (std::int64_t member = 0; member < plan.heads_per_group(); ++member) {
    const Head head = {group.batch, group.query + member, group.key_value};
    for (std::int64_t index = 0; index < plan.row_items(Product::backward_rows, head); ++index) {
      sequence.tiles.push_back(plan.row_item(Product::backward_rows, head, index).tiles);
      std::int64_t pairs = sequence.pairs_before.back();
      for (const PlanTile& tile : sequence.tiles.back()) pairs += tile.pairs;
      sequence.pairs_before.push_back(pairs);
    }
    sequence.members.push_back(std::ssize(sequence.tiles));
  }
  return sequence;
}

KeySlices cut_sequence(const PlanData& plan, const Sequence& sequence, std::int64_t count) {
  KeySlices slices;
  slices.members = sequence.members;
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
  for (std::int64_t slice = 0; slice < slices.count(); ++slice) {
    const auto row = slices.slots.begin() + slice * slices.column_panels;
    for (std::int64_t index = slices.begins[static_cast<std::size_t>(slice)];
         index < slices.begins[static_cast<std::size_t>(slice) + 1]; ++index) {
      for (const PlanTile& tile : sequence.tiles[static_cast<std::size_t>(index)]) {
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

/// What slices cost, for one group.
struct SliceCosts {
  double seconds = 0;  ///< of the group's backward on one thread
  double seconds_per_value = 0;
  std::int64_t values_per_slot = 0;
  std::int64_t most_values = 0;
  std::int64_t threads = 1;      ///< for one group
  std::int64_t least_pairs = 1;  ///< of a slice
  std::int64_t most = 1;         ///< slices
};

KeySlices best_slices(const PlanData& plan, const Sequence& sequence, const SliceCosts& costs) {
  const std::int64_t most = std::clamp<std::int64_t>(sequence.pairs_before.back() / costs.least_pairs, 1, costs.most);
  std::vector<std::int64_t> counts;
  for (std::int64_t count = most; count > 1; count = divide_up(count, 2)) counts.push_back(count);
  for (const std::int64_t count : {costs.threads, 2 * costs.threads}) {
    if (count > 1 && count <= most) counts.push_back(count);
  }
  std::optional<KeySlices> best;
  double best_seconds = costs.seconds;
  for (const std::int64_t count : counts) {
    KeySlices slices = cut_sequence(plan, sequence, count);
    const std::int64_t values = slices.slot_count * costs.values_per_slot;
    if (values > costs.most_values) continue;
    const double slots = static_cast<double>(values) * costs.seconds_per_value;
    constexpr double kNextToNothing = 1.0 / 64;
    if (slots <= kNextToNothing * costs.seconds) return slices;
    const double seconds = seconds_of_tasks(costs.seconds + slots, slices.count(), costs.threads);
    if (seconds >= best_seconds) continue;
    best = std::move(slices);
    best_seconds = seconds;
  }
  return best ? std::move(*best) : cut_sequence(plan, sequence, 1);
}

/// Fills in the slices of every group; cut(sequence) once for each distinct one.
template <class Cut>
void cut_groups(PlanData& plan, Cut cut) {
  std::map<std::vector<std::size_t>, std::int32_t> known;
  for (std::int64_t batch = 0; batch < plan.problem.batch; ++batch) {
    for (std::int64_t key_value = 0; key_value < plan.problem.key_value_heads; ++key_value) {
      const Head group = {batch, key_value * plan.heads_per_group(), key_value};
      std::vector<std::size_t> members;
      for (std::int64_t member = 0; member < plan.heads_per_group(); ++member) {
        members.push_back(plan.pattern_index({batch, group.query + member, key_value}));
      }
      const auto [entry, is_new] = known.try_emplace(members, static_cast<std::int32_t>(plan.key_slices.size()));
      plan.slices_of_group.push_back(entry->second);
      if (is_new) plan.key_slices.push_back(cut(sequence_of(plan, group)));
    }
  }
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

std::int64_t least_task_pairs(const PlanData& plan, double seconds) noexcept {
  const auto pairs = static_cast<double>(plan.total_pairs);
  const double held = seconds > kLeastTaskSeconds ? pairs * kLeastTaskSeconds / seconds : pairs;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(held));
}

double seconds_of_tasks(double seconds, std::int64_t tasks, std::int64_t threads) noexcept {
  const std::int64_t some = std::max<std::int64_t>(tasks, 1);
  return seconds * static_cast<double>(divide_up(some, threads)) / static_cast<double>(some);
}

double slot_seconds(const CostModel& cost, double values, std::int64_t element_bytes) noexcept {
  // A value is written, read and added to another, which is read and written, past what caches hold.
  constexpr double kMovesPerValue = 5;
  return values * kMovesPerValue * static_cast<double>(element_bytes) / cost.bytes_per_second;
}

void leave_whole(PlanData& plan) {
  cut_groups(plan, [&plan](const Sequence& sequence) { return cut_sequence(plan, sequence, 1); });
}

void cut_slices(PlanData& plan, double seconds, std::int64_t element_bytes) {
  const Problem& problem = plan.problem;
  const std::int64_t groups = problem.batch * problem.key_value_heads;
  // Some tasks for each thread, and slots that take up little memory beside q, k, v, o and their gradients.
  constexpr std::int64_t kTasksPerThread = 8;
  constexpr std::int64_t kCheapValues = std::int64_t{1} << 24;
  const std::int64_t features = problem.head_dim + problem.value_dim;
  const std::int64_t tensors =
      2 * problem.batch * features *
      (problem.query_heads * plan.patterns.rows() + problem.key_value_heads * plan.patterns.columns());
  SliceCosts costs;
  costs.threads = divide_up(plan.threads, groups);
  costs.most = plan.threads == 1 ? 1 : std::max(divide_up(kTasksPerThread * plan.threads, groups), costs.threads);
  costs.seconds = seconds / static_cast<double>(groups);
  costs.seconds_per_value = slot_seconds(plan.cost_model, 1, element_bytes);
  costs.least_pairs = least_task_pairs(plan, seconds);
  costs.most_values = std::max(kCheapValues, tensors / 16) / groups;
  costs.values_per_slot = plan.column_range(Product::backward_rows, 0).size() *
                          (round_up(problem.head_dim, kPaddedElements) + round_up(problem.value_dim, kPaddedElements));
  cut_groups(plan, [&](const Sequence& sequence) { return best_slices(plan, sequence, costs); });
}

}  // namespace cobble::detail
