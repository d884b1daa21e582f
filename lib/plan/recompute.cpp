#include "plan/recompute.hpp"

#include <vector>

#include "plan/tile_names.hpp"

namespace cobble::detail {
namespace {

void forward_row_panel(const PlanData& plan, const Head& head, std::int64_t row_panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(Product::forward, row_panel));
  const ProductTiles& sizes = plan.product(Product::forward);
  const Block query = names.rows(Operand::query, names.features());
  const Block output = names.rows(Operand::output, names.value_features());
  const Block row_maximum = names.statistic(Operand::row_maximum);
  const Block row_sum = names.statistic(Operand::row_sum);
  visitor.load(query);
  for (const Block& block : {output, row_maximum, row_sum}) visitor.create(block);
  for (const PlanTile& tile : plan.tiles(Product::forward, head).row(row_panel)) {
    const Block score = names.pairs(Operand::score, tile);
    visitor.create(score);
    for_each_chunk(names.features(), sizes.features, [&](Range features) {
      const Block key = names.keys(Operand::key, tile, features);
      bring(key, sizes.streamed, visitor);
      visitor.compute(names.step(Operation::scores, tile, features));
      visitor.drop(key);
    });
    visitor.compute(names.step(Operation::online_softmax, tile));
    for_each_chunk(names.value_features(), sizes.features, [&](Range features) {
      const Block value = names.keys(Operand::value, tile, features);
      bring(value, sizes.streamed, visitor);
      visitor.compute(names.step(Operation::accumulate_output, tile, features));
      visitor.drop(value);
    });
    visitor.drop(score);
  }
  const Block lse = names.statistic(Operand::lse);
  visitor.drop(query);
  visitor.create(lse);
  visitor.compute(names.step(Operation::finish_output));
  visitor.store(output);
  visitor.store(lse);
  for (const Block& block : {output, row_maximum, row_sum, lse}) visitor.drop(block);
}

/// P and dS of a tile, and its part of dQ; everything about the rows is in fast memory. Both stay there.
void row_tile(const PlanData& plan, const TileNames& names, const PlanTile& tile, const Block& score,
              const Block& grad_score, WalkVisitor& visitor) {
  const ProductTiles& sizes = plan.product(Product::backward_rows);
  visitor.create(grad_score);
  for_each_chunk(names.value_features(), sizes.features, [&](Range features) {
    const Block value = names.keys(Operand::value, tile, features);
    bring(value, sizes.streamed, visitor);
    visitor.compute(names.step(Operation::grad_probabilities, tile, features));
    visitor.drop(value);
  });
  const Block key = names.keys(Operand::key, tile, names.features());
  visitor.create(score);
  bring(key, sizes.streamed, visitor);
  visitor.compute(names.step(Operation::scores, tile, names.features()));
  if (sizes.streamed > 0) {  // what has passed must pass again
    visitor.drop(key);
    bring(key, sizes.streamed, visitor);
  }
  visitor.compute(names.step(Operation::probabilities, tile));
  visitor.compute(names.step(Operation::grad_scores, tile));
  visitor.compute(names.step(Operation::grad_query, tile, names.features()));
  visitor.drop(key);
}

/// Adds a tile to the gradients of its keys, which pass through fast memory; P and dS are there, and so are the rows.
void add_to_keys(const PlanData& plan, const TileNames& names, const PlanTile& tile, WalkVisitor& visitor) {
  const std::int64_t streamed = plan.product(Product::backward_rows).streamed;
  const auto add = [&](const Block& sums, Operation operation) {
    const std::int64_t tokens = streamed == 0 ? sums.tokens : streamed;
    visitor.stream(sums, tokens * sums.columns.size(), Stream::in_out);
    visitor.compute(names.step(operation, tile, sums.columns));
    visitor.drop(sums);
  };
  add(names.keys(Operand::grad_value, tile, names.value_features()), Operation::grad_value);
  add(names.keys(Operand::grad_key, tile, names.features()), Operation::grad_key);
}

/// Gradients of a row panel's queries in one pass. With `stored_at` the tiles' P and dS are stored from there on, for
/// the column phase; without, they are added to the gradients of the keys at once.
void one_pass_row_panel(const PlanData& plan, const Head& head, std::int64_t row_panel, const std::int64_t* stored_at,
                        WalkVisitor& visitor) {
  const Range rows = plan.row_range(Product::backward_rows, row_panel);
  const TileNames names(plan, head, rows);
  std::int64_t next = stored_at != nullptr ? *stored_at : 0;
  const Block resident[] = {names.rows(Operand::query, names.features()),
                            names.rows(Operand::grad_output, names.value_features()), names.statistic(Operand::lse),
                            names.statistic(Operand::delta)};
  const Block grad_query = names.rows(Operand::grad_query, names.features());
  for (const Block& block : resident) visitor.load(block);
  visitor.create(grad_query);
  for (const PlanTile& tile : plan.tiles(Product::backward_rows, head).row(row_panel)) {
    const Block score = names.pairs(Operand::score, tile, next);
    const Block grad_score = names.pairs(Operand::grad_score, tile, next);
    row_tile(plan, names, tile, score, grad_score, visitor);
    if (stored_at != nullptr) {
      visitor.store(score);
      visitor.store(grad_score);
      next += tile_layout(rows, tile).values;
    } else {
      add_to_keys(plan, names, tile, visitor);
    }
    visitor.drop(score);
    visitor.drop(grad_score);
  }
  visitor.store(grad_query);
  visitor.drop(grad_query);
  for (const Block& block : resident) visitor.drop(block);
}

void zero_column_panel(const PlanData& plan, const Head& head, std::int64_t column_panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, {});
  const Range keys = plan.column_range(Product::backward_rows, column_panel);
  for (const Block& block : {names.keys(Operand::grad_key, keys, names.features()),
                             names.keys(Operand::grad_value, keys, names.value_features())}) {
    visitor.stream(block, 1, Stream::out);  // a panel of keys may be wider than fast memory
    visitor.drop(block);
  }
}

