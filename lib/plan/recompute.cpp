#include "plan/recompute.hpp"

#include <memory>
#include <vector>

namespace cobble::detail {
namespace {

/// Names the blocks and steps of one tile of one head.
class TileNames {
 public:
  TileNames(const PlanData& plan, const Head& head, Range rows) : plan_(plan), head_(head), rows_(rows) {}

  Block query() const { return {Operand::query, head_, rows_, features()}; }
  Block output() const { return {Operand::output, head_, rows_, value_features()}; }
  Block grad_output() const { return {Operand::grad_output, head_, rows_, value_features()}; }
  Block grad_query() const { return {Operand::grad_query, head_, rows_, features()}; }
  Block of_rows(Operand operand) const { return {operand, head_, rows_, {0, 1}}; }
  Block key(Range keys) const { return {Operand::key, head_, keys, features()}; }
  Block value(Range keys) const { return {Operand::value, head_, keys, value_features()}; }
  Block grad_key(Range keys) const { return {Operand::grad_key, head_, keys, features()}; }
  Block grad_value(Range keys) const { return {Operand::grad_value, head_, keys, value_features()}; }
  Block pair(Operand operand, const PatternTile& tile, std::int64_t stored_at = 0) const {
    return {operand, head_, rows_, keys(tile), tile.pairs, tile.kind, stored_at};
  }
  Range keys(const PatternTile& tile) const { return plan_.column_range(tile.column_panel); }
  Step step(Operation operation, const PatternTile& tile) const {
    return {operation, head_, rows_, keys(tile), features_of(operation), tile.pairs, tile.kind};
  }
  Step row_step(Operation operation) const { return {operation, head_, rows_, {}, value_features()}; }

 private:
  Range features() const { return {0, plan_.problem.head_dim}; }
  Range value_features() const { return {0, plan_.problem.value_dim}; }
  Range features_of(Operation operation) const {
    const bool over_values = operation == Operation::accumulate_output || operation == Operation::grad_probabilities ||
                             operation == Operation::grad_value;
    return over_values ? value_features() : features();
  }

  const PlanData& plan_;
  Head head_;
  Range rows_;
};

void forward_row_panel(const PlanData& plan, const Head& head, std::int64_t row_panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(row_panel));
  visitor.load(names.query());
  visitor.create(names.output());
  visitor.create(names.of_rows(Operand::row_maximum));
  visitor.create(names.of_rows(Operand::row_sum));
  for (const PatternTile& tile : plan.tiles_of(head).row(row_panel)) {
    const Range keys = names.keys(tile);
    visitor.load(names.key(keys));
    visitor.create(names.pair(Operand::score, tile));
    visitor.compute(names.step(Operation::scores, tile));
    visitor.drop(names.key(keys));
    visitor.compute(names.step(Operation::online_softmax, tile));
    visitor.load(names.value(keys));
    visitor.compute(names.step(Operation::accumulate_output, tile));
    visitor.drop(names.value(keys));
    visitor.drop(names.pair(Operand::score, tile));
  }
  visitor.drop(names.query());
  visitor.create(names.of_rows(Operand::lse));
  visitor.compute(names.row_step(Operation::finish_output));
  visitor.store(names.output());
  visitor.store(names.of_rows(Operand::lse));
  for (const Block& block : {names.output(), names.of_rows(Operand::row_maximum), names.of_rows(Operand::row_sum),
                             names.of_rows(Operand::lse)}) {
    visitor.drop(block);
  }
}

void delta_row_panel(const PlanData& plan, const Head& head, std::int64_t row_panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(row_panel));
  const Block delta = names.of_rows(Operand::delta);
  visitor.load(names.output());
  visitor.load(names.grad_output());
  visitor.load(names.of_rows(Operand::grad_lse));
  visitor.create(delta);
  visitor.compute(names.row_step(Operation::delta));
  visitor.store(delta);
  for (const Block& block : {names.output(), names.grad_output(), names.of_rows(Operand::grad_lse), delta}) {
    visitor.drop(block);
  }
}

void zero_column_panel(const PlanData& plan, const Head& head, std::int64_t column_panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, {});
  const Range keys = plan.column_range(column_panel);
  for (const Block& block : {names.grad_key(keys), names.grad_value(keys)}) {
    visitor.create(block);
    visitor.store(block);
    visitor.drop(block);
  }
}

/// Adds a tile to the gradients of its keys; P and dS are in fast memory, and so are the tile's rows.
void add_to_keys(const TileNames& names, const PatternTile& tile, WalkVisitor& visitor) {
  visitor.compute(names.step(Operation::grad_value, tile));
  visitor.compute(names.step(Operation::grad_key, tile));
}

