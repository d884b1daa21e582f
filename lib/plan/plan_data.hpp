#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cobble/plan.hpp"
#include "plan/row_parts.hpp"
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
  /// Of recompute: a tile's keys are in fast memory and its rows pass by, not the other way round.
  bool rows_pass = false;
  /// Of recompute: all row panels go through one column panel before the next, so that a cache behind fast memory can
  /// keep its keys; what rows have summed up is in slots between.
  bool panel_by_panel = false;

  bool operator==(const ProductTiles&) const = default;
};

/// How the one-pass backward of one key/value head is shared out: the row items of its query heads, one after another,
/// are cut into slices of about as many pairs, each of which sums up its own gradients of keys. The first slice that
/// touches a column panel does so in the caller's memory, every other in a slot of its own, and at the end the slots
/// are added in the order of the slices. So results depend on the plan, not on the threads.
struct KeySlices {
  std::vector<std::int64_t> members = {0};  ///< query heads of the group + 1: where the row items of each begin
  std::vector<std::int64_t> begins = {0};   ///< slices + 1, of the row items
  std::int64_t column_panels = 0;
  std::vector<std::int32_t> slots = {};  ///< [slice][column panel]: -1 untouched, 0 the caller's memory, else a slot
  std::int64_t slot_count = 0;           ///< slots 1 to slot_count

  std::int64_t count() const noexcept { return static_cast<std::int64_t>(begins.size()) - 1; }
  std::int64_t slot(std::int64_t slice, std::int64_t column_panel) const noexcept {
    return slots[static_cast<std::size_t>(slice * column_panels + column_panel)];
  }
  /// The slice that the blocks of a column panel's sums name: 0 in the caller's memory.
  std::int64_t named_slice(std::int64_t slice, std::int64_t column_panel) const noexcept {
    return slot(slice, column_panel) == 0 ? 0 : slice;
  }
};

struct PlanData {
  Problem problem;
  PatternGrid patterns;
  Schedule schedule = Schedule::recompute;
  Regime regime = Regime::large_fast_memory;
  BackwardPasses backward_passes = BackwardPasses::one;
  bool lists = false;                ///< tiles are too sparse for dense kernels: all but full ones hold lists of pairs
  bool gathers = false;              ///< tiles hold those columns of a row panel that have a pair, side by side
  bool whole_panels = false;         ///< panels of compressed keys and values are written out before products take them
  bool parameter_gradients = false;  ///< gradients end in dX and dY, nothing else is written
  ProjectionTiles project_query = {};
  ProjectionTiles project_value = {};
  double split_point = 0;
  std::int64_t fast_memory_words = 0;
  std::int64_t threads = 1;  ///< that backward is cut for
  std::int64_t total_pairs = 0;
  CostModel cost_model = {};
  std::optional<Reordering> reordering = {};       ///< of `patterns` against the caller's
  std::optional<PatternGrid> given_patterns = {};  ///< the caller's, where tokens are reordered
  std::vector<PlanCandidate> candidates = {};
  std::array<ProductTiles, kProductCount> products = {};
  std::vector<TileCut> cuts = {};
  std::vector<std::vector<TileList>> tile_lists = {};  ///< [distinct pattern][cut]
  /// Of materialize: where the pairs of each row begin in a pattern's store; rows + 1 a distinct pattern.
  std::vector<std::vector<std::int64_t>> pair_offsets = {};
  std::vector<std::int64_t> pattern_pairs = {};    ///< of each distinct pattern
  std::vector<KeySlices> key_slices = {};          ///< of the one-pass backward: [distinct group of patterns]
  std::vector<std::int32_t> slices_of_group = {};  ///< [batch x key/value heads]: into key_slices
  /// [product][distinct pattern]; where it is empty no row panel of the product is shared.
  std::array<std::vector<SharedPanels>, kProductCount> shared_rows = {};
  std::int64_t largest_tile = 0;  ///< places of the tile that takes most of them
  std::int64_t widest_tile = 0;   ///< columns of the widest tile

  std::int64_t heads_per_group() const noexcept { return problem.query_heads / problem.key_value_heads; }
  const ProductTiles& product(Product product) const noexcept { return products[static_cast<std::size_t>(product)]; }
  const TileCut& cut(Product p) const noexcept { return cuts[static_cast<std::size_t>(product(p).cut)]; }
  std::size_t pattern_index(const Head& head) const noexcept {
    return static_cast<std::size_t>(patterns.index(head.batch, head.query));
  }
  const TileList& tiles(Product p, const Head& head) const noexcept {
    return tile_lists[pattern_index(head)][static_cast<std::size_t>(product(p).cut)];
  }
  const KeySlices& slices(const Head& head) const noexcept {
    const std::int64_t group = head.batch * problem.key_value_heads + head.key_value;
    return key_slices[static_cast<std::size_t>(slices_of_group[static_cast<std::size_t>(group)])];
  }
  const SharedPanels* shared(Product product, const Head& head) const noexcept;
  /// What tasks take of a head's rows: all row panels, of a shared one the first part, and then all further parts.
  std::int64_t row_items(Product product, const Head& head) const noexcept;
  RowItem row_item(Product product, const Head& head, std::int64_t index) const noexcept;
  /// Of the head that has most of them.
  std::int64_t most_row_items(Product product) const noexcept;
  std::int64_t most_row_slots(Product product) const noexcept;
  std::int64_t most_shared_panels(Product product) const noexcept;
  /// Of the group that has most slices, and most slots.
  std::int64_t most_slices() const noexcept;
  std::int64_t most_slots() const noexcept;
  /// How many columns a tile holds side by side.
  std::int64_t width(const PlanTile& tile) const noexcept {
    return gathers ? tile.touched_columns : tile.columns().size();
  }
  /// The column panel of backward_rows that a tile or panel belongs to which begins with this column.
  std::int64_t key_panel(std::int64_t column) const noexcept {
    return gathers ? 0 : column / cut(Product::backward_rows).column_panel;
  }
  std::int64_t row_panels(Product p) const noexcept;
  std::int64_t column_panels(Product p) const noexcept;
  /// The queries of a row panel, the keys of a column panel; where tiles gather, all keys are one panel.
  Range row_range(Product p, std::int64_t row_panel) const noexcept;
  Range column_range(Product p, std::int64_t column_panel) const noexcept;
};

