#include "cobble/tile_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "cobble/error.hpp"
#include "cobble/traffic.hpp"
#include "core/checked.hpp"

namespace cobble {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
/// What passes by a finished tile of pairs, a word each: P, LSE and delta, as dP becomes dS.
constexpr std::int64_t kWordsBesideFinishedTile = 3;

void check_fast_memory(std::int64_t words) {
  if (words < kLeastFastMemory) {
    throw Error(ErrorCode::infeasible, "fast memory of " + std::to_string(words) + " words, expected at least " +
                                           std::to_string(kLeastFastMemory));
  }
}

void check_not_negative(std::int64_t value, const char* name) {
  if (value < 0) {
    throw Error(ErrorCode::invalid_argument,
                std::string(name) + " = " + std::to_string(value) + ", expected a size of at least 0");
  }
}

void check(const ProductSize& product) {
  check_not_negative(product.rows, "rows");
  check_not_negative(product.columns, "columns");
  check_not_negative(product.pairs, "pairs");
  check_not_negative(product.features, "features");
}

void check(const AttentionSize& size) {
  check_not_negative(size.queries, "queries");
  check_not_negative(size.keys, "keys");
  check_not_negative(size.pairs, "pairs");
  check_not_negative(size.head_dim, "head_dim");
  check_not_negative(size.value_dim, "value_dim");
}

/// The least part that still cuts `length` into as few parts as parts of at most `part` do.
std::int64_t balanced(std::int64_t length, std::int64_t part) {
  if (length <= part) return std::max<std::int64_t>(length, 1);
  return divide_up(length, divide_up(length, part));
}

/// The next smaller balanced part, 0 after 1. From `length` on this visits about 2 sqrt(length) parts.
std::int64_t next_smaller_part(std::int64_t length, std::int64_t part) {
  return part <= 1 ? 0 : balanced(length, part - 1);
}

/// Down to a multiple where there is one.
std::int64_t round_down(std::int64_t value, std::int64_t multiple) {
  return value < multiple ? value : value / multiple * multiple;
}

/// Up to a multiple, but not above `limit`.
std::int64_t round_up_within(std::int64_t value, std::int64_t multiple, std::int64_t limit) {
  return std::max<std::int64_t>(1, std::min(round_up(value, multiple), limit));
}

std::int64_t elements_per_line(std::int64_t element_bytes) {
  if (element_bytes < 1) {
    throw Error(ErrorCode::invalid_argument,
                "element_bytes = " + std::to_string(element_bytes) + ", expected at least 1");
  }
  return std::max<std::int64_t>(1, kCacheLineBytes / element_bytes);
}

/// Columns that `pairs` hold when each has `rows` density pairs: whole columns, unless most are empty.
std::int64_t expected_columns(const ProductSize& product, std::int64_t rows, std::int64_t pairs) {
  if (product.pairs == 0) return product.columns;
  const double mean = static_cast<double>(product.pairs) / static_cast<double>(product.columns) *
                      (static_cast<double>(rows) / static_cast<double>(product.rows));
  const double columns = static_cast<double>(pairs) / mean;
  if (columns >= static_cast<double>(product.columns)) return product.columns;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(columns));
}

/// The tile of this height that spends what is left of fast memory on pairs. Empty when one column does not fit.
std::optional<ScoreTile> fit_score_tile(const ProductSize& product, std::int64_t rows, std::int64_t features,
                                        std::int64_t streamed, std::int64_t fast_memory_words) {
  const std::int64_t beside = std::max((rows + streamed) * features, kWordsBesideFinishedTile);
  const std::int64_t pairs = std::min(fast_memory_words - beside, rows * product.columns);
  if (pairs < rows) return std::nullopt;
  const std::int64_t columns = expected_columns(product, rows, pairs);
  // A tile of a full product needs no more than its whole columns; elsewhere tiles vary, and slack serves some.
  const bool full = product.pairs > 0 && product.pairs == product.rows * product.columns;
  return ScoreTile{rows, full ? rows * columns : pairs, columns, features, streamed};
}

/// What a pass holds, word by word: held (per_held + per_pair streamed) + streamed (per_streamed + features).
struct PassWords {
  std::int64_t per_held;
  std::int64_t per_pair;
  std::int64_t per_streamed;
  std::int64_t most_features;
  bool holds_rows;
};

PassWords pass_words(RecomputePass pass, const AttentionSize& size) {
  const std::int64_t d = size.head_dim;
  const std::int64_t d_v = size.value_dim;
  switch (pass) {
    case RecomputePass::forward: return {d + d_v + 2, 1, 0, std::max(d, d_v), true};
    case RecomputePass::backward_rows: return {2 * d + d_v + 2, 2, d, d_v, true};
    case RecomputePass::backward_columns: return {2 * d + 2 * d_v, 2, d, d_v, false};
    case RecomputePass::backward_fused: return {2 * d + 2 * d_v, 2, d, std::max(d, d_v), false};
    case RecomputePass::backward_values: return {d + d_v, 1, 0, std::max(d, d_v), false};
  }
  throw Error(ErrorCode::invalid_argument, "unknown pass of recompute");
}