/// Gradients of a row panel's queries. With `stored_at` the tiles' P and dS are stored from there on, for the column
/// phase; without, they are added to the gradients of the keys at once.
void backward_row_panel(const PlanData& plan, const Head& head, std::int64_t row_panel, const std::int64_t* stored_at,
                        WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(row_panel));
  std::int64_t next = stored_at != nullptr ? *stored_at : 0;
  const std::vector<Block> resident = {names.query(), names.grad_output(), names.of_rows(Operand::lse),
                                       names.of_rows(Operand::delta)};
  for (const Block& block : resident) visitor.load(block);
  visitor.create(names.grad_query());
  for (const PatternTile& tile : plan.tiles_of(head).row(row_panel)) {
    const Range keys = names.keys(tile);
    const Block score = names.pair(Operand::score, tile, next);
    const Block grad_score = names.pair(Operand::grad_score, tile, next);
    visitor.load(names.value(keys));
    visitor.create(grad_score);
    visitor.compute(names.step(Operation::grad_probabilities, tile));
    visitor.drop(names.value(keys));
    visitor.load(names.key(keys));
    visitor.create(score);
    visitor.compute(names.step(Operation::scores, tile));
    visitor.compute(names.step(Operation::probabilities, tile));
    visitor.compute(names.step(Operation::grad_scores, tile));
    visitor.compute(names.step(Operation::grad_query, tile));
    visitor.drop(names.key(keys));
    if (stored_at != nullptr) {
      visitor.store(score);
      visitor.store(grad_score);
      next += tile_layout(plan.row_range(row_panel).size(), keys.size(), tile.pairs).values;
    } else {
      visitor.load(names.grad_value(keys));
      visitor.load(names.grad_key(keys));
      add_to_keys(names, tile, visitor);
      visitor.store(names.grad_value(keys));
      visitor.store(names.grad_key(keys));
      visitor.drop(names.grad_value(keys));
      visitor.drop(names.grad_key(keys));
    }
    visitor.drop(score);
    visitor.drop(grad_score);
  }
  visitor.store(names.grad_query());
  visitor.drop(names.grad_query());
  for (const Block& block : resident) visitor.drop(block);
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
    PatternTile tile;
    std::int64_t stored_at = 0;
  };

  std::vector<RowPanel> rows;
  std::vector<std::int32_t> column_panels;            ///< those with tiles, ascending
  std::vector<std::vector<ColumnTile>> column_tiles;  ///< for each of column_panels, in the order of rows
};

/// Lists the tiles of `chunk.rows` by column panel. `panel_of` is scratch: -1 for every column panel.
void list_columns(const PlanData& plan, std::vector<std::int32_t>& panel_of, Chunk& chunk) {
  std::vector<bool> touched(panel_of.size(), false);
  for (const Chunk::RowPanel& row : chunk.rows) {
    for (const PatternTile& tile : plan.tiles_of(row.head).row(row.row_panel)) {
      touched[static_cast<std::size_t>(tile.column_panel)] = true;
    }
  }
  for (std::size_t panel = 0; panel < touched.size(); ++panel) {
    if (!touched[panel]) continue;
    panel_of[panel] = static_cast<std::int32_t>(chunk.column_panels.size());
    chunk.column_panels.push_back(static_cast<std::int32_t>(panel));
  }
  chunk.column_tiles.resize(chunk.column_panels.size());
  for (std::size_t index = 0; index < chunk.rows.size(); ++index) {
    const Chunk::RowPanel& row = chunk.rows[index];
    std::int64_t next = row.stored_at;
    for (const PatternTile& tile : plan.tiles_of(row.head).row(row.row_panel)) {
      const auto slot = static_cast<std::size_t>(panel_of[static_cast<std::size_t>(tile.column_panel)]);
      chunk.column_tiles[slot].push_back({index, tile, next});
      next += tile_layout(plan.row_range(row.row_panel).size(), plan.column_range(tile.column_panel).size(), tile.pairs)
                  .values;
    }
  }
}

void backward_column_panel(const PlanData& plan, const Chunk& chunk, std::size_t column, WalkVisitor& visitor) {
  const Range keys = plan.column_range(chunk.column_panels[column]);
  const TileNames columns(plan, chunk.rows.front().head, {});
  visitor.load(columns.grad_key(keys));
  visitor.load(columns.grad_value(keys));
  for (const Chunk::ColumnTile& entry : chunk.column_tiles[column]) {
    const Chunk::RowPanel& row = chunk.rows[entry.row];
    const TileNames names(plan, row.head, plan.row_range(row.row_panel));
    const Block blocks[] = {names.query(), names.grad_output(), names.pair(Operand::score, entry.tile, entry.stored_at),
                            names.pair(Operand::grad_score, entry.tile, entry.stored_at)};
    for (const Block& block : blocks) visitor.load(block);
    add_to_keys(names, entry.tile, visitor);
    for (const Block& block : blocks) visitor.drop(block);
  }
  visitor.store(columns.grad_key(keys));
  visitor.store(columns.grad_value(keys));
  visitor.drop(columns.grad_key(keys));
  visitor.drop(columns.grad_value(keys));
}

