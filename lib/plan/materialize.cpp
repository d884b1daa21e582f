#include "plan/materialize.hpp"

#include "plan/tile_names.hpp"

namespace cobble::detail {
namespace {

/// One score product: a tile of pairs stays while chunks of the features of its rows and columns pass.
struct ScoreProduct {
  Product product;
  Operation operation;
  Operand rows;
  Operand keys;
};
constexpr ScoreProduct kScores = {Product::scores, Operation::scores, Operand::query, Operand::key};
constexpr ScoreProduct kGradProbabilities = {Product::grad_probabilities, Operation::grad_probabilities,
                                             Operand::grad_output, Operand::value};

void multiply_score_tile(const PlanData& plan, const ScoreProduct& what, Range features, const TileNames& names,
                         const PlanTile& tile, WalkVisitor& visitor) {
  const ProductTiles& sizes = plan.product(what.product);
  for_each_chunk(features, sizes.features, [&](Range chunk) {
    const Block rows = names.rows(what.rows, chunk, tile);
    const Block keys = names.keys(what.keys, tile, chunk);
    visitor.load(rows);
    visitor.stream(keys, sizes.streamed * chunk.size(), Stream::in);
    visitor.compute(names.step(what.operation, tile, chunk));
    visitor.drop(rows);
    visitor.drop(keys);
  });
}

/// Row statistics pass through two words, tile by tile; the scores stay as they are.
void forward_score_panel(const PlanData& plan, const Head& head, std::int64_t row_panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(Product::scores, row_panel));
  const auto stream_statistics = [&](const Block& maximum, const Block& sum, Stream direction, const Step& step) {
    visitor.stream(maximum, 1, direction);
    visitor.stream(sum, 1, direction);
    visitor.compute(step);
  };
  const Block maximum = names.statistic(Operand::row_maximum);
  const Block sum = names.statistic(Operand::row_sum);
  const Block lse = names.statistic(Operand::lse);
  const auto tiles = plan.tiles(Product::scores, head).row(row_panel);
  for (const PlanTile& tile : tiles) {
    const bool first = &tile == tiles.data();
    const Block score = names.pairs(Operand::score, tile);
    const Block tile_maximum = first ? maximum : names.statistic(Operand::row_maximum, tile);
    const Block tile_sum = first ? sum : names.statistic(Operand::row_sum, tile);
    visitor.create(score);
    multiply_score_tile(plan, kScores, names.features(), names, tile, visitor);
    stream_statistics(tile_maximum, tile_sum, first ? Stream::out : Stream::in_out,
                      names.step(Operation::row_statistics, tile));
    visitor.drop(tile_maximum);
    visitor.drop(tile_sum);
    visitor.store(score);
    visitor.drop(score);
  }
  visitor.stream(lse, 1, Stream::out);
  stream_statistics(maximum, sum, tiles.empty() ? Stream::out : Stream::in, names.step(Operation::finish_lse));
  for (const Block& block : {maximum, sum, lse}) visitor.drop(block);
}

/// One value product of a panel of rows: a chunk of the output's features stays while pairs and keys pass.
struct RowProduct {
  Product product;
  Operation operation;
  Operand pairs;
  Operand keys;
  Operand sums;
};
constexpr RowProduct kOutput = {Product::output, Operation::accumulate_output, Operand::score, Operand::value,
                                Operand::output};
constexpr RowProduct kGradQuery = {Product::grad_query, Operation::grad_query, Operand::grad_score, Operand::key,
                                   Operand::grad_query};

void row_product_panel(const PlanData& plan, const RowProduct& what, Range features, const Head& head,
                       std::int64_t row_panel, Slice slice, WalkVisitor& visitor) {
  const ProductTiles& sizes = plan.product(what.product);
  const TileNames names(plan, head, plan.row_range(what.product, row_panel));
  const bool from_scores = what.operation == Operation::accumulate_output;
  const Block lse = names.statistic(Operand::lse);
  if (from_scores) visitor.load(lse);
  for_each_chunk(features, sizes.features, [&](Range chunk) {
    const Block sums = names.rows(what.sums, chunk);
    visitor.create(sums);
    for (const PlanTile& tile : plan.tiles(what.product, head).row(row_panel)) {
      const Block pairs = names.pairs(what.pairs, tile);
      const Block keys = names.keys(what.keys, tile, chunk);
      visitor.stream(pairs, 1, Stream::in);
      if (from_scores) visitor.compute(names.step(Operation::probabilities, tile));
      visitor.stream(keys, sizes.streamed * chunk.size(), Stream::in);
      visitor.compute(names.step(what.operation, tile, chunk));
      visitor.drop(keys);
      visitor.drop(pairs);
    }
    if (plan.parameter_gradients && what.operation == Operation::grad_query) {
      fold(names, sums, Operation::fold_query, names.features(), slice, visitor);
    } else {
      visitor.store(sums);
    }
    visitor.drop(sums);
  });
  if (from_scores) visitor.drop(lse);
}

/// One value product of a panel of keys: a chunk of their gradient's features stays while pairs and rows pass.
struct ColumnProduct {
  Product product;
  Operation operation;
  Operand pairs;
  Operand rows;
  Operand sums;
};
constexpr ColumnProduct kGradValue = {Product::grad_value, Operation::grad_value, Operand::score, Operand::grad_output,
                                      Operand::grad_value};
constexpr ColumnProduct kGradKey = {Product::grad_key, Operation::grad_key, Operand::grad_score, Operand::query,
                                    Operand::grad_key};

void column_product_panel(const PlanData& plan, const ColumnProduct& what, Range features, const Head& head,
                          std::int64_t column_panel, Slice slice, WalkVisitor& visitor) {
  const ProductTiles& sizes = plan.product(what.product);
  const Range keys = plan.column_range(what.product, column_panel);
  const TileNames columns(plan, head, {});
  const TileList& list = plan.tiles(what.product, head);
  const bool first_of_group = head.query % plan.heads_per_group() == 0;
  for_each_chunk(features, sizes.features, [&](Range chunk) {
    const Block sums = columns.keys(what.sums, keys, chunk);
    if (first_of_group || plan.parameter_gradients) {
      visitor.create(sums);
    } else {
      visitor.load(sums);
    }
    for (const TileList::Reference& reference : list.column(column_panel)) {
      const PlanTile& tile = list.tiles[static_cast<std::size_t>(reference.tile)];
      const TileNames names(plan, head, plan.row_range(what.product, reference.row_panel));
      const Block pairs = names.pairs(what.pairs, tile);
      const Block rows = names.rows(what.rows, chunk, tile);
      visitor.stream(pairs, 1, Stream::in);
      visitor.stream(rows, sizes.streamed * chunk.size(), Stream::in);
      visitor.compute(names.step(what.operation, tile, chunk));
      visitor.drop(rows);
      visitor.drop(pairs);
    }
    if (plan.parameter_gradients) {
      fold(columns, sums, Operation::fold_value, columns.features(), {slice.index, slice.first && first_of_group},
           visitor);
    } else {
      visitor.store(sums);
    }
    visitor.drop(sums);
  });
}

void probability_panel(const PlanData& plan, const Head& head, std::int64_t row_panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(Product::scores, row_panel));
  for (const PlanTile& tile : plan.tiles(Product::scores, head).row(row_panel)) {
    const Block score = names.pairs(Operand::score, tile);
    const Block lse = names.statistic(Operand::lse, tile);
    visitor.create(score);
    multiply_score_tile(plan, kScores, names.features(), names, tile, visitor);
    visitor.stream(lse, 1, Stream::in);
    visitor.compute(names.step(Operation::probabilities, tile));
    visitor.drop(lse);
    visitor.store(score);
    visitor.drop(score);
  }
}

