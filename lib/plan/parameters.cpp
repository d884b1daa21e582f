#include "plan/parameters.hpp"

#include "core/checked.hpp"
#include "plan/recompute.hpp"
#include "plan/tile_names.hpp"
#include "plan/traffic_counter.hpp"

namespace cobble::detail {
namespace {

/// One product with the weights.
struct Projection {
  Operation operation;
  Operand input;
  Operand weights;
  Operand result;
};
constexpr Projection kQuery = {Operation::project_query, Operand::query_input, Operand::score_weights, Operand::query};
constexpr Projection kValue = {Operation::project_value, Operand::value_input, Operand::value_weights, Operand::value};

Block block(Operand operand, const Head& head, Range rows, Range columns) {
  return {operand, head, rows, columns, rows.size()};
}

/// A panel of rows of the result, tile by tile.
void project_panel(const Projection& what, const ProjectionTiles& tiles, const Head& head, Range rows, Range inner,
                   Range outer, WalkVisitor& visitor) {
  for_each_chunk(outer, tiles.columns, [&](Range columns) {
    const Block result = block(what.result, head, rows, columns);
    visitor.create(result);
    for_each_chunk(inner, tiles.features, [&](Range chunk) {
      const Block input = block(what.input, head, rows, chunk);
      const Block weights = block(what.weights, head, chunk, columns);
      visitor.load(input);
      visitor.stream(weights, tiles.streamed * chunk.size(), Stream::in);
      visitor.compute({what.operation, head, rows, columns, chunk, 0, TileKind::full});
      visitor.drop(input);
      visitor.drop(weights);
    });
    visitor.store(result);
    visitor.drop(result);
  });
}

void consume_projection(const PlanData& plan, const Projection& what, const ProjectionTiles& tiles, std::int64_t tokens,
                        std::int64_t heads, std::int64_t outer, std::string_view name, const PhaseConsumer& consume) {
  const std::int64_t panels = divide_up(tokens, tiles.rows);
  const bool query = what.operation == Operation::project_query;
  consume({name, plan.problem.batch * heads * panels, [&, panels, query](std::int64_t task, WalkVisitor& visitor) {
             const std::int64_t index = task / panels % heads;
             const std::int64_t group = plan.heads_per_group();
             const Head head = {task / panels / heads, query ? index : index * group, query ? index / group : index};
             const std::int64_t begin = task % panels * tiles.rows;
             project_panel(what, tiles, head, {begin, std::min(begin + tiles.rows, tokens)}, {0, plan.problem.head_dim},
                           {0, outer}, visitor);
           }});
}

/// Adds slices 1, 2, ... of a head's gradient to slice 0, a word at a time.
void add_slices(Operand operand, Operation operation, const Head& head, std::int64_t count, Range rows, Range columns,
                WalkVisitor& visitor) {
  for (std::int64_t slice = 1; slice < count; ++slice) {
    const Block sum = block(operand, head, rows, columns);
    Block part = sum;
    part.slice = slice;
    visitor.stream(part, 1, Stream::in);
    visitor.stream(sum, 1, Stream::in_out);
    visitor.compute({operation, head, rows, {}, columns, 0, TileKind::empty});
    visitor.drop(part);
    visitor.drop(sum);
  }
}

}  // namespace

SliceCounts slice_counts(const PlanData& plan) noexcept {
  const bool materialized = plan.schedule == Schedule::materialize;
  const Product rows = materialized ? Product::grad_query : Product::backward_rows;
  const Product columns = materialized ? Product::grad_value : Product::backward_columns;
  return {slices(plan, plan.patterns.rows(), plan.row_panels(rows)),
          slices(plan, plan.patterns.columns(), plan.column_panels(columns))};
}

void projection_phases(const PlanData& plan, const PhaseConsumer& consume) {
  consume_projection(plan, kQuery, plan.project_query, plan.patterns.rows(), plan.problem.query_heads,
                     plan.problem.head_dim, "query", consume);
  consume_projection(plan, kValue, plan.project_value, plan.patterns.columns(), plan.problem.key_value_heads,
                     plan.problem.value_dim, "value", consume);
}

void parameter_gradient_phases(const PlanData& plan, const PhaseConsumer& consume) {
  projection_phases(plan, consume);
  forward_phases(plan, consume);
  if (plan.schedule == Schedule::materialize) {
    backward_phases(plan, consume);
  } else {
    recompute_folded_backward(plan, consume);
  }
  const SliceCounts counts = slice_counts(plan);
  const std::int64_t query_heads = plan.problem.query_heads;
  const std::int64_t key_value_heads = plan.problem.key_value_heads;
  const Range features = {0, plan.problem.head_dim};
  consume({"score_weights", plan.problem.batch * query_heads, [&](std::int64_t task, WalkVisitor& visitor) {
             const std::int64_t query = task % query_heads;
             add_slices(Operand::grad_score_weights, Operation::add_score_weight_slice,
                        {task / query_heads, query, query / plan.heads_per_group()}, counts.score_weights, features,
                        features, visitor);
           }});
  consume({"value_weights", plan.problem.batch * key_value_heads, [&](std::int64_t task, WalkVisitor& visitor) {
             const std::int64_t key_value = task % key_value_heads;
             add_slices(Operand::grad_value_weights, Operation::add_value_weight_slice,
                        {task / key_value_heads, key_value * plan.heads_per_group(), key_value}, counts.value_weights,
                        features, {0, plan.problem.value_dim}, visitor);
           }});
}

WalkTraffic parameter_gradients_traffic(const PlanData& plan) { return count_traffic(plan, parameter_gradient_phases); }

}  // namespace cobble::detail
