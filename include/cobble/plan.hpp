#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cobble/cost_model.hpp"
#include "cobble/model.hpp"
#include "cobble/pattern_grid.hpp"
#include "cobble/reorder.hpp"

// A Plan is made once for a pattern and reused for every layer, head and step.

namespace cobble {

/// The sizes of a problem that the pattern does not say.
struct Problem {
  std::int64_t head_dim = 64;        ///< d
  std::int64_t value_dim = 0;        ///< d_v; 0: as head_dim
  std::int64_t query_heads = 1;      ///< H_q
  std::int64_t key_value_heads = 0;  ///< H_kv, a divisor of H_q; 0: as query_heads
  std::int64_t batch = 1;
  std::optional<double> scale = {};  ///< of the scores; default 1 / sqrt(d)
  /// Entries that a token of Q, K and V stores on average where they are compressed; 0: all. with_entries() in
  /// compressed_attention.hpp counts them. They set Z_input, the split point and the traffic and time that candidates
  /// are expected to take. Tiles hold panels of queries and sums in full, whatever inputs store, so their sizes go by
  /// head_dim and value_dim. Inputs with other numbers of entries run all the same.
  double query_entries = 0;
  double key_entries = 0;
  double value_entries = 0;
  bool key_in_blocks = false;  ///< K or V is stored in BSR, whose entries products of scattered pairs do not take
  bool value_in_blocks = false;
};

enum class Schedule {
  automatic,
  recompute,   ///< keep a panel of rows whole, stream the other side, never store scores (FlashAttention's way)
  materialize  ///< store scores on the pattern, one product at a time (Algorithm 6 of arXiv 2410.09397)
};
std::string_view to_string(Schedule schedule) noexcept;

/// How recompute goes backward.
enum class BackwardPasses {
  automatic,
  one,  ///< five products a tile: a row panel's P and dS serve its dQ and the dK, dV of its keys
  two   ///< seven products: a pass over rows for dQ, a pass over keys for dK and dV; less traffic, more arithmetic
};
std::string_view to_string(BackwardPasses passes) noexcept;

/// Where tile sizes come from.
enum class TileSizes {
  hardware,  ///< panels that registers, vectors and cache lines like, within fast memory; the fastest candidate wins
  model      ///< the model's own sizes, to the word; the candidate with the least traffic wins
};

struct PlanOptions {
  Schedule schedule = Schedule::automatic;
  BackwardPasses backward_passes = BackwardPasses::automatic;
  TileSizes tile_sizes = TileSizes::hardware;
  bool parameter_gradients = false;    ///< backward is to give dX and dY (parameter_gradients.hpp), not dQ, dK, dV
  std::int64_t fast_memory_bytes = 0;  ///< 0: COBBLE_FAST_MEMORY, or half of one core's L2
  std::int64_t element_bytes = 4;      ///< of the compute type: fast memory in words = bytes / element_bytes
  std::int64_t row_panel = 0;          ///< of recompute; 0: chosen; otherwise rows of a panel
  std::int64_t column_panel = 0;       ///< of recompute; 0: chosen; otherwise columns of a panel
  /// That passes are to keep busy; 0: as many as the machine has cores. Candidates are compared, and sums are cut, for
  /// so many, and results depend on it in their last bits; they do not depend on how many threads then run.
  std::int64_t threads = 0;
  CostModel cost_model = {};  ///< what the choice between hardware candidates goes by
  bool calibrate = false;     ///< measure_cost_model() first, and go by its result
  /// Lets tokens stand in another order inside forward and backward, whose tensors and results keep the caller's:
  /// automatic where the saving that is predicted beats the time of copying, any other method always. For one pattern,
  /// without parameter_gradients; terms of scores must not depend on positions. Making the order takes O(pairs) memory.
  ReorderMethod reorder = ReorderMethod::identity;
  std::optional<std::int64_t> candidate = {};  ///< take this one of candidates(), whatever the cost model says
};

/// What the planner considered, and what it expected.
struct PlanCandidate {
  std::string name;  ///< e.g. "recompute, tiles of 64 x 64, one pass backward"
  Schedule schedule = Schedule::recompute;
  BackwardPasses backward_passes = BackwardPasses::one;  ///< of recompute
  std::int64_t row_panel = 0;
  std::int64_t column_panel = 0;
  std::int64_t feature_chunk = 0;
  /// Moved by the walk, all heads. Exact for this pattern where the candidate is chosen, and of every candidate with
  /// model tiles; estimated from a sample of rows otherwise.
  std::int64_t forward_words = 0;
  std::int64_t backward_words = 0;   ///< the same; of parameter gradients all of it, forward included
  double forward_formula_words = 0;  ///< the model's worst case for as many pairs, all heads
  double backward_formula_words = 0;
  double seconds = 0;  ///< of forward and backward on PlanOptions::threads, by the cost model
  bool chosen = false;
};

namespace detail {
struct PlanData;
}

/// Immutable, cheap to copy, safe to share between threads.
class Plan {
 public:
  explicit Plan(std::shared_ptr<const detail::PlanData> data) : data_(std::move(data)) {}

  /// The problem with all defaults filled in (value_dim, key_value_heads, scale).
  const Problem& problem() const noexcept;
  const PatternGrid& patterns() const noexcept;
  /// Pairs over all batch entries and query heads.
  std::int64_t total_pairs() const noexcept;
  /// Non-empty tiles, summed over the distinct patterns.
  std::int64_t tiles() const noexcept;

  Schedule schedule() const noexcept;
  Regime regime() const noexcept;
  /// M* in words, of one head. Infinite when the pattern is empty.
  double split_point() const noexcept;
  std::int64_t fast_memory_words() const noexcept;
  std::int64_t row_panel() const noexcept;
  std::int64_t column_panel() const noexcept;
  std::int64_t feature_chunk() const noexcept;
  /// An upper bound of what forward and backward need beyond their tensors, on `threads` threads, with elements of
  /// `element_bytes`. For halves (2) that is float memory, the sums of dK and dV and a rounded tile included; a bias of
  /// halves adds 4 bytes a value for itself and 4 for its gradient.
  std::int64_t workspace_bytes(std::int64_t threads, std::int64_t element_bytes) const noexcept;
  /// The order that tokens stand in inside the plan; null: the caller's.
  const Reordering* reordering() const noexcept;
  /// What the choice went by: PlanOptions::cost_model, or what calibration measured.
  const CostModel& cost_model() const noexcept;
  /// Every candidate of the regime (or of the schedule that was asked for), the chosen one among them. In small fast
  /// memory recompute is a candidate too with hardware tiles, and where the pattern's tiles are fuller than the whole.
  const std::vector<PlanCandidate>& candidates() const noexcept;
  /// The candidates and the choice in a few lines.
  std::string describe() const;
  /// The plan's own memory.
  std::int64_t memory_bytes() const noexcept;

  const detail::PlanData& data() const noexcept { return *data_; }

 private:
  std::shared_ptr<const detail::PlanData> data_;
};

/// Classifies the tiles of every pattern and chooses panels for the fast memory. Throws Error{invalid_argument,
/// shape_mismatch, overflow, infeasible}. Memory O(non-empty tiles + rows / row_panel), never O(pairs) for an analytic
/// pattern.
Plan make_plan(PatternGrid patterns, const Problem& problem, const PlanOptions& options = {});

}  // namespace cobble