/// Rows of panels in scratch memory, and the keys of dense tiles, are padded to a multiple of this many elements.
inline constexpr std::int64_t kPaddedElements = 16;

/// A tile with fewer than one pair in kSparseTileFill places, or any that is not full in a plan of lists, keeps its
/// pairs alone, one after another; any other may be held densely, keys x queries.
inline constexpr std::int64_t kSparseTileFill = 8;

/// How the values of a tile of pairs may stand.
struct TileLayout {
  bool compact = false;
  std::int64_t values = 0;  ///< how many places they take at most
};
TileLayout tile_layout(std::int64_t rows, std::int64_t columns, std::int64_t pairs, bool lists) noexcept;

/// Whether the pairs of a tile that is not full cost less in a list than the `places` of the dense tile from the first
/// to the last pair of each row.
constexpr bool is_cheaper_listed(std::int64_t pairs, std::int64_t places) noexcept {
  constexpr double kPlacesPerPair = 2.25;  // measured medians of forward and backward
  return kPlacesPerPair * static_cast<double>(pairs) < static_cast<double>(places);
}

/// Whether products of lists of pairs take the entries of K or V, of whose features a share is stored, where they are;
/// or else keys in full.
constexpr bool lists_take_entries(double share, bool in_blocks) noexcept {
  constexpr double kMostShare = 0.25;  // measured
  return !in_blocks && share <= kMostShare;
}

/// What share of the features of Q, K and V, and of their gradients, is stored; 1 of any other operand.
double stored_share(const Problem& problem, Operand operand) noexcept;
/// How many words of a block move: entries of what is compressed.
std::int64_t moved_words(const PlanData& plan, const Block& block) noexcept;

/// Fills in the sizes and pair offsets that the other members imply.
void measure_store(PlanData& plan);
/// How many pair values, of P and of dS each, outlive a task: all of a head when materialized.
std::int64_t pair_store_values(const PlanData& plan) noexcept;

/// A task is long beside what it costs to start one, by the cost model.
inline constexpr double kLeastTaskSeconds = 1e-4;
/// How many pairs make such a task, where backward takes `seconds` for all pairs on one thread.
std::int64_t least_task_pairs(const PlanData& plan, double seconds) noexcept;

/// The time of so many equal tasks, `seconds` in all on one thread.
double seconds_of_tasks(double seconds, std::int64_t tasks, std::int64_t threads) noexcept;
/// The time that `values` of slots take on one thread.
double slot_seconds(const CostModel& cost, double values, std::int64_t element_bytes) noexcept;

/// Cuts the one-pass backward, which takes `seconds` on one thread, into slices of at least kLeastTaskSeconds each: as
/// many as plan.threads threads get done with soonest, slots included, and more where these cost next to nothing; so
/// few that slots stay small beside the tensors.
void cut_slices(PlanData& plan, double seconds, std::int64_t element_bytes);
/// One slice for each key/value head.
void leave_whole(PlanData& plan);
/// Elements of one slot for dK or dV of a column panel with so many features, and of all slots of all heads.
std::int64_t slot_values(const PlanData& plan, std::int64_t features) noexcept;
std::int64_t all_slot_values(const PlanData& plan, std::int64_t features) noexcept;

/// Elements of scratch memory that a task needs, panel by panel.
struct ScratchSizes {
  std::int64_t row_panel_features = 0;           ///< of a panel of queries
  std::int64_t row_panel_value_features = 0;     ///< of a panel of outputs
  std::int64_t transposed_features = 0;          ///< of a transposed panel of queries
  std::int64_t transposed_value_features = 0;    ///< of a transposed panel of outputs
  std::int64_t column_panel_features = 0;        ///< of a panel of keys
  std::int64_t column_panel_value_features = 0;  ///< of a panel of values
  std::int64_t row_panel = 0;                    ///< one value a row
  std::int64_t tile = 0;

  /// query, grad_query; output, grad_output; both transposed; key, grad_key; value, grad_value; six row statistics; two
  /// tiles.
  std::int64_t total() const noexcept {
    return 2 * (row_panel_features + row_panel_value_features + column_panel_features + column_panel_value_features) +
           transposed_features + transposed_value_features + 6 * row_panel + 2 * tile;
  }
};
ScratchSizes scratch_sizes(const PlanData& plan) noexcept;
/// What bfloat16 takes beyond that: a tile, one more row of keys and one of values.
std::int64_t bf16_scratch(const PlanData& plan) noexcept;

/// Elements that forward and backward need beyond their tensors on `threads` threads, at most.
std::int64_t workspace_values(const PlanData& plan, std::int64_t threads) noexcept;

}  // namespace cobble::detail
