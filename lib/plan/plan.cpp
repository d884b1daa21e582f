#include "cobble/plan.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "cobble/fast_memory.hpp"
#include "cobble/model.hpp"
#include "core/checked.hpp"
#include "pattern/tile_classifier.hpp"
#include "plan/plan_data.hpp"

namespace cobble {
namespace {

using detail::PlanData;
using detail::TileClassifier;
using detail::TileList;

/// Panels of a tile that the dense kernels like, and of a column panel when tiles are too sparse for them.
constexpr std::int64_t kPanel = 64;
constexpr std::int64_t kWidePanel = 4096;

void require_positive(std::int64_t value, const char* name) {
  if (value < 1) {
    throw Error(ErrorCode::invalid_argument,
                std::string(name) + " = " + std::to_string(value) + ", expected at least 1");
  }
}

void require_not_negative(std::int64_t value, const char* name) {
  if (value < 0) {
    throw Error(ErrorCode::invalid_argument,
                std::string(name) + " = " + std::to_string(value) + ", expected 0 (automatic) or more");
  }
}

Problem completed(Problem problem) {
  require_positive(problem.head_dim, "head_dim");
  require_not_negative(problem.value_dim, "value_dim");
  require_positive(problem.query_heads, "query_heads");
  require_not_negative(problem.key_value_heads, "key_value_heads");
  require_positive(problem.batch, "batch");
  if (problem.value_dim == 0) problem.value_dim = problem.head_dim;
  if (problem.key_value_heads == 0) problem.key_value_heads = problem.query_heads;
  if (problem.query_heads % problem.key_value_heads != 0) {
    throw Error(ErrorCode::invalid_argument,
                "key_value_heads = " + std::to_string(problem.key_value_heads) +
                    " does not divide query_heads = " + std::to_string(problem.query_heads));
  }
  if (!problem.scale) problem.scale = 1 / std::sqrt(static_cast<double>(problem.head_dim));
  if (!std::isfinite(*problem.scale)) {
    throw Error(ErrorCode::invalid_argument, "scale = " + std::to_string(*problem.scale) + " is not finite");
  }
  return problem;
}

void require_broadcast(std::int64_t grid_size, std::int64_t size, const char* axis) {
  if (grid_size != 1 && grid_size != size) {
    throw Error(ErrorCode::shape_mismatch, std::string("the patterns have ") + axis + " = " +
                                               std::to_string(grid_size) + ", the problem " + std::to_string(size) +
                                               "; expected that or 1");
  }
}

/// Words resident while a tile of rows x columns is worked on: query, output and two row statistics of the rows, one
/// panel of keys or values, and the tile's scores.
double resident_words(const Problem& problem, double rows, double columns) {
  const auto d = static_cast<double>(problem.head_dim);
  const auto d_v = static_cast<double>(problem.value_dim);
  return rows * (d + d_v + 3) + columns * std::max(d, d_v) + rows * columns;
}

/// The largest square tile up to kPanel that fits fast memory.
std::int64_t square_panel(const Problem& problem, std::int64_t fast_memory_words) {
  const auto fits = [&](std::int64_t side) {
    const auto size = static_cast<double>(side);
    return resident_words(problem, size, size) <= static_cast<double>(fast_memory_words);
  };
  std::int64_t side = kPanel;
  while (side > 1 && !fits(side)) side = side > 16 ? side - 16 : side - 1;
  if (!fits(side)) {
    throw Error(ErrorCode::infeasible,
                "fast memory of " + std::to_string(fast_memory_words) +
                    " words holds no tile of one query and one key" +
                    " with head_dim = " + std::to_string(problem.head_dim) +
                    " and value_dim = " + std::to_string(problem.value_dim) + "; the recompute schedule needs " +
                    std::to_string(static_cast<std::int64_t>(resident_words(problem, 1, 1))) + " words");
  }
  return side;
}

/// The share of pairs in the non-empty tiles of a sample of row panels.
double sampled_fill(const PatternGrid& patterns, std::int64_t row_panel, std::int64_t column_panel) {
  constexpr std::int64_t kSamples = 64;
  const std::int64_t panels = divide_up(patterns.rows(), row_panel);
  const std::int64_t samples = std::min(panels, kSamples);
  TileClassifier classifier(patterns.columns(), column_panel);
  std::vector<PatternTile> tiles;
  double pairs = 0;
  double places = 0;
  for (const Pattern& pattern : patterns.patterns()) {
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      const std::int64_t begin = panels * sample / samples * row_panel;
      const std::int64_t end = std::min(begin + row_panel, patterns.rows());
      classifier.classify(pattern.node(), begin, end, tiles);
      for (const PatternTile& tile : tiles) pairs += static_cast<double>(tile.pairs);
      places += static_cast<double>(tiles.size()) * static_cast<double>((end - begin) * column_panel);
    }
  }
  return places == 0 ? 1 : pairs / places;
}

TileList classify(const PlanData& plan, const Pattern& pattern) {
  TileList list;
  TileClassifier classifier(pattern.columns(), plan.column_panel);
  std::vector<PatternTile> tiles;
  list.row_offsets.reserve(static_cast<std::size_t>(plan.row_panels()) + 1);
  list.row_offsets.push_back(0);
  for (std::int64_t panel = 0; panel < plan.row_panels(); ++panel) {
    const detail::Range rows = plan.row_range(panel);
    classifier.classify(pattern.node(), rows.begin, rows.end, tiles);
    for (const PatternTile& tile : tiles) list.pairs += tile.pairs;
    list.tiles.insert(list.tiles.end(), tiles.begin(), tiles.end());
    list.row_offsets.push_back(static_cast<std::int64_t>(list.tiles.size()));
  }
  list.tiles.shrink_to_fit();
  return list;
}

/// Fills in how many pair values row panels and key/value heads store.
void measure_store(PlanData& plan) {
  std::vector<std::int64_t> pattern_values;
  for (const TileList& list : plan.tile_lists) {
    std::int64_t total = 0;
    for (std::int64_t panel = 0; panel < plan.row_panels(); ++panel) {
      std::int64_t values = 0;
      for (const PatternTile& tile : list.row(panel)) {
        const std::int64_t columns = plan.column_range(tile.column_panel).size();
        const std::int64_t places = detail::tile_layout(plan.row_range(panel).size(), columns, tile.pairs).values;
        plan.largest_tile = std::max(plan.largest_tile, places);
        values += places;
      }
      plan.largest_row_panel_store = std::max(plan.largest_row_panel_store, values);
      total = checked_sum(total, values, "the stored pairs of a head");
    }
    pattern_values.push_back(total);
  }
  for (std::int64_t batch = 0; batch < plan.problem.batch; ++batch) {
    for (std::int64_t key_value = 0; key_value < plan.problem.key_value_heads; ++key_value) {
      std::int64_t values = 0;
      for (std::int64_t member = 0; member < plan.heads_per_group(); ++member) {
        const std::int64_t index = plan.patterns.index(batch, key_value * plan.heads_per_group() + member);
        values = checked_sum(values, pattern_values[static_cast<std::size_t>(index)], "the stored pairs of a head");
      }
      plan.largest_group_store = std::max(plan.largest_group_store, values);
    }
  }
}

std::int64_t count_total_pairs(const PlanData& plan) {
  std::int64_t total = 0;
  for (std::int64_t batch = 0; batch < plan.problem.batch; ++batch) {
    for (std::int64_t head = 0; head < plan.problem.query_heads; ++head) {
      const auto index = static_cast<std::size_t>(plan.patterns.index(batch, head));
      total = checked_sum(total, plan.tile_lists[index].pairs, "pairs of all heads");
    }
  }
  return total;
}

}  // namespace

