#include "plan/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "cobble/cost_model.hpp"
#include "cobble/tile_choice.hpp"
#include "cobble/traffic.hpp"
#include "core/checked.hpp"
#include "pattern/tile_classifier.hpp"
#include "plan/parameters.hpp"
#include "plan/schedules.hpp"

namespace cobble::detail {
namespace {

/// Rows of a tile that the dense kernels like, as many as their register tiles have columns; its columns, enough to
/// make up for reading and writing sums; and those of a tile that is too sparse for them.
constexpr std::int64_t kPanel = 64;
constexpr std::int64_t kColumns = 2 * kPanel;
constexpr std::int64_t kWidePanel = 4096;
/// Rows that pass by a panel of keys, at most: enough for the panel to be worth its loading.
constexpr std::int64_t kLongPanel = 4096;
/// A tile by pairs spans no more columns than this, so that scratch memory stays small.
constexpr std::int64_t kLongestSpan = 16384;

std::string by(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

std::string passing_name(std::int64_t columns, std::int64_t rows) {
  return "recompute, panels of " + std::to_string(columns) + " keys that " + std::to_string(rows) + " rows pass";
}

/// Words of a row panel that stays whole in forward and in the one-pass backward, and of a tile beside it.
double resident_words(const Problem& problem, double rows, double columns) {
  const auto d = static_cast<double>(problem.head_dim);
  const auto d_v = static_cast<double>(problem.value_dim);
  return rows * (2 * d + d_v + 2) + columns * std::max(d, d_v) + 2 * rows * columns;
}

/// The largest square tile up to kPanel that fits fast memory; 0 when none does.
std::int64_t square_panel(const Problem& problem, std::int64_t fast_memory_words) {
  const auto fits = [&](std::int64_t side) {
    const auto size = static_cast<double>(side);
    return resident_words(problem, size, size) <= static_cast<double>(fast_memory_words);
  };
  std::int64_t side = kPanel;
  while (side > 0 && !fits(side)) side -= side > 16 ? 16 : 1;
  return side;
}

/// The share of pairs in the non-empty tiles of a sample of row panels; fewer where these have many pairs.
double sampled_fill(const PatternGrid& patterns, std::int64_t row_panel, std::int64_t column_panel) {
  constexpr std::int64_t kSamples = 16;
  constexpr double kEnoughPairs = 1 << 15;
  const std::int64_t panels = divide_up(patterns.rows(), row_panel);
  const std::int64_t samples = std::min(panels, kSamples);
  const std::int64_t width = std::min(column_panel, patterns.columns());
  TileClassifier classifier(patterns.columns(), column_panel);
  std::vector<PatternTile> tiles;
  double pairs = 0;
  double places = 0;
  for (const Pattern& pattern : patterns.patterns()) {
    const double enough = pairs + kEnoughPairs;
    for (std::int64_t turn = 0; turn < kSamples && (turn < kSamples / 4 || pairs < enough); ++turn) {
      const std::int64_t sample = turn * 7 % kSamples;  // all over the rows from the start
      if (sample >= samples) continue;
      const std::int64_t begin = panels * sample / samples * row_panel;
      const std::int64_t end = std::min(begin + row_panel, patterns.rows());
      classifier.classify(pattern.node(), begin, end, tiles);
      for (const PatternTile& tile : tiles) pairs += static_cast<double>(tile.pairs);
      places += static_cast<double>(tiles.size()) * static_cast<double>((end - begin) * width);
    }
  }
  return places == 0 ? 1 : pairs / places;
}

/// One pass of recompute over tiles of rows x columns.
CandidatePlan one_pass(const PlanData& plan, std::int64_t rows, std::int64_t columns, std::int64_t streamed) {
  CandidatePlan candidate;
  candidate.lists = streamed > 0;
  candidate.summary.schedule = Schedule::recompute;
  candidate.summary.backward_passes = BackwardPasses::one;
  candidate.summary.row_panel = std::clamp<std::int64_t>(plan.patterns.rows(), 1, rows);
  candidate.summary.column_panel = std::clamp<std::int64_t>(plan.patterns.columns(), 1, columns);
  const TileCut cut = {candidate.summary.row_panel, candidate.summary.column_panel, 0, false, streamed > 0};
  const std::int64_t features = std::max(plan.problem.head_dim, plan.problem.value_dim);
  candidate.summary.feature_chunk = features;
  candidate.use(Product::forward, cut, features, streamed);
  candidate.use(Product::backward_rows, cut, features, streamed);
  candidate.summary.name = streamed > 0 ? "recompute, row-wise, " + by(cut.row_panel, cut.column_panel)
                                        : "recompute, tiles of " + by(cut.row_panel, cut.column_panel);
  candidate.summary.name += ", one pass backward";
  return candidate;
}

/// One pass of recompute over lists of pairs, with panels of `columns` keys in fast memory and long panels of rows that
/// pass by. Empty when not even one row's pairs fit beside the keys.
std::optional<CandidatePlan> passing_rows(const PlanData& plan, const AttentionSize& size, std::int64_t columns) {
  const std::int64_t features = std::max(plan.problem.head_dim, plan.problem.value_dim);
  columns = std::min(columns, plan.patterns.columns());
  if (columns < 1) return std::nullopt;
  // P and dS of a tile take up to half of what the keys leave; structured rows may have ten times the mean.
  const double room = static_cast<double>(plan.fast_memory_words - columns * features) / 2;
  const double pairs_of_row = std::max(1.0, 2 * density(size) * static_cast<double>(columns));
  const auto rows = static_cast<std::int64_t>(room / (2 * pairs_of_row));
  if (rows < 1) return std::nullopt;
  CandidatePlan candidate;
  candidate.lists = true;
  candidate.summary.schedule = Schedule::recompute;
  candidate.summary.backward_passes = BackwardPasses::one;
  candidate.summary.row_panel = std::clamp<std::int64_t>(plan.patterns.rows(), 1, std::min(rows, kLongPanel));
  candidate.summary.column_panel = columns;
  candidate.summary.feature_chunk = features;
  const TileCut cut = {candidate.summary.row_panel, columns, 0, false, true};
  for (const Product product : {Product::forward, Product::backward_rows}) {
    candidate.use(product, cut, features, 0);
    candidate.product(product).rows_pass = true;
  }
  candidate.summary.name = passing_name(columns, cut.row_panel);
  return candidate;
}

/// Row-wise within one panel of keys after another, as many as the last cache can keep with what belongs to them.
CandidatePlan row_wise_by_panels(const PlanData& plan, std::int64_t columns) {
  CandidatePlan candidate = one_pass(plan, kPanel, columns, 1);
  for (const Product product : {Product::forward, Product::backward_rows}) {
    candidate.product(product).panel_by_panel = true;
  }
  candidate.summary.name = "recompute, row-wise, one panel of " + std::to_string(columns) + " keys after another";
  return candidate;
}

/// One pass of recompute over dense tiles of those keys alone that a row panel has pairs with, packed side by side.
CandidatePlan gathered(const PlanData& plan, std::int64_t rows, std::int64_t columns) {
  CandidatePlan candidate = one_pass(plan, rows, columns, 0);
  for (TileCut& cut : candidate.cuts) cut.gathers = cut.counts_touched = true;
  candidate.gathers = true;
  candidate.summary.name = "recompute, tiles of " + by(candidate.summary.row_panel, candidate.summary.column_panel) +
                           " gathered keys, one pass backward";
  return candidate;
}

/// Forward of one candidate of lists, backward of another.
CandidatePlan combined(const CandidatePlan& forward, const CandidatePlan& backward) {
  CandidatePlan candidate = backward;
  candidate.cuts.clear();
  const auto take = [&](Product product, const CandidatePlan& from) {
    const ProductTiles& tiles = from.product(product);
    candidate.use(product, from.cut(product), tiles.features, tiles.streamed);
    candidate.product(product).rows_pass = tiles.rows_pass;
  };
  take(Product::forward, forward);
  take(Product::backward_rows, backward);
  candidate.summary.name =
      "recompute, row-wise forward, backward in" + backward.summary.name.substr(std::string("recompute,").size());
  return candidate;
}

/// The candidates whose tiles hold lists of pairs: panels of keys for L1, for fast memory, and none at all; and panels
/// for backward alone, which reads and writes more of a key.
void propose_lists(const PlanData& plan, const AttentionSize& size, const PlanOptions& options,
                   std::vector<CandidatePlan>& candidates) {
  const std::int64_t features = std::max(plan.problem.head_dim, plan.problem.value_dim);
  const std::int64_t near = plan.cost_model.near_bytes / options.element_bytes / features;
  const std::int64_t far = plan.fast_memory_words * 3 / 4 / features;
  const auto rounded = [](std::int64_t keys) { return keys > 64 ? keys / 64 * 64 : keys; };
  const CandidatePlan row_wise = one_pass(plan, kPanel, plan.patterns.columns(), 1);
  for (const std::int64_t columns : {rounded(near), rounded(far)}) {
    if (columns == rounded(far) && far <= 2 * near) continue;
    if (columns >= plan.patterns.columns()) continue;  // that is row-wise
    if (auto candidate = passing_rows(plan, size, columns)) {
      candidates.push_back(combined(row_wise, *candidate));
      candidates.push_back(std::move(*candidate));
    }
  }
  candidates.push_back(row_wise);
  const std::int64_t shared = rounded(plan.cost_model.far_bytes / options.element_bytes /
                                      (2 * (plan.problem.head_dim + plan.problem.value_dim)));
  if (shared > far && shared < plan.patterns.columns()) candidates.push_back(row_wise_by_panels(plan, shared));
}

/// Recompute with the model's panels or the given ones, backward in two passes. Empty when not even one row fits.
std::optional<CandidatePlan> two_passes(const PlanData& plan, const AttentionSize& size, const PlanOptions& options) {
  const std::int64_t words = plan.fast_memory_words;
  const auto choose = [&](RecomputePass pass) {
    auto tile = choose_panel(pass, size, words);
    if (tile && options.tile_sizes == TileSizes::hardware) {
      tile = round_to_hardware(pass, *tile, size, words, options.element_bytes);
    }
    if (tile && options.row_panel > 0) tile->rows = std::clamp<std::int64_t>(size.queries, 1, options.row_panel);
    if (tile && options.column_panel > 0) tile->columns = std::clamp<std::int64_t>(size.keys, 1, options.column_panel);
    return tile;
  };
  const auto forward = choose(RecomputePass::forward);
  const auto rows = choose(RecomputePass::backward_rows);
  const auto columns =
      choose(options.parameter_gradients ? RecomputePass::backward_values : RecomputePass::backward_columns);
  if (!forward || !rows || !columns) return std::nullopt;
  CandidatePlan candidate;
  candidate.summary.schedule = Schedule::recompute;
  candidate.summary.backward_passes = BackwardPasses::two;
  candidate.summary.row_panel = forward->rows;
  candidate.summary.column_panel = forward->columns;
  candidate.summary.feature_chunk = forward->features;
  candidate.use(Product::forward, {forward->rows, forward->columns, 0, false, false}, forward->features, 0);
  candidate.use(Product::backward_rows, {rows->rows, rows->columns, 0, false, false}, rows->features, 0);
  candidate.use(Product::backward_columns, {columns->rows, columns->columns, 0, true, false}, columns->features, 0);
  candidate.summary.name = "recompute, panels of " + std::to_string(forward->rows) + " rows, two passes backward";
  return candidate;
}

/// Materialize with tiles for pairs that fill their neighbourhood as `local` says: the pattern's own density for pairs
/// spread evenly, more for pairs in bands and blocks.
CandidatePlan materialize(const PlanData& plan, const AttentionSize& local, double fill, const PlanOptions& options) {
  const std::int64_t words = plan.fast_memory_words;
  MaterializeTiles tiles = choose_materialize(local, words);
  if (options.parameter_gradients) {
    // A panel that is folded needs a word a row for the input that passes by.
    tiles.grad_query = choose_value_tile({local.queries, local.keys, local.pairs, local.head_dim}, 1, words);
    tiles.grad_value = choose_value_tile({local.keys, local.queries, local.pairs, local.value_dim}, 1, words);
  }
  if (options.tile_sizes == TileSizes::hardware) {
    const ProductSize by_head_dim = {local.queries, local.keys, local.pairs, local.head_dim};
    const ProductSize by_value_dim = {local.queries, local.keys, local.pairs, local.value_dim};
    const auto transposed = [](const ProductSize& p) { return ProductSize{p.columns, p.rows, p.pairs, p.features}; };
    const auto round = [&](auto& tile, const ProductSize& product) {
      tile = round_to_hardware(tile, product, words, options.element_bytes);
    };
    round(tiles.scores, by_head_dim);
    round(tiles.grad_probabilities, by_value_dim);
    round(tiles.output, by_value_dim);
    round(tiles.grad_query, by_head_dim);
    round(tiles.grad_key, transposed(by_head_dim));
    round(tiles.grad_value, transposed(by_value_dim));
  }
  CandidatePlan candidate;
  candidate.summary.schedule = Schedule::materialize;
  candidate.summary.row_panel = tiles.scores.rows;
  candidate.summary.column_panel = tiles.scores.columns;
  candidate.summary.feature_chunk = tiles.output.features;
  const auto use_scores = [&](Product product, const ScoreTile& tile) {
    candidate.use(product, {tile.rows, kLongestSpan, tile.pairs, false, true}, tile.features, tile.streamed);
  };
  use_scores(Product::scores, tiles.scores);
  use_scores(Product::grad_probabilities, tiles.grad_probabilities);
  // The other side of a value product passes a few tokens at a time. How many a numeric tile spans is free in the
  // model; on the machine its pairs, and the tokens packed for them, should share fast memory with the sums.
  const auto span = [&](const ValueTile& tile) {
    if (fill * static_cast<double>(kSparseTileFill) < 1) return kWidePanel;
    const std::int64_t room = words / 2 / (tile.rows + tile.features);
    return std::clamp(room / kRegisterColumns * kRegisterColumns, kRegisterColumns, 4 * kPanel);
  };
  const auto use_rows = [&](Product product, const ValueTile& tile) {
    candidate.use(product, {tile.rows, span(tile), 0, false, true}, tile.features, tile.streamed);
  };
  use_rows(Product::output, tiles.output);
  use_rows(Product::grad_query, tiles.grad_query);
  const auto use_columns = [&](Product product, const ValueTile& tile) {
    candidate.use(product, {std::min(span(tile), kPanel), tile.rows, 0, true, true}, tile.features, tile.streamed);
  };
  use_columns(Product::grad_key, tiles.grad_key);
  use_columns(Product::grad_value, tiles.grad_value);
  candidate.summary.name = "materialize, score tiles of " + std::to_string(tiles.scores.rows) + " rows and " +
                           std::to_string(tiles.scores.pairs) + " pairs, output tiles of " +
                           by(tiles.output.rows, tiles.output.features);
  return candidate;
}

/// Densities that a neighbourhood of the pattern may have.
std::vector<AttentionSize> local_sizes(const AttentionSize& size) {
  std::vector<AttentionSize> sizes = {size};
  const double rho = density(size);
  if (rho <= 0 || rho >= 0.5) return sizes;
  for (const double local : {std::sqrt(rho), 1.0}) {
    AttentionSize& other = sizes.emplace_back(size);
    const double places = static_cast<double>(size.queries) * static_cast<double>(size.keys);
    other.pairs = static_cast<std::int64_t>(local * places);
  }
  return sizes;
}

void choose_projections(PlanData& plan, const PlanOptions& options) {
  const auto choose = [&](std::int64_t tokens, std::int64_t features) {
    const ProductSize product = {tokens, features, tokens * features, plan.problem.head_dim};
    ScoreTile tile = choose_score_tile(product, plan.fast_memory_words);
    if (options.tile_sizes == TileSizes::hardware) {
      tile = round_to_hardware(tile, product, plan.fast_memory_words, options.element_bytes);
    }
    const std::int64_t columns = std::max<std::int64_t>(1, tile.pairs / std::max<std::int64_t>(tile.rows, 1));
    return ProjectionTiles{tile.rows, std::min(columns, features), tile.features, tile.streamed};
  };
  plan.parameter_gradients = true;
  plan.project_query = choose(plan.patterns.rows(), plan.problem.head_dim);
  plan.project_value = choose(plan.patterns.columns(), plan.problem.value_dim);
}

PlanData cut_patterns(const PlanData& plan, const CandidatePlan& candidate) {
  PlanData realized = plan;
  realized.schedule = candidate.summary.schedule;
  realized.backward_passes = candidate.summary.backward_passes;
  realized.lists = candidate.lists;
  realized.gathers = candidate.gathers;
  realized.whole_panels = candidate.whole_panels;
  realized.products = candidate.products;
  realized.cuts = candidate.cuts;
  for (const Pattern& pattern : plan.patterns.patterns()) {
    std::vector<TileList>& lists = realized.tile_lists.emplace_back();
    for (const TileCut& cut : candidate.cuts) lists.push_back(cut_tiles(pattern, cut));
  }
  return realized;
}

/// Words that the largest tile of a candidate of lists holds in fast memory; 0 of any other, whose tiles fit by choice.
double largest_residency(const PlanData& plan, const CandidatePlan& candidate) {
  if (!candidate.lists) return 0;
  const auto d = static_cast<double>(plan.problem.head_dim);
  const auto d_v = static_cast<double>(plan.problem.value_dim);
  const double passing = 2 * (d + d_v + 2);
  double largest = 0;
  for (const Product product : {Product::forward, Product::backward_rows}) {
    const TileCut& cut = plan.cut(product);
    double pairs = 0;
    for (const std::vector<TileList>& lists : plan.tile_lists) {
      for (const PlanTile& tile : lists[static_cast<std::size_t>(plan.product(product).cut)].tiles) {
        pairs = std::max(pairs, static_cast<double>(tile.pairs));
      }
    }
    const double panel = plan.product(product).rows_pass ? static_cast<double>(cut.column_panel) * std::max(d, d_v)
                                                         : static_cast<double>(cut.row_panel) * (2 * d + d_v + 2);
    largest = std::max(largest, panel + (product == Product::forward ? 1 : 2) * pairs + passing);
  }
  return largest;
}

/// A candidate of lists with fewer rows to a panel, or fewer keys; empty when there is no smaller one.
std::optional<CandidatePlan> shrink(const PlanData& plan, const CandidatePlan& candidate) {
  const auto& summary = candidate.summary;
  if (!candidate.product(Product::backward_rows).rows_pass) {
    if (summary.column_panel > 1) return one_pass(plan, summary.row_panel, divide_up(summary.column_panel, 4), 1);
    if (summary.row_panel > 1) return one_pass(plan, divide_up(summary.row_panel, 4), summary.column_panel, 1);
    return std::nullopt;
  }
  CandidatePlan smaller = candidate;
  if (!smaller.product(Product::forward).rows_pass) {  // forward's own tiles may be what does not fit
    smaller.cuts = {candidate.cut(Product::backward_rows)};
    smaller.product(Product::backward_rows).cut = 0;
    smaller.product(Product::forward) = smaller.product(Product::backward_rows);
    return smaller;
  }
  if (summary.row_panel == 1) return std::nullopt;
  smaller.summary.row_panel = divide_up(summary.row_panel, 4);
  for (const ProductTiles& tiles : smaller.products) {
    if (tiles.cut >= 0 && tiles.rows_pass) {
      smaller.cuts[static_cast<std::size_t>(tiles.cut)].row_panel = smaller.summary.row_panel;
    }
  }
  smaller.summary.name = passing_name(summary.column_panel, smaller.summary.row_panel);
  return smaller;
}

/// Adds to each candidate of dense tiles one that writes compressed panels out.
void propose_whole_panels(const PlanData& plan, std::vector<CandidatePlan>& candidates) {
  if (plan.problem.key_entries == 0 && plan.problem.value_entries == 0) return;
  const std::size_t count = candidates.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (candidates[i].lists) continue;  // lists of pairs take them so where entries cost more
    CandidatePlan whole = candidates[i];
    whole.whole_panels = true;
    whole.summary.name += ", compressed panels in full";
    candidates.push_back(std::move(whole));
  }
}

}  // namespace

void CandidatePlan::use(Product product, const TileCut& cut, std::int64_t features, std::int64_t streamed) {
  const auto known = std::find(cuts.begin(), cuts.end(), cut);
  const auto index = static_cast<int>(known - cuts.begin());
  if (known == cuts.end()) cuts.push_back(cut);
  this->product(product) = {index, features, streamed};
}

std::vector<CandidatePlan> propose(const PlanData& plan, const AttentionSize& size, const PlanOptions& options) {
  std::vector<CandidatePlan> candidates;
  const bool hardware = options.tile_sizes == TileSizes::hardware;
  const double fill = sampled_fill(plan.patterns, kPanel, kPanel);
  const bool large = plan.regime == Regime::large_fast_memory;
  // The regime is that of pairs spread evenly. Inside tiles that are fuller than the whole pattern the split point is
  // lower, and the traffic tells.
  const bool structured = fill > 2 * density(size);
  const bool recompute = options.schedule == Schedule::recompute ||
                         (options.schedule == Schedule::automatic && (large || structured || hardware));
  const bool materialized =
      options.schedule == Schedule::materialize || (options.schedule == Schedule::automatic && !large);
  const bool sizes_given = options.row_panel > 0 || options.column_panel > 0;
  const std::int64_t side = square_panel(plan.problem, plan.fast_memory_words);

  const bool two_passes_only = options.backward_passes == BackwardPasses::two || options.parameter_gradients;
  if (recompute && !two_passes_only) {
    if (sizes_given) {
      candidates.push_back(one_pass(plan, options.row_panel > 0 ? options.row_panel : std::max<std::int64_t>(side, 1),
                                    options.column_panel > 0 ? options.column_panel : kColumns, 0));
    } else {
      // Only between the two limits it takes a closer look to tell which of them is faster.
      const bool dense = !hardware || fill > 1.0 / 64;
      const bool sparse = hardware && fill < 0.5;
      if (side > 0 && dense) candidates.push_back(one_pass(plan, side, side, 0));
      const bool wide =
          side == kPanel && resident_words(plan.problem, static_cast<double>(kPanel), static_cast<double>(kColumns)) <=
                                static_cast<double>(plan.fast_memory_words);
      if (wide && dense) candidates.push_back(one_pass(plan, side, kColumns, 0));
      if (wide && sparse) {
        for (const std::int64_t rows : {kPanel, kPanel / 4}) candidates.push_back(gathered(plan, rows, kColumns));
      }
      if (side > 0 && sparse) propose_lists(plan, size, options, candidates);
    }
  }
  if (recompute && (two_passes_only || (!hardware && !sizes_given))) {
    if (options.backward_passes != BackwardPasses::one || options.parameter_gradients) {
      if (auto candidate = two_passes(plan, size, options)) candidates.push_back(std::move(*candidate));
    }
  }
  if (materialized && plan.fast_memory_words >= kLeastFastMemory) {
    for (const AttentionSize& local : local_sizes(size)) {
      CandidatePlan candidate = materialize(plan, local, fill, options);
      const auto same_tiles = [&](const CandidatePlan& other) {
        return other.products == candidate.products && other.cuts == candidate.cuts;
      };
      if (std::none_of(candidates.begin(), candidates.end(), same_tiles)) candidates.push_back(std::move(candidate));
    }
  }
  if (hardware) propose_whole_panels(plan, candidates);
  return candidates;
}

PlanData realize(const PlanData& plan, CandidatePlan candidate, const AttentionSize& size, const PlanOptions& options) {
  PlanData realized = cut_patterns(plan, candidate);
  const double backward_seconds = candidate.backward_seconds;
  // Where many keys of a wide tile have pairs, these do not fit: fewer rows or keys, down to a tile that would fit if
  // full.
  while (largest_residency(realized, candidate) > static_cast<double>(plan.fast_memory_words)) {
    std::optional<CandidatePlan> smaller = shrink(plan, candidate);
    if (!smaller) break;
    candidate = std::move(*smaller);
    realized = cut_patterns(plan, candidate);
  }
  if (options.parameter_gradients) choose_projections(realized, options);
  measure_store(realized);
  if (options.tile_sizes == TileSizes::hardware && !options.parameter_gradients) {
    share_rows(realized, least_task_pairs(realized, backward_seconds));
  }
  if (realized.schedule == Schedule::recompute && realized.backward_passes == BackwardPasses::one) {
    // The model counts one walk after another.
    if (options.tile_sizes == TileSizes::model) {
      leave_whole(realized);
    } else {
      cut_slices(realized, backward_seconds, options.element_bytes);
    }
  }
  const WalkTraffic forward = forward_traffic(realized);
  const WalkTraffic backward =
      options.parameter_gradients ? parameter_gradients_traffic(realized) : backward_traffic(realized);
  PlanCandidate& summary = candidate.summary;
  summary.forward_words = forward.words();
  summary.backward_words = backward.words();
  predict_by_formula(realized, size, {&candidate, 1});
  realized.candidates = {summary};
  return realized;
}

namespace {

/// `own_tiles`: the model's own of materialize, once a candidate has asked for them.
void predict_one(const PlanData& plan, const AttentionSize& size, std::optional<MaterializeTiles>& own_tiles,
                 CandidatePlan& candidate) {
  PlanCandidate& summary = candidate.summary;
  const auto heads = static_cast<double>(plan.problem.batch * plan.problem.query_heads);
  if (plan.parameter_gradients) {
    const bool materialized = summary.schedule == Schedule::materialize;
    const Traffic whole = materialized
                              ? materialize_parameter_gradients_traffic(size, plan.fast_memory_words)
                              : recompute_parameter_gradients_traffic(size, plan.fast_memory_words).value_or(Traffic{});
    summary.backward_formula_words = heads * whole.words();
  }
  const auto panel = [&](Product product) {
    const TileCut& cut = candidate.cut(product);
    return PanelTile{cut.row_panel, cut.column_panel, candidate.product(product).features};
  };
  if (summary.schedule == Schedule::materialize) {
    if (!own_tiles) own_tiles = choose_materialize(size, plan.fast_memory_words);
    summary.forward_formula_words = heads * materialize_forward_traffic(size, *own_tiles).words();
    if (!plan.parameter_gradients) {
      summary.backward_formula_words = heads * materialize_backward_traffic(size, *own_tiles).words();
    }
    return;
  }
  summary.forward_formula_words = heads * recompute_forward_traffic(size, panel(Product::forward)).words();
  if (plan.parameter_gradients) return;
  if (summary.backward_passes == BackwardPasses::two) {
    const RecomputeBackwardTiles tiles = {false, panel(Product::backward_rows), panel(Product::backward_columns)};
    summary.backward_formula_words = heads * recompute_backward_traffic(size, tiles).words();
    return;
  }
  // One pass: what the row pass moves, and dK, dV read and written for each panel that touches a key. Delta is a pass
  // before where rows pass by or come to each panel of keys.
  const ProductTiles& tiles = candidate.product(Product::backward_rows);
  const double times = tiles.rows_pass || tiles.panel_by_panel ? 3 : 2;
  const double rows = static_cast<double>(panel(Product::backward_rows).rows);
  const double visits = static_cast<double>(size.keys) * std::ceil(static_cast<double>(size.queries) / rows) *
                        touched_share(density(size), rows);
  const auto features = static_cast<double>(size.head_dim + size.value_dim);
  const auto queries = static_cast<double>(size.queries);
  summary.backward_formula_words =
      heads * (visits * 3 * features + static_cast<double>(size.keys) * features +
               queries * (2 * static_cast<double>(size.head_dim) + times * static_cast<double>(size.value_dim + 1)));
}

}  // namespace

void predict_by_formula(const PlanData& plan, const AttentionSize& size, std::span<CandidatePlan> candidates) {
  std::optional<MaterializeTiles> tiles;
  for (CandidatePlan& candidate : candidates) predict_one(plan, size, tiles, candidate);
}

}  // namespace cobble::detail
