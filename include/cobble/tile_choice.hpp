#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cobble/model.hpp"

// Tile sizes for a fast memory of M words, by the rule of lib/model/README.md: a chunk of c_f = min(d, d sqrt(M / M*))
// features, a panel of about M / c_f rows, less what else must be resident. Each choose_* function minimises the
// traffic that traffic.hpp predicts over all panel heights and chunk widths that fit, so it holds for a tiny M as well,
// where the rule is only asymptotic.

namespace cobble {

/// The real-valued rule min(d, d sqrt(M / M*)), in features; d from M = M* on.
double feature_chunk_rule(double head_dim, double fast_memory_words, double split_point);

/// The sizes of one matrix product with the scores: `rows` x `columns` with `pairs` in the pattern, times `features`.
/// S = Q K^T, dP = dO V^T: n_q x n_k, the features are summed over. O = P V, dQ = dS K: n_q x n_k, the columns are
/// summed over. dV = P^T dO, dK = dS^T Q: rows are keys, columns queries.
struct ProductSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t pairs = 0;
  std::int64_t features = 0;
};

/// Materialize, S = Q K^T or dP = dO V^T: the scores of a tile stay while features of both sides pass.
/// A tile is `rows` rows by as many columns as hold at most `pairs` pairs; `pairs` >= `rows`, so one column always
/// fits. For a chunk of `features`: the rows' chunk is loaded, then the columns' chunk, `streamed` columns at a time.
struct ScoreTile {
  std::int64_t rows = 1;
  std::int64_t pairs = 1;
  std::int64_t columns = 1;  ///< columns of a tile when pairs are spread evenly
  std::int64_t features = 1;
  std::int64_t streamed = 1;

  /// pairs + (rows + streamed) features, at most M; and pairs + 3 is at most M: that many words pass by a finished
  /// tile, row by row, when the operands are gone.
  std::int64_t words_resident() const noexcept { return pairs + (rows + streamed) * features; }
};

/// Materialize, O = P V, dQ = dS K, dV = P^T dO, dK = dS^T Q: `rows` x `features` of the output stay, with `statistics`
/// words for each row (1 for O, which turns stored scores into probabilities with the row's LSE), while scores pass one
/// at a time and the other operand's chunk `streamed` rows at a time.
struct ValueTile {
  std::int64_t rows = 1;
  std::int64_t features = 1;
  std::int64_t statistics = 0;
  std::int64_t streamed = 1;

  /// rows (features + statistics) + streamed features + 1
  std::int64_t words_resident() const noexcept { return rows * (features + statistics) + streamed * features + 1; }
};

/// The passes of recompute. The held side stays whole for a panel, the other one is streamed.
enum class RecomputePass {
  forward,           ///< held: rows of Q, O, running maximum and sum; streamed: K, then V
  backward_rows,     ///< held: rows of Q, dO, dQ, LSE, delta; streamed: K (whole rows, used twice) and V
  backward_columns,  ///< held: K, V, dK, dV; streamed: Q (whole rows, used twice), LSE, dO, delta
  backward_fused,    ///< as backward_columns, and dQ is read, added to and written for each panel
  backward_values    ///< held: K, dV; streamed: Q, LSE, dO. The parameter gradients need no dK
};
std::string_view to_string(RecomputePass pass) noexcept;

/// A panel of the held side and the run of the streamed side that is in fast memory together with it; operands that are
/// used only once pass in chunks of `features`.
struct PanelTile {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t features = 1;
};

/// forward            rows (d + d_v + 2)   + rows columns   + columns features
/// backward_rows      rows (2d + d_v + 2)  + 2 rows columns + columns (d + features)
/// backward_columns   columns (2d + 2d_v)  + 2 rows columns + rows (d + features)         and the same when fused
/// backward_values    columns (d + d_v)    + rows columns   + rows features
/// The statistics of streamed rows pass while no chunk does.
std::int64_t words_resident(RecomputePass pass, const PanelTile& tile, const AttentionSize& size);

/// Both throw Error{infeasible} below kLeastFastMemory words, Error{invalid_argument} for a negative size. The result
/// holds at most M words.
ScoreTile choose_score_tile(const ProductSize& product, std::int64_t fast_memory_words);
ValueTile choose_value_tile(const ProductSize& product, std::int64_t statistics, std::int64_t fast_memory_words);

/// Empty where not even one row (column) with its features fits: a few (d + d_v) words.
std::optional<PanelTile> choose_panel(RecomputePass pass, const AttentionSize& size, std::int64_t fast_memory_words);

/// Materialize is feasible from here on, whatever the sizes are.
inline constexpr std::int64_t kLeastFastMemory = 64;

/// All tiles of materialize.
struct MaterializeTiles {
  ScoreTile scores;              ///< S in forward, P in backward
  ScoreTile grad_probabilities;  ///< dP, which becomes dS
  ValueTile output;
  ValueTile grad_query;
  ValueTile grad_key;
  ValueTile grad_value;
};
MaterializeTiles choose_materialize(const AttentionSize& size, std::int64_t fast_memory_words);

/// The tiles of recompute's backward: one fused pass, or a pass over rows and a pass over columns.
struct RecomputeBackwardTiles {
  bool fused = false;
  PanelTile rows;     ///< of backward_rows; unused when fused
  PanelTile columns;  ///< of backward_fused or backward_columns
};
/// The cheaper of the two. Empty where neither fits.
std::optional<RecomputeBackwardTiles> choose_recompute_backward(const AttentionSize& size,
                                                                std::int64_t fast_memory_words);

// Rounding to the hardware is a step of its own: the model counts words, the machine moves cache lines and computes in
// register tiles. Chunks of features widen to whole cache lines and the streamed side to kRegisterColumns; what that
// costs is taken from the panel, which is then rounded down to a multiple of kRegisterRows. A tile that cannot pay for
// it is returned as it is, so the result always fits M.

inline constexpr std::int64_t kCacheLineBytes = 64;
inline constexpr std::int64_t kRegisterRows = 16;
inline constexpr std::int64_t kRegisterColumns = 16;

ScoreTile round_to_hardware(const ScoreTile& tile, const ProductSize& product, std::int64_t fast_memory_words,
                            std::int64_t element_bytes);
ValueTile round_to_hardware(const ValueTile& tile, const ProductSize& product, std::int64_t fast_memory_words,
                            std::int64_t element_bytes);
PanelTile round_to_hardware(RecomputePass pass, const PanelTile& tile, const AttentionSize& size,
                            std::int64_t fast_memory_words, std::int64_t element_bytes);

}  // namespace cobble
