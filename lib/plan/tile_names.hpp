#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/plan_data.hpp"

namespace cobble::detail {

/// Names the blocks and steps of one head's walk over a panel of rows, a panel of columns, or a tile.
class TileNames {
 public:
  TileNames(const PlanData& plan, const Head& head, Range rows) : plan_(plan), head_(head), rows_(rows) {}

  Range features() const { return {0, plan_.problem.head_dim}; }
  Range value_features() const { return {0, plan_.problem.value_dim}; }

  /// A block of the panel's rows: whole, or some of their features, or those rows alone that have a pair in a tile.
  Block rows(Operand operand, Range features) const { return {operand, head_, rows_, features, rows_.size()}; }
  Block rows(Operand operand, Range features, const PlanTile& tile) const {
    return {operand, head_, rows_, features, tile.touched_rows};
  }
  /// One value a row.
  Block statistic(Operand operand) const { return rows(operand, {0, 1}); }
  Block statistic(Operand operand, const PlanTile& tile) const { return rows(operand, {0, 1}, tile); }
  /// A block of keys.
  Block keys(Operand operand, Range keys, Range features) const {
    return {operand, head_, keys, features, keys.size()};
  }
  Block keys(Operand operand, const PlanTile& tile, Range features) const {
    return {operand, head_, tile.columns(), features, tile.touched_columns};
  }
  Block pairs(Operand operand, const PlanTile& tile) const {
    return {operand, head_, rows_, tile.columns(), plan_.width(tile), tile.pairs, tile.kind};
  }

  Step step(Operation operation, const PlanTile& tile, Range features) const {
    return {operation, head_, rows_, tile.columns(), features, tile.pairs, tile.kind};
  }
  /// A step on the pairs of a tile, or on rows, that concerns no features.
  Step step(Operation operation, const PlanTile& tile) const { return step(operation, tile, {}); }
  Step step(Operation operation) const { return {operation, head_, rows_, {}, {}, 0, TileKind::empty}; }

 private:
  const PlanData& plan_;
  Head head_;
  Range rows_;
};

/// Calls visit(chunk) for `features` cut into chunks of `width`.
template <class Visit>
void for_each_chunk(Range features, std::int64_t width, Visit&& visit) {
  for (std::int64_t begin = features.begin; begin < features.end; begin += width) {
    visit(Range{begin, std::min(begin + width, features.end)});
  }
}

/// Brings the streamed side of a tile to fast memory: all of it, or `streamed` tokens at a time.
inline void bring(const Block& block, std::int64_t streamed, WalkVisitor& visitor) {
  if (streamed == 0) {
    visitor.load(block);
  } else {
    visitor.stream(block, streamed * block.columns.size(), Stream::in);
  }
}

/// delta of a panel of rows, stored; dO is in fast memory, where delta stays.
inline void create_delta(const TileNames& names, WalkVisitor& visitor) {
  const Block delta = names.statistic(Operand::delta);
  const Block output = names.rows(Operand::output, names.value_features());
  visitor.create(delta);
  visitor.stream(output, 1, Stream::in);
  visitor.compute(names.step(Operation::delta));
  visitor.drop(output);
  visitor.store(delta);
}

/// The same by itself, dO passing by.
inline void walk_delta(const TileNames& names, WalkVisitor& visitor) {
  const Block grad_output = names.rows(Operand::grad_output, names.value_features());
  visitor.stream(grad_output, 1, Stream::in);
  create_delta(names, visitor);
  visitor.drop(grad_output);
  visitor.drop(names.statistic(Operand::delta));
}

/// P and dS of a tile of backward_rows, created; everything about the rows is in fast memory. Returns the keys, which
/// are there too and are dropped by the caller.
inline Block walk_grad_scores(const PlanData& plan, const TileNames& names, const PlanTile& tile,
                              WalkVisitor& visitor) {
  const ProductTiles& sizes = plan.product(Product::backward_rows);
  visitor.create(names.pairs(Operand::grad_score, tile));
  for_each_chunk(names.value_features(), sizes.features, [&](Range features) {
    const Block value = names.keys(Operand::value, tile, features);
    bring(value, sizes.streamed, visitor);
    visitor.compute(names.step(Operation::grad_probabilities, tile, features));
    visitor.drop(value);
  });
  const Block key = names.keys(Operand::key, tile, names.features());
  visitor.create(names.pairs(Operand::score, tile));
  bring(key, sizes.streamed, visitor);
  visitor.compute(names.step(Operation::scores, tile, names.features()));
  visitor.compute(names.step(Operation::probabilities, tile));
  visitor.compute(names.step(Operation::grad_scores, tile));
  return key;
}

/// A task's share of a sum over panels: `first` of the slice begins it.
struct Slice {
  std::int64_t index = 0;
  bool first = true;
};

/// Into how many slices the sum over `tokens` is cut: enough for some threads, too few to matter for the traffic.
inline std::int64_t slices(const PlanData& plan, std::int64_t tokens, std::int64_t panels) {
  constexpr std::int64_t kMost = 16;
  const std::int64_t cheap = tokens / (8 * std::max(plan.problem.head_dim, plan.problem.value_dim));
  return std::max<std::int64_t>(1, std::min({cheap, kMost, panels}));
}

/// Folds the gradient of a panel of rows (of keys) into the gradient of the weights, with the panel's input passing by.
inline void fold(const TileNames& names, const Block& sums, Operation operation, Range input_features, Slice slice,
                 WalkVisitor& visitor) {
  const bool query = operation == Operation::fold_query;
  Block input = sums;
  input.operand = query ? Operand::query_input : Operand::value_input;
  input.columns = input_features;
  Block weights = sums;
  weights.operand = query ? Operand::grad_score_weights : Operand::grad_value_weights;
  weights.rows = input_features;
  weights.tokens = input_features.size();
  weights.slice = slice.index;
  // One feature of the input at a time is there for the whole panel.
  visitor.stream(input, sums.rows.size(), Stream::in);
  visitor.stream(weights, 1, slice.first ? Stream::out : Stream::in_out);
  Step step = names.step(operation);
  (query ? step.rows : step.keys) = sums.rows;
  step.features = sums.columns;
  visitor.compute(step);
  visitor.drop(input);
  visitor.drop(weights);
}

/// A phase over the row panels of a product, of all query heads. walk(head, row_panel, visitor).
template <class Walk>
void consume_row_panels(const PlanData& plan, Product product, std::string_view name, const PhaseConsumer& consume,
                        Walk walk) {
  const std::int64_t panels = plan.row_panels(product);
  const std::int64_t heads = plan.problem.query_heads;
  consume({name, plan.problem.batch * heads * panels, [&plan, panels, heads, walk](std::int64_t task, WalkVisitor& v) {
             const std::int64_t query = task / panels % heads;
             walk(Head{task / panels / heads, query, query / plan.heads_per_group()}, task % panels, v);
           }});
}

/// A phase over the column panels of a product, of all key/value heads. walk(head, column_panel, visitor); the head's
/// query is the first of its group.
template <class Walk>
void consume_column_panels(const PlanData& plan, Product product, std::string_view name, const PhaseConsumer& consume,
                           Walk walk) {
  const std::int64_t panels = plan.column_panels(product);
  const std::int64_t heads = plan.problem.key_value_heads;
  consume({name, plan.problem.batch * heads * panels, [&plan, panels, heads, walk](std::int64_t task, WalkVisitor& v) {
             const std::int64_t key_value = task / panels % heads;
             walk(Head{task / panels / heads, key_value * plan.heads_per_group(), key_value}, task % panels, v);
           }});
}

}  // namespace cobble::detail