PanelTile panel_tile(const PassWords& words, std::int64_t held, std::int64_t streamed, std::int64_t features) {
  return words.holds_rows ? PanelTile{held, streamed, features} : PanelTile{streamed, held, features};
}

}  // namespace

double feature_chunk_rule(double head_dim, double fast_memory_words, double split_point) {
  return fast_memory_words >= split_point ? head_dim : head_dim * std::sqrt(fast_memory_words / split_point);
}

std::string_view to_string(RecomputePass pass) noexcept {
  switch (pass) {
    case RecomputePass::forward: return "forward";
    case RecomputePass::backward_rows: return "backward_rows";
    case RecomputePass::backward_columns: return "backward_columns";
    case RecomputePass::backward_fused: return "backward_fused";
    case RecomputePass::backward_values: return "backward_values";
  }
  return "unknown";
}

std::int64_t words_resident(RecomputePass pass, const PanelTile& tile, const AttentionSize& size) {
  const PassWords words = pass_words(pass, size);
  const std::int64_t held = words.holds_rows ? tile.rows : tile.columns;
  const std::int64_t streamed = words.holds_rows ? tile.columns : tile.rows;
  return held * (words.per_held + words.per_pair * streamed) + streamed * (words.per_streamed + tile.features);
}

ScoreTile choose_score_tile(const ProductSize& product, std::int64_t fast_memory_words) {
  check_fast_memory(fast_memory_words);
  check(product);
  if (product.rows == 0 || product.columns == 0) return {};

  // Half of fast memory is the highest panel whose every column fits beside its operands.
  ScoreTile best;
  double least_loads = kUnbounded;
  const std::int64_t highest = balanced(product.rows, (fast_memory_words - 1) / 2);
  for (std::int64_t rows = highest; rows > 0; rows = next_smaller_part(product.rows, rows)) {
    const std::optional<ScoreTile> tile = fit_score_tile(product, rows, 1, 1, fast_memory_words);
    if (!tile) continue;
    const double loads = score_operand_loads(product, *tile);
    if (loads < least_loads) {
      least_loads = loads;
      best = *tile;
    }
  }
  // What is left makes the steps larger, not the traffic smaller.
  const std::int64_t left = fast_memory_words - best.pairs;
  best.features = std::clamp<std::int64_t>(left / (best.rows + 1), 1, std::max<std::int64_t>(product.features, 1));
  best.streamed = std::clamp<std::int64_t>(left / best.features - best.rows, 1, product.columns);
  return best;
}

ValueTile choose_value_tile(const ProductSize& product, std::int64_t statistics, std::int64_t fast_memory_words) {
  check_fast_memory(fast_memory_words);
  check(product);
  check_not_negative(statistics, "statistics");

  ValueTile best{1, 1, statistics, 1};
  double least_words = kUnbounded;
  const std::int64_t widest = std::max<std::int64_t>(product.features, 1);
  for (std::int64_t features = widest; features > 0; features = next_smaller_part(widest, features)) {
    const std::int64_t rows = (fast_memory_words - 1 - features) / (features + statistics);
    if (rows < 1) continue;
    const ValueTile tile{balanced(product.rows, rows), features, statistics, 1};
    const double words = value_product_traffic(product, tile).words();
    if (words < least_words) {
      least_words = words;
      best = tile;
    }
  }
  const std::int64_t left = fast_memory_words - best.rows * (best.features + statistics) - 1;
  best.streamed = std::clamp<std::int64_t>(left / best.features, 1, std::max<std::int64_t>(product.columns, 1));
  return best;
}

std::optional<PanelTile> choose_panel(RecomputePass pass, const AttentionSize& size, std::int64_t fast_memory_words) {
  check(size);
  const PassWords words = pass_words(pass, size);
  const std::int64_t held_length = words.holds_rows ? size.queries : size.keys;
  const std::int64_t streamed_length = words.holds_rows ? size.keys : size.queries;

  // The traffic falls with the height of the panel alone: one streamed row, one word of a chunk at a time.
  const std::int64_t most_held = (fast_memory_words - words.per_streamed - 1) / (words.per_held + words.per_pair);
  if (fast_memory_words <= words.per_streamed || most_held < 1) return std::nullopt;
  const std::int64_t held = balanced(held_length, most_held);
  // What is left makes the steps larger.
  const std::int64_t left = fast_memory_words - held * words.per_held;
  const std::int64_t per_streamed = held * words.per_pair + words.per_streamed;
  const std::int64_t features =
      std::clamp<std::int64_t>(left - per_streamed, 1, std::max<std::int64_t>(words.most_features, 1));
  const std::int64_t streamed =
      std::clamp<std::int64_t>(left / (per_streamed + features), 1, std::max<std::int64_t>(streamed_length, 1));
  return panel_tile(words, held, streamed, features);
}