std::int64_t row_panel_values(const PlanData& plan, const Head& head, std::int64_t row_panel) {
  std::int64_t values = 0;
  for (const PatternTile& tile : plan.tiles_of(head).row(row_panel)) {
    values +=
        tile_layout(plan.row_range(row_panel).size(), plan.column_range(tile.column_panel).size(), tile.pairs).values;
  }
  return values;
}

void consume_chunk(const PlanData& plan, std::vector<std::int32_t>& panel_of, Chunk& chunk,
                   const PhaseConsumer& consume) {
  if (chunk.rows.empty()) return;
  consume({"rows", static_cast<std::int64_t>(chunk.rows.size()), [&](std::int64_t task, WalkVisitor& visitor) {
             const Chunk::RowPanel& row = chunk.rows[static_cast<std::size_t>(task)];
             backward_row_panel(plan, row.head, row.row_panel, &row.stored_at, visitor);
           }});
  list_columns(plan, panel_of, chunk);
  consume(
      {"columns", static_cast<std::int64_t>(chunk.column_panels.size()), [&](std::int64_t task, WalkVisitor& visitor) {
         backward_column_panel(plan, chunk, static_cast<std::size_t>(task), visitor);
       }});
  chunk = {};
}

void backward_by_chunks(const PlanData& plan, const PhaseConsumer& consume) {
  const std::int64_t capacity = pair_store_values(plan);
  std::vector<std::int32_t> panel_of(static_cast<std::size_t>(plan.column_panels()), -1);
  const std::int64_t group = plan.heads_per_group();
  for (std::int64_t batch = 0; batch < plan.problem.batch; ++batch) {
    for (std::int64_t key_value = 0; key_value < plan.problem.key_value_heads; ++key_value) {
      Chunk chunk;
      std::int64_t used = 0;
      for (std::int64_t query = key_value * group; query < (key_value + 1) * group; ++query) {
        const Head head{batch, query, key_value};
        for (std::int64_t panel = 0; panel < plan.row_panels(); ++panel) {
          const std::int64_t values = row_panel_values(plan, head, panel);
          if (used + values > capacity) {
            consume_chunk(plan, panel_of, chunk, consume);
            used = 0;
          }
          chunk.rows.push_back({head, panel, used});
          used += values;
        }
      }
      consume_chunk(plan, panel_of, chunk, consume);
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
               for (std::int64_t panel = 0; panel < plan.row_panels(); ++panel) {
                 backward_row_panel(plan, {batch, query, key_value}, panel, nullptr, visitor);
               }
             }
           }});
}

/// A phase over the row panels of all query heads.
void consume_row_panels(const PlanData& plan, std::string_view name, const PhaseConsumer& consume,
                        void (*walk)(const PlanData&, const Head&, std::int64_t, WalkVisitor&)) {
  const std::int64_t panels = plan.row_panels();
  const std::int64_t heads = plan.problem.query_heads;
  consume({name, plan.problem.batch * heads * panels, [&plan, panels, heads, walk](std::int64_t task, WalkVisitor& v) {
             const std::int64_t query = task / panels % heads;
             walk(plan, {task / panels / heads, query, query / plan.heads_per_group()}, task % panels, v);
           }});
}

}  // namespace

void recompute_forward(const PlanData& plan, const PhaseConsumer& consume) {
  consume_row_panels(plan, "rows", consume, forward_row_panel);
}

void recompute_backward(const PlanData& plan, BackwardTasks tasks, const PhaseConsumer& consume) {
  const std::int64_t panels = plan.column_panels();
  const std::int64_t heads = plan.problem.key_value_heads;
  consume_row_panels(plan, "delta", consume, delta_row_panel);
  consume({"zero", plan.problem.batch * heads * panels, [&](std::int64_t task, WalkVisitor& visitor) {
             const std::int64_t key_value = task / panels % heads;
             zero_column_panel(plan, {task / panels / heads, key_value * plan.heads_per_group(), key_value},
                               task % panels, visitor);
           }});
  if (tasks == BackwardTasks::heads) {
    backward_by_heads(plan, consume);
  } else {
    backward_by_chunks(plan, consume);
  }
}

}  // namespace cobble::detail