/// The row panels of a chunk with where each stores its pairs, and the chunk's tiles by column panel.
struct Chunk {
  struct RowPanel {
    Head head;
    std::int64_t row_panel = 0;
    std::int64_t stored_at = 0;
  };
  struct ColumnTile {
    std::size_t row = 0;  ///< index into rows
    PlanTile tile;
    std::int64_t stored_at = 0;
  };

  std::vector<RowPanel> rows;
  std::vector<std::int64_t> column_panels;            ///< those with tiles, ascending
  std::vector<std::vector<ColumnTile>> column_tiles;  ///< for each of column_panels, in the order of rows
};

/// Lists the tiles of chunk.rows by column panel.
void list_columns(const PlanData& plan, Chunk& chunk) {
  const std::int64_t width = plan.cut(Product::backward_rows).column_panel;
  std::vector<std::vector<Chunk::ColumnTile>> lists(
      static_cast<std::size_t>(plan.column_panels(Product::backward_rows)));
  for (std::size_t index = 0; index < chunk.rows.size(); ++index) {
    const Chunk::RowPanel& row = chunk.rows[index];
    std::int64_t next = row.stored_at;
    for (const PlanTile& tile : plan.tiles(Product::backward_rows, row.head).row(row.row_panel)) {
      lists[static_cast<std::size_t>(tile.column_begin / width)].push_back({index, tile, next});
      next += tile_layout(plan.row_range(Product::backward_rows, row.row_panel), tile).values;
    }
  }
  for (std::size_t panel = 0; panel < lists.size(); ++panel) {
    if (lists[panel].empty()) continue;
    chunk.column_panels.push_back(static_cast<std::int64_t>(panel));
    chunk.column_tiles.push_back(std::move(lists[panel]));
  }
}