MaterializeTiles choose_materialize(const AttentionSize& size, std::int64_t fast_memory_words) {
  const ProductSize by_head_dim{size.queries, size.keys, size.pairs, size.head_dim};
  const ProductSize by_value_dim{size.queries, size.keys, size.pairs, size.value_dim};
  const ProductSize keys_by_head_dim{size.keys, size.queries, size.pairs, size.head_dim};
  const ProductSize keys_by_value_dim{size.keys, size.queries, size.pairs, size.value_dim};
  MaterializeTiles tiles;
  tiles.scores = choose_score_tile(by_head_dim, fast_memory_words);
  const bool same = size.head_dim == size.value_dim;
  tiles.grad_probabilities = same ? tiles.scores : choose_score_tile(by_value_dim, fast_memory_words);
  tiles.output = choose_value_tile(by_value_dim, 1, fast_memory_words);
  tiles.grad_query = choose_value_tile(by_head_dim, 0, fast_memory_words);
  tiles.grad_key = choose_value_tile(keys_by_head_dim, 0, fast_memory_words);
  tiles.grad_value = same ? tiles.grad_key : choose_value_tile(keys_by_value_dim, 0, fast_memory_words);
  return tiles;
}

std::optional<RecomputeBackwardTiles> choose_recompute_backward(const AttentionSize& size,
                                                                std::int64_t fast_memory_words) {
  std::optional<RecomputeBackwardTiles> best;
  double least_words = kUnbounded;
  const auto consider = [&](const RecomputeBackwardTiles& tiles) {
    const double words = recompute_backward_traffic(size, tiles).words();
    if (words >= least_words) return;
    least_words = words;
    best = tiles;
  };
  const auto fused = choose_panel(RecomputePass::backward_fused, size, fast_memory_words);
  const auto rows = choose_panel(RecomputePass::backward_rows, size, fast_memory_words);
  const auto columns = choose_panel(RecomputePass::backward_columns, size, fast_memory_words);
  // Fused first: at equal traffic it computes the scores once, not twice.
  if (fused) consider({true, PanelTile{}, *fused});
  if (rows && columns) consider({false, *rows, *columns});
  return best;
}

ScoreTile round_to_hardware(const ScoreTile& tile, const ProductSize& product, std::int64_t fast_memory_words,
                            std::int64_t element_bytes) {
  const std::int64_t features = round_up_within(tile.features, elements_per_line(element_bytes), product.features);
  const std::int64_t streamed = round_up_within(tile.streamed, kRegisterColumns, product.columns);
  ScoreTile best = tile;
  double least_loads = kUnbounded;
  // About 64 heights are enough: the loads are flat around their minimum.
  const std::int64_t step = round_up(std::max<std::int64_t>(tile.rows / 64, 1), kRegisterRows);
  for (std::int64_t rows = round_down(tile.rows, kRegisterRows); rows > 0; rows = rows > step ? rows - step : 0) {
    const std::optional<ScoreTile> rounded = fit_score_tile(product, rows, features, streamed, fast_memory_words);
    if (!rounded) continue;
    const double loads = score_operand_loads(product, *rounded);
    if (loads < least_loads) {
      least_loads = loads;
      best = *rounded;
    }
  }
  return best;
}

ValueTile round_to_hardware(const ValueTile& tile, const ProductSize& product, std::int64_t fast_memory_words,
                            std::int64_t element_bytes) {
  ValueTile rounded = tile;
  rounded.features = round_up_within(tile.features, elements_per_line(element_bytes), product.features);
  rounded.streamed = round_up_within(1, kRegisterColumns, product.columns);
  const std::int64_t left = fast_memory_words - 1 - rounded.streamed * rounded.features;
  const std::int64_t rows = left / (rounded.features + rounded.statistics);
  if (left < 0 || rows < 1) return tile;
  rounded.rows = round_down(std::min(rows, tile.rows), kRegisterRows);
  return rounded;
}

PanelTile round_to_hardware(RecomputePass pass, const PanelTile& tile, const AttentionSize& size,
                            std::int64_t fast_memory_words, std::int64_t element_bytes) {
  const PassWords words = pass_words(pass, size);
  const std::int64_t streamed_length = words.holds_rows ? size.keys : size.queries;
  const std::int64_t held = words.holds_rows ? tile.rows : tile.columns;
  const std::int64_t streamed = words.holds_rows ? tile.columns : tile.rows;

  const std::int64_t features = round_up_within(tile.features, elements_per_line(element_bytes), words.most_features);
  const std::int64_t run = round_up_within(std::min(streamed, kRegisterColumns), kRegisterColumns, streamed_length);
  const std::int64_t left = fast_memory_words - run * (words.per_streamed + features);
  const std::int64_t most_held = left / (words.per_held + words.per_pair * run);
  if (left < 0 || most_held < 1) return tile;
  const std::int64_t rounded_held = round_down(std::min(held, most_held), kRegisterRows);
  // A long run is kept as far as it still fits.
  const std::int64_t longest = (fast_memory_words - rounded_held * words.per_held) /
                               (rounded_held * words.per_pair + words.per_streamed + features);
  const std::int64_t rounded_run = std::max(run, round_down(std::min(longest, streamed_length), kRegisterColumns));
  return panel_tile(words, rounded_held, rounded_run, features);
}

}  // namespace cobble
