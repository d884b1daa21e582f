#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cobble/plan.hpp"
#include "plan/walk.hpp"

namespace cobble::detail {

/// The non-empty tiles of one pattern, row panel by row panel.
struct TileList {
  std::vector<std::int64_t> row_offsets;  ///< row panels + 1
  std::vector<PatternTile> tiles;
  std::int64_t pairs = 0;

  std::span<const PatternTile> row(std::int64_t row_panel) const noexcept {
    const auto first = static_cast<std::size_t>(row_offsets[static_cast<std::size_t>(row_panel)]);
    const auto last = static_cast<std::size_t>(row_offsets[static_cast<std::size_t>(row_panel) + 1]);
    return std::span(tiles).subspan(first, last - first);
  }
};

struct PlanData {
  Problem problem;
  PatternGrid patterns;
  Schedule schedule = Schedule::recompute;
  Regime regime = Regime::large_fast_memory;
  double split_point = 0;
  std::int64_t fast_memory_words = 0;
  std::int64_t row_panel = 0;
  std::int64_t column_panel = 0;
  std::int64_t total_pairs = 0;
  std::vector<TileList> tile_lists;          ///< one a distinct pattern, as patterns.patterns()
  std::int64_t largest_row_panel_store = 0;  ///< pair values of the row panel that stores most of them
  std::int64_t largest_group_store = 0;      ///< pair values of the key/value head that stores most of them
  std::int64_t largest_tile = 0;             ///< places of the tile that takes most of them

  std::int64_t row_panels() const noexcept;
  std::int64_t column_panels() const noexcept;
  std::int64_t heads_per_group() const noexcept { return problem.query_heads / problem.key_value_heads; }
  const TileList& tiles_of(const Head& head) const noexcept {
    return tile_lists[static_cast<std::size_t>(patterns.index(head.batch, head.query))];
  }
  /// The queries of a row panel, the keys of a column panel.
  Range row_range(std::int64_t row_panel_index) const noexcept;
  Range column_range(std::int64_t column_panel_index) const noexcept;
};

/// Rows of scratch panels start at multiples of this many elements, so that their alignment, and with it every bit of
/// a result, does not depend on where a caller's memory lies.
inline constexpr std::int64_t kPaddedElements = 16;

/// A tile with fewer than one pair in kSparseTileFill places keeps its pairs alone, one after another; any other is
/// held densely, its rows row_stride() apart.
inline constexpr std::int64_t kSparseTileFill = 8;

/// Where the values of a tile of pairs stand.
struct TileLayout {
  bool compact = false;
  std::int64_t row_stride = 0;  ///< of a dense tile
  std::int64_t values = 0;      ///< how many places it takes
};
TileLayout tile_layout(std::int64_t rows, std::int64_t columns, std::int64_t pairs) noexcept;

/// Pair values that backward keeps between its row and its column phases, at most (unless one row panel has more).
inline constexpr std::int64_t kPairStoreValues = std::int64_t{4} << 20;
/// How many pair values backward's chunks need.
std::int64_t pair_store_values(const PlanData& plan) noexcept;

/// Elements of scratch memory that a task needs, panel by panel.
struct ScratchSizes {
  std::int64_t row_panel_features = 0;           ///< of a panel of queries
  std::int64_t row_panel_value_features = 0;     ///< of a panel of outputs
  std::int64_t column_panel_features = 0;        ///< of a panel of keys
  std::int64_t column_panel_value_features = 0;  ///< of a panel of values
  std::int64_t row_panel = 0;                    ///< one value a row
  std::int64_t tile = 0;

  /// query, grad_query; output, grad_output; key, grad_key; value, grad_value; four row statistics; two tiles.
  std::int64_t total() const noexcept {
    return 2 * (row_panel_features + row_panel_value_features + column_panel_features + column_panel_value_features) +
           4 * row_panel + 2 * tile;
  }
};
ScratchSizes scratch_sizes(const PlanData& plan) noexcept;

/// Elements that forward and backward need beyond their tensors on `threads` threads, at most.
std::int64_t workspace_values(const PlanData& plan, std::int64_t threads) noexcept;

}  // namespace cobble::detail