void chunk_column_panel(const PlanData& plan, const Chunk& chunk, std::size_t column, WalkVisitor& visitor) {
  const Range keys = plan.column_range(Product::backward_rows, chunk.column_panels[column]);
  const TileNames columns(plan, chunk.rows.front().head, {});
  const std::int64_t streamed = plan.product(Product::backward_rows).streamed;
  const Block sums[] = {columns.keys(Operand::grad_key, keys, columns.features()),
                        columns.keys(Operand::grad_value, keys, columns.value_features())};
  if (streamed == 0) {
    for (const Block& sum : sums) visitor.load(sum);
  }
  for (const Chunk::ColumnTile& entry : chunk.column_tiles[column]) {
    const Chunk::RowPanel& row = chunk.rows[entry.row];
    const TileNames names(plan, row.head, plan.row_range(Product::backward_rows, row.row_panel));
    const Block blocks[] = {names.rows(Operand::query, names.features()),
                            names.rows(Operand::grad_output, names.value_features()),
                            names.pairs(Operand::score, entry.tile, entry.stored_at),
                            names.pairs(Operand::grad_score, entry.tile, entry.stored_at)};
    for (const Block& block : blocks) visitor.load(block);
    if (streamed == 0) {
      visitor.compute(names.step(Operation::grad_value, entry.tile, names.value_features()));
      visitor.compute(names.step(Operation::grad_key, entry.tile, names.features()));
    } else {
      add_to_keys(plan, names, entry.tile, visitor);
    }
    for (const Block& block : blocks) visitor.drop(block);
  }
  if (streamed > 0) return;
  for (const Block& sum : sums) visitor.store(sum);
  for (const Block& sum : sums) visitor.drop(sum);
}

std::int64_t row_panel_values(const PlanData& plan, const Head& head, std::int64_t row_panel) {
  std::int64_t values = 0;
  for (const PlanTile& tile : plan.tiles(Product::backward_rows, head).row(row_panel)) {
    values += tile_layout(plan.row_range(Product::backward_rows, row_panel), tile).values;
  }
  return values;
}

void consume_chunk(const PlanData& plan, Chunk& chunk, const PhaseConsumer& consume) {
  if (chunk.rows.empty()) return;
  consume({"rows", static_cast<std::int64_t>(chunk.rows.size()), [&](std::int64_t task, WalkVisitor& visitor) {
             const Chunk::RowPanel& row = chunk.rows[static_cast<std::size_t>(task)];
             one_pass_row_panel(plan, row.head, row.row_panel, &row.stored_at, visitor);
           }});
  list_columns(plan, chunk);
  consume(
      {"columns", static_cast<std::int64_t>(chunk.column_panels.size()), [&](std::int64_t task, WalkVisitor& visitor) {
         chunk_column_panel(plan, chunk, static_cast<std::size_t>(task), visitor);
       }});
  chunk = {};
}

void backward_by_chunks(const PlanData& plan, const PhaseConsumer& consume) {
  const std::int64_t capacity = pair_store_values(plan);
  const std::int64_t group = plan.heads_per_group();
  for (std::int64_t batch = 0; batch < plan.problem.batch; ++batch) {
    for (std::int64_t key_value = 0; key_value < plan.problem.key_value_heads; ++key_value) {
      Chunk chunk;
      std::int64_t used = 0;
      for (std::int64_t query = key_value * group; query < (key_value + 1) * group; ++query) {
        const Head head{batch, query, key_value};
        for (std::int64_t panel = 0; panel < plan.row_panels(Product::backward_rows); ++panel) {
          const std::int64_t values = row_panel_values(plan, head, panel);
          if (used + values > capacity) {
            consume_chunk(plan, chunk, consume);
            used = 0;
          }
          chunk.rows.push_back({head, panel, used});
          used += values;
        }
      }
      consume_chunk(plan, chunk, consume);
    }
  }
}

void backward_by_heads(const PlanData& plan, const PhaseConsumer& consume) {
  const std::int64_t key_value_heads = plan.problem.key_value_heads;
  consume({"heads", plan.problem.batch * key_value_heads, [&](std::int64_t task, WalkVisitor& visitor) {
             const std::int64_t group = plan.heads_per_group();
             const std::int64_t batch = task / key_value_heads;
             const std::int64_t key_value = task % key_value_heads;
             for (std::int64_t query = key_value * group; query < (key_value + 1) * group; ++query) {
               for (std::int64_t panel = 0; panel < plan.row_panels(Product::backward_rows); ++panel) {
                 one_pass_row_panel(plan, {batch, query, key_value}, panel, nullptr, visitor);
               }
             }
           }});
}

