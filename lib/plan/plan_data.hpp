#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cobble/plan.hpp"
#include "plan/tile_list.hpp"
#include "plan/walk.hpp"

namespace cobble::detail {

/// The products of a schedule, each with tiles of its own.
enum class Product : std::uint8_t {
  forward,             ///< recompute: S and O of a panel of rows
  backward_rows,       ///< recompute: dQ of a panel of rows
  backward_columns,    ///< recompute in two passes: dK and dV of a panel of keys
  scores,              ///< materialize: S, and P in backward
  grad_probabilities,  ///< materialize: dP, which becomes dS
  output,              ///< materialize: O = P V
  grad_query,          ///< materialize: dQ = dS K
  grad_key,            ///< materialize: dK = dS^T Q
  grad_value,          ///< materialize: dV = P^T dO
};
inline constexpr std::size_t kProductCount = 9;

/// Tiles of a product with the weights, Q = A1 X or V = A3 Y: rows x columns stay while chunks of features pass.
struct ProjectionTiles {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t features = 0;
  std::int64_t streamed = 0;
};

/// How one product walks: which tiles, how many features at a time, and how many tokens of the streamed side are in
/// fast memory together.
struct ProductTiles {
  int cut = -1;  ///< into PlanData::cuts; -1: the plan does not use the product
  std::int64_t features = 0;
  std::int64_t streamed = 0;  ///< 0: a tile's tokens are loaded together

  bool operator==(const ProductTiles&) const = default;
};

struct PlanData {
  Problem problem;
  PatternGrid patterns;
  Schedule schedule = Schedule::recompute;
  Regime regime = Regime::large_fast_memory;
  BackwardPasses backward_passes = BackwardPasses::one;
  bool parameter_gradients = false;  ///< gradients end in dX and dY, nothing else is written
  ProjectionTiles project_query = {};
  ProjectionTiles project_value = {};
  double split_point = 0;
  std::int64_t fast_memory_words = 0;
  std::int64_t total_pairs = 0;
  std::vector<PlanCandidate> candidates = {};
  std::array<ProductTiles, kProductCount> products = {};
  std::vector<TileCut> cuts = {};
  std::vector<std::vector<TileList>> tile_lists = {};  ///< [distinct pattern][cut]
  /// Of materialize: where the pairs of each row begin in a pattern's store; rows + 1 a distinct pattern.
  std::vector<std::vector<std::int64_t>> pair_offsets = {};
  std::vector<std::int64_t> pattern_pairs = {};  ///< of each distinct pattern
  std::int64_t largest_row_panel_store = 0;      ///< pair values of the row panel of backward_rows that stores most
  std::int64_t largest_group_store = 0;          ///< pair values of the key/value head that stores most
  std::int64_t largest_tile = 0;                 ///< places of the tile that takes most of them
  std::int64_t widest_tile = 0;                  ///< columns of the widest tile

  std::int64_t heads_per_group() const noexcept { return problem.query_heads / problem.key_value_heads; }
  const ProductTiles& product(Product product) const noexcept { return products[static_cast<std::size_t>(product)]; }
  const TileCut& cut(Product p) const noexcept { return cuts[static_cast<std::size_t>(product(p).cut)]; }
  std::size_t pattern_index(const Head& head) const noexcept {
    return static_cast<std::size_t>(patterns.index(head.batch, head.query));
  }
  const TileList& tiles(Product p, const Head& head) const noexcept {
    return tile_lists[pattern_index(head)][static_cast<std::size_t>(product(p).cut)];
  }
  std::int64_t row_panels(Product p) const noexcept;
  std::int64_t column_panels(Product p) const noexcept;
  /// The queries of a row panel, the keys of a column panel.
  Range row_range(Product p, std::int64_t row_panel) const noexcept;
  Range column_range(Product p, std::int64_t column_panel) const noexcept;
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
inline TileLayout tile_layout(Range rows, const PlanTile& tile) noexcept {
  return tile_layout(rows.size(), tile.columns().size(), tile.pairs);
}

/// Fills in the store sizes and pair offsets that the other members imply.
void measure_store(PlanData& plan);

/// Pair values that recompute's backward keeps between its row and its column phases, at most (unless one row panel
/// has more).
inline constexpr std::int64_t kPairStoreValues = std::int64_t{4} << 20;
/// How many pair values, of P and of dS each, outlive a task: those of a chunk, or all of a head when materialized.
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