/// dP, and dS in its place. The LSE says which rows are empty.
void grad_score_panel(const PlanData& plan, const Head& head, std::int64_t row_panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(Product::grad_probabilities, row_panel));
  for (const PlanTile& tile : plan.tiles(Product::grad_probabilities, head).row(row_panel)) {
    const Block grad_score = names.pairs(Operand::grad_score, tile);
    visitor.create(grad_score);
    multiply_score_tile(plan, kGradProbabilities, names.value_features(), names, tile, visitor);
    const Block passing[] = {names.pairs(Operand::score, tile), names.statistic(Operand::lse, tile),
                             names.statistic(Operand::delta, tile)};
    for (const Block& block : passing) visitor.stream(block, 1, Stream::in);
    visitor.compute(names.step(Operation::grad_scores, tile));
    for (const Block& block : passing) visitor.drop(block);
    visitor.store(grad_score);
    visitor.drop(grad_score);
  }
}

/// A phase over the row panels of one head.
template <class Walk>
void consume_rows(const PlanData& plan, Product product, std::string_view name, const PhaseConsumer& consume,
                  Walk walk) {
  consume({name, plan.row_panels(product), walk});
}

/// A phase whose tasks are slices of one head's panels. walk(panel, slice, visitor).
template <class Walk>
void consume_slices(const PlanData& plan, std::int64_t tokens, std::int64_t panels, std::string_view name,
                    const PhaseConsumer& consume, Walk walk) {
  const std::int64_t count = slices(plan, tokens, panels);
  consume({name, count, [=](std::int64_t task, WalkVisitor& visitor) {
             const std::int64_t first = panels * task / count;
             for (std::int64_t panel = first; panel < panels * (task + 1) / count; ++panel) {
               walk(panel, Slice{task, panel == first}, visitor);
             }
           }});
}