/// The pass over rows: delta while dO is at hand, then dQ, which is stored or folded.
void two_pass_row_panel(const PlanData& plan, const Head& head, std::int64_t row_panel, Slice slice,
                        WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(Product::backward_rows, row_panel));
  const Block query = names.rows(Operand::query, names.features());
  const Block grad_output = names.rows(Operand::grad_output, names.value_features());
  const Block lse = names.statistic(Operand::lse);
  const Block delta = names.statistic(Operand::delta);
  const Block output = names.rows(Operand::output, names.value_features());
  const Block grad_query = names.rows(Operand::grad_query, names.features());
  for (const Block& block : {query, grad_output, lse}) visitor.load(block);
  visitor.create(delta);
  visitor.stream(output, 1, Stream::in);
  visitor.compute(names.step(Operation::delta));
  visitor.drop(output);
  visitor.store(delta);
  visitor.create(grad_query);
  for (const PlanTile& tile : plan.tiles(Product::backward_rows, head).row(row_panel)) {
    const Block score = names.pairs(Operand::score, tile);
    const Block grad_score = names.pairs(Operand::grad_score, tile);
    row_tile(plan, names, tile, score, grad_score, visitor);
    visitor.drop(score);
    visitor.drop(grad_score);
  }
  for (const Block& block : {query, grad_output, lse, delta}) visitor.drop(block);
  if (plan.parameter_gradients) {
    fold(names, grad_query, Operation::fold_query, names.features(), slice, visitor);
  } else {
    visitor.store(grad_query);
  }
  visitor.drop(grad_query);
}

/// A tile's part of dV; everything about the keys is in fast memory. With dK, dP is computed beside it.
void column_tile(const PlanData& plan, const TileNames& names, const PlanTile& tile, WalkVisitor& visitor) {
  const std::int64_t chunk = plan.product(Product::backward_columns).features;
  const bool with_keys = !plan.parameter_gradients;  // K = A2 is no parameter
  const Block query = names.rows(Operand::query, names.features(), tile);
  const Block lse = names.statistic(Operand::lse, tile);
  const Block delta = names.statistic(Operand::delta, tile);
  const Block score = names.pairs(Operand::score, tile);
  const Block grad_score = names.pairs(Operand::grad_score, tile);
  visitor.create(score);
  if (with_keys) {
    visitor.load(query);
    visitor.compute(names.step(Operation::scores, tile, names.features()));
  } else {
    for_each_chunk(names.features(), chunk, [&](Range features) {
      const Block part = names.rows(Operand::query, features, tile);
      visitor.load(part);
      visitor.compute(names.step(Operation::scores, tile, features));
      visitor.drop(part);
    });
  }
  visitor.stream(lse, 1, Stream::in);
  visitor.compute(names.step(Operation::probabilities, tile));
  visitor.drop(lse);
  if (with_keys) visitor.create(grad_score);
  for_each_chunk(names.value_features(), chunk, [&](Range features) {
    const Block grad_output = names.rows(Operand::grad_output, features, tile);
    visitor.load(grad_output);
    if (with_keys) visitor.compute(names.step(Operation::grad_probabilities, tile, features));
    visitor.compute(names.step(Operation::grad_value, tile, features));
    visitor.drop(grad_output);
  });
  if (with_keys) {
    visitor.stream(delta, 1, Stream::in);
    visitor.compute(names.step(Operation::grad_scores, tile));
    visitor.drop(delta);
    visitor.compute(names.step(Operation::grad_key, tile, names.features()));
    visitor.drop(query);
    visitor.drop(grad_score);
  }
  visitor.drop(score);
}

void two_pass_column_panel(const PlanData& plan, const Head& group, std::int64_t column_panel, Slice slice,
                           WalkVisitor& visitor) {
  const Range keys = plan.column_range(Product::backward_columns, column_panel);
  const TileNames columns(plan, group, {});
  const bool with_keys = !plan.parameter_gradients;
  const Block key = columns.keys(Operand::key, keys, columns.features());
  const Block value = columns.keys(Operand::value, keys, columns.value_features());
  const Block grad_key = columns.keys(Operand::grad_key, keys, columns.features());
  const Block grad_value = columns.keys(Operand::grad_value, keys, columns.value_features());
  visitor.load(key);
  if (with_keys) {
    visitor.load(value);
    visitor.create(grad_key);
  }
  visitor.create(grad_value);
  for (std::int64_t member = 0; member < plan.heads_per_group(); ++member) {
    const Head head{group.batch, group.query + member, group.key_value};
    const TileList& list = plan.tiles(Product::backward_columns, head);
    for (const TileList::Reference& reference : list.column(column_panel)) {
      const TileNames names(plan, head, plan.row_range(Product::backward_columns, reference.row_panel));
      column_tile(plan, names, list.tiles[static_cast<std::size_t>(reference.tile)], visitor);
    }
  }
  visitor.drop(key);
  if (with_keys) {
    visitor.store(grad_key);
    visitor.store(grad_value);
    visitor.drop(value);
    visitor.drop(grad_key);
  } else {
    fold(columns, grad_value, Operation::fold_value, columns.features(), slice, visitor);
  }
  visitor.drop(grad_value);
}

