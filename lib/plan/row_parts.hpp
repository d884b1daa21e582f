#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/tile_list.hpp"

namespace cobble::detail {

struct PlanData;
enum class Product : std::uint8_t;

/// A row panel with so many pairs that several tasks share it: parts of its tiles, each summed up in a slot of its own.
/// At the end the slots are put together in their order, so that results depend on the plan, not on the threads.
struct SharedPanel {
  std::int64_t panel = 0;
  std::vector<std::int64_t> tile_begins = {0};  ///< parts + 1, of the panel's tiles
  std::int64_t first_slot = 0;

  std::int64_t parts() const noexcept { return static_cast<std::int64_t>(tile_begins.size()) - 1; }
};

/// Those of a pattern, ascending.
struct SharedPanels {
  std::vector<SharedPanel> panels;
  std::int64_t slots = 0;

  /// Parts after the first ones.
  std::int64_t further_parts() const noexcept { return slots - static_cast<std::int64_t>(panels.size()); }
};

/// What a task takes of a row panel.
struct RowItem {
  std::int64_t panel = 0;
  std::span<const PlanTile> tiles;
  std::int64_t slot = -1;  ///< -1: all of it
  bool begins = true;      ///< or else goes on with the sums in the slot
};

/// Shares out the row panels of forward and of the one-pass backward that would keep one of plan.threads threads busy
/// when all others are done. Where products go panel by panel, each row panel has a slot for all of its tiles.
/// Parts hold at least `least_pairs`.
void share_rows(PlanData& plan, std::int64_t least_pairs);
/// Elements of a slot: sums of a row panel, and of forward its maxima and sums of exponentials.
std::int64_t row_slot_values(const PlanData& plan, Product product) noexcept;
/// Of all slots of all heads.
std::int64_t all_row_slot_values(const PlanData& plan, Product product) noexcept;

}  // namespace cobble::detail