std::string_view to_string(Schedule schedule) noexcept {
  switch (schedule) {
    case Schedule::automatic: return "auto";
    case Schedule::recompute: return "recompute";
    case Schedule::materialize: return "materialize";
  }
  return "unknown";
}

const Problem& Plan::problem() const noexcept { return data_->problem; }
const PatternGrid& Plan::patterns() const noexcept { return data_->patterns; }
std::int64_t Plan::total_pairs() const noexcept { return data_->total_pairs; }
Schedule Plan::schedule() const noexcept { return data_->schedule; }
Regime Plan::regime() const noexcept { return data_->regime; }
double Plan::split_point() const noexcept { return data_->split_point; }
std::int64_t Plan::fast_memory_words() const noexcept { return data_->fast_memory_words; }
std::int64_t Plan::row_panel() const noexcept { return data_->row_panel; }
std::int64_t Plan::column_panel() const noexcept { return data_->column_panel; }
std::int64_t Plan::feature_chunk() const noexcept { return data_->problem.head_dim; }

std::int64_t Plan::tiles() const noexcept {
  std::int64_t tiles = 0;
  for (const TileList& list : data_->tile_lists) tiles += static_cast<std::int64_t>(list.tiles.size());
  return tiles;
}

std::int64_t Plan::memory_bytes() const noexcept {
  std::size_t bytes = sizeof(PlanData);
  for (const TileList& list : data_->tile_lists) {
    bytes += sizeof(TileList) + list.row_offsets.capacity() * sizeof(std::int64_t) +
             list.tiles.capacity() * sizeof(PatternTile);
  }
  return static_cast<std::int64_t>(bytes);
}