void backward_in_one_pass(const PlanData& plan, BackwardTasks tasks, const PhaseConsumer& consume) {
  consume_row_panels(plan, Product::backward_rows, "delta", consume,
                     [&plan](const Head& head, std::int64_t panel, WalkVisitor& visitor) {
                       walk_delta(TileNames(plan, head, plan.row_range(Product::backward_rows, panel)), visitor);
                     });
  consume_column_panels(plan, Product::backward_rows, "zero", consume,
                        [&plan](const Head& head, std::int64_t panel, WalkVisitor& visitor) {
                          zero_column_panel(plan, head, panel, visitor);
                        });
  if (tasks == BackwardTasks::heads) {
    backward_by_heads(plan, consume);
  } else {
    backward_by_chunks(plan, consume);
  }
}

void backward_in_two_passes(const PlanData& plan, const PhaseConsumer& consume) {
  consume_row_panels(plan, Product::backward_rows, "rows", consume,
                     [&plan](const Head& head, std::int64_t panel, WalkVisitor& visitor) {
                       two_pass_row_panel(plan, head, panel, {}, visitor);
                     });
  consume_column_panels(plan, Product::backward_columns, "columns", consume,
                        [&plan](const Head& head, std::int64_t panel, WalkVisitor& visitor) {
                          two_pass_column_panel(plan, head, panel, {}, visitor);
                        });
}

/// A phase whose tasks are slices of a head's panels. walk(head, panel, slice, visitor).
template <class Walk>
void consume_slices(const PlanData& plan, std::int64_t heads, std::int64_t tokens, std::int64_t panels,
                    std::string_view name, const PhaseConsumer& consume, Walk walk) {
  const std::int64_t count = slices(plan, tokens, panels);
  consume({name, plan.problem.batch * heads * count, [=](std::int64_t task, WalkVisitor& visitor) {
             const std::int64_t index = task % count;
             const std::int64_t first = panels * index / count;
             for (std::int64_t panel = first; panel < panels * (index + 1) / count; ++panel) {
               walk(task / count / heads, task / count % heads, panel, Slice{index, panel == first}, visitor);
             }
           }});
}

}  // namespace

void recompute_forward(const PlanData& plan, const PhaseConsumer& consume) {
  consume_row_panels(plan, Product::forward, "rows", consume,
                     [&plan](const Head& head, std::int64_t panel, WalkVisitor& visitor) {
                       forward_row_panel(plan, head, panel, visitor);
                     });
}

void recompute_backward(const PlanData& plan, BackwardTasks tasks, const PhaseConsumer& consume) {
  if (plan.backward_passes == BackwardPasses::two) {
    backward_in_two_passes(plan, consume);
  } else {
    backward_in_one_pass(plan, tasks, consume);
  }
}

void recompute_folded_backward(const PlanData& plan, const PhaseConsumer& consume) {
  const std::int64_t group = plan.heads_per_group();
  consume_slices(plan, plan.problem.query_heads, plan.patterns.rows(), plan.row_panels(Product::backward_rows), "rows",
                 consume, [&plan, group](auto batch, auto query, auto panel, Slice slice, WalkVisitor& visitor) {
                   two_pass_row_panel(plan, {batch, query, query / group}, panel, slice, visitor);
                 });
  consume_slices(plan, plan.problem.key_value_heads, plan.patterns.columns(),
                 plan.column_panels(Product::backward_columns), "columns", consume,
                 [&plan, group](auto batch, auto key_value, auto panel, Slice slice, WalkVisitor& visitor) {
                   two_pass_column_panel(plan, {batch, key_value * group, key_value}, panel, slice, visitor);
                 });
}

}  // namespace cobble::detail
