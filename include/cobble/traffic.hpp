#pragma once

#include <cstdint>
#include <optional>

#include "cobble/model.hpp"
#include "cobble/tile_choice.hpp"

// The traffic that a schedule with given tiles causes when pairs are spread evenly at random, in words: the worst case
// of the theorems. What a given pattern really costs is counted by its walk; structure can only lower it. Index words
// are not part of it.

namespace cobble {

struct Traffic {
  double loads = 0;
  double stores = 0;

  double words() const noexcept { return loads + stores; }
  Traffic& operator+=(const Traffic& other) noexcept {
    loads += other.loads;
    stores += other.stores;
    return *this;
  }
};
inline Traffic operator+(Traffic a, const Traffic& b) noexcept { return a += b; }

/// The share of columns that have a pair in a run of `length` rows: 1 - (1 - density)^length.
double touched_share(double density, double length);

/// Operand loads of a score product, in words: with t tiles in each of p row panels,
/// features (rows t touched(columns) + columns p touched(rows)). Loading and storing the scores themselves is left to
/// the schedule.
double score_operand_loads(const ProductSize& product, const ScoreTile& tile);

/// A value product: with p panels and k chunks of features, loads k pairs + features columns p touched(rows) +
/// statistics rows, stores rows features.
Traffic value_product_traffic(const ProductSize& product, const ValueTile& tile);

/// S is stored while running statistics of each row pass with its tiles; O = P V loads S and the LSE.
Traffic materialize_forward_traffic(const AttentionSize& size, const MaterializeTiles& tiles);

/// delta; S again, stored as P; dP, which becomes dS beside P; dV, dQ, dK.
Traffic materialize_backward_traffic(const AttentionSize& size, const MaterializeTiles& tiles);

/// Q in, O and LSE out, K and V once for each panel that touches them.
Traffic recompute_forward_traffic(const AttentionSize& size, const PanelTile& tile);

/// Two passes: delta is computed, and stored, when the row pass loads dO. Fused: delta is a pass before.
Traffic recompute_backward_traffic(const AttentionSize& size, const RecomputeBackwardTiles& tiles);

// Parameter gradients: Q = A1 X and V = A3 Y are computed once and kept in slow memory, K = A2; dX = A1^T (dS A2) and
// dY = A3^T (P^T dO). A panel of dS A2 or P^T dO is folded into dX or dY while it is in fast memory, and never written.

/// A full product of tokens x d and d x d: operand loads, and the product stored once.
Traffic weight_product_traffic(const ProductSize& product, const ScoreTile& tile);

/// A value product that is folded into an `inner` x features matrix in place of being stored: for each panel and chunk
/// `inner` words of each row of the panel are loaded, and the matrix's chunk is loaded (but for the first panel) and
/// stored.
Traffic folded_value_product_traffic(const ProductSize& product, const ValueTile& tile, std::int64_t inner);

/// Both weight products, forward (O serves delta), P and dS as in backward, and the two folded products. Tiles as
/// chosen for this fast memory. Throws Error{infeasible} below kLeastFastMemory words.
Traffic materialize_parameter_gradients_traffic(const AttentionSize& size, std::int64_t fast_memory_words);

/// Both weight products, forward, a pass over rows folded into dX, a pass over columns for dV alone folded into dY.
/// Empty where one of them does not fit.
std::optional<Traffic> recompute_parameter_gradients_traffic(const AttentionSize& size, std::int64_t fast_memory_words);

}  // namespace cobble