std::int64_t Plan::workspace_bytes(std::int64_t threads, std::int64_t element_bytes) const noexcept {
  return detail::workspace_values(*data_, threads) * element_bytes;
}

Plan make_plan(PatternGrid patterns, const Problem& problem, const PlanOptions& options) {
  require_not_negative(options.fast_memory_bytes, "fast_memory_bytes");
  require_positive(options.element_bytes, "element_bytes");
  require_not_negative(options.row_panel, "row_panel");
  require_not_negative(options.column_panel, "column_panel");

  auto data = std::make_shared<PlanData>(PlanData{.problem = completed(problem), .patterns = std::move(patterns)});
  PlanData& plan = *data;
  require_broadcast(plan.patterns.batch(), plan.problem.batch, "batch");
  require_broadcast(plan.patterns.heads(), plan.problem.query_heads, "heads");

  const std::int64_t bytes = options.fast_memory_bytes > 0 ? options.fast_memory_bytes : default_fast_memory_bytes();
  plan.fast_memory_words = bytes / options.element_bytes;
  const std::int64_t side = square_panel(plan.problem, plan.fast_memory_words);
  plan.row_panel = options.row_panel > 0 ? options.row_panel : side;
  plan.column_panel = options.column_panel > 0 ? options.column_panel : side;
  if (options.column_panel == 0 && side == kPanel &&
      sampled_fill(plan.patterns, plan.row_panel, plan.column_panel) * detail::kSparseTileFill < 1) {
    plan.column_panel = kWidePanel;
  }
  // A panel no higher than the pattern: scratch memory follows the panels.
  plan.row_panel = std::max<std::int64_t>(1, std::min(plan.row_panel, plan.patterns.rows()));
  plan.column_panel = std::max<std::int64_t>(1, std::min(plan.column_panel, plan.patterns.columns()));

  for (const Pattern& pattern : plan.patterns.patterns()) plan.tile_lists.push_back(classify(plan, pattern));
  plan.total_pairs = count_total_pairs(plan);
  measure_store(plan);

  const auto tokens = static_cast<double>(std::max(plan.patterns.rows(), plan.patterns.columns()));
  const double z_input = tokens * static_cast<double>(std::max(plan.problem.head_dim, plan.problem.value_dim));
  const double heads = static_cast<double>(plan.problem.batch) * static_cast<double>(plan.problem.query_heads);
  plan.split_point = split_point(z_input, static_cast<double>(plan.total_pairs) / heads);
  plan.regime = regime(plan.fast_memory_words, plan.split_point);
  if (options.schedule == Schedule::materialize) {
    throw Error(ErrorCode::unsupported, "the materialize schedule does not exist yet");
  }
  return Plan(std::move(data));
}

}  // namespace cobble