/// Calls visit(head) for every query head, those of a key/value head one after another.
template <class Visit>
void for_each_head(const PlanData& plan, Visit&& visit) {
  for (std::int64_t batch = 0; batch < plan.problem.batch; ++batch) {
    for (std::int64_t query = 0; query < plan.problem.query_heads; ++query) {
      visit(Head{batch, query, query / plan.heads_per_group()});
    }
  }
}

}  // namespace

void materialize_forward(const PlanData& plan, const PhaseConsumer& consume) {
  const Range value_features{0, plan.problem.value_dim};
  for_each_head(plan, [&](const Head& head) {
    consume_rows(plan, Product::scores, "scores", consume,
                 [&](std::int64_t task, WalkVisitor& visitor) { forward_score_panel(plan, head, task, visitor); });
    consume_rows(plan, Product::output, "output", consume, [&](std::int64_t task, WalkVisitor& visitor) {
      row_product_panel(plan, kOutput, value_features, head, task, {}, visitor);
    });
  });
}

void materialize_backward(const PlanData& plan, const PhaseConsumer& consume) {
  const Range features{0, plan.problem.head_dim};
  const Range value_features{0, plan.problem.value_dim};
  const auto columns_of = [&](const ColumnProduct& what, Range columns, std::string_view name, const Head& head) {
    const auto walk = [&plan, &what, columns, head](std::int64_t panel, Slice slice, WalkVisitor& visitor) {
      column_product_panel(plan, what, columns, head, panel, slice, visitor);
    };
    if (plan.parameter_gradients) {
      return consume_slices(plan, plan.patterns.columns(), plan.column_panels(what.product), name, consume, walk);
    }
    consume({name, plan.column_panels(what.product),
             [&](std::int64_t task, WalkVisitor& visitor) { walk(task, {}, visitor); }});
  };
  consume_row_panels(plan, Product::scores, "delta", consume,
                     [&plan](const Head& head, std::int64_t panel, WalkVisitor& visitor) {
                       walk_delta(TileNames(plan, head, plan.row_range(Product::scores, panel)), visitor);
                     });
  for_each_head(plan, [&](const Head& head) {
    consume_rows(plan, Product::scores, "probabilities", consume,
                 [&](std::int64_t task, WalkVisitor& visitor) { probability_panel(plan, head, task, visitor); });
    consume_rows(plan, Product::grad_probabilities, "grad_scores", consume,
                 [&](std::int64_t task, WalkVisitor& visitor) { grad_score_panel(plan, head, task, visitor); });
    const auto walk_rows = [&](std::int64_t panel, Slice slice, WalkVisitor& visitor) {
      row_product_panel(plan, kGradQuery, features, head, panel, slice, visitor);
    };
    if (plan.parameter_gradients) {
      consume_slices(plan, plan.patterns.rows(), plan.row_panels(Product::grad_query), "grad_query", consume,
                     walk_rows);
    } else {
      consume_rows(plan, Product::grad_query, "grad_query", consume,
                   [&](std::int64_t task, WalkVisitor& visitor) { walk_rows(task, {}, visitor); });
    }
    columns_of(kGradValue, value_features, "grad_value", head);
    if (!plan.parameter_gradients) columns_of(kGradKey, features, "grad_key", head);  // K = A2 is no parameter
  });
}

}  // namespace cobble::detail
