#include "plan/recompute.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "plan/tile_names.hpp"

namespace cobble::detail {
namespace {

/// A phase over the shared row panels of a product. walk(plan, head, panel, visitor).
template <class Walk>
void consume_shared_panels(const PlanData& plan, Product product, std::string_view name, const PhaseConsumer& consume,
                           Walk walk) {
  const std::int64_t heads = plan.problem.query_heads;
  const std::int64_t most = plan.most_shared_panels(product);
  if (most == 0) return;
  consume(
      {name, plan.problem.batch * heads * most, [&plan, product, heads, most, walk](auto task, WalkVisitor& visitor) {
         const std::int64_t query = task / most % heads;
         const Head head{task / most / heads, query, query / plan.heads_per_group()};
         const std::vector<SharedPanel>& panels = plan.shared(product, head)->panels;
         if (task % most >= std::ssize(panels)) return;
         walk(plan, head, panels[static_cast<std::size_t>(task % most)], visitor);
       }});
}

/// The tile of a row panel that lies in a column panel, where products go panel by panel; with the first of them begin
/// the panel's sums, and those of a panel that has none. Empty: there is nothing to do.
std::optional<RowItem> part_of_panel(const PlanData& plan, Product product, const Head& head, std::int64_t row_panel,
                                     std::int64_t column_panel) {
  RowItem item = plan.row_item(product, head, row_panel);
  const std::span<const PlanTile> tiles = item.tiles;
  if (tiles.empty()) return column_panel == 0 ? std::optional(item) : std::nullopt;
  const std::int64_t begin = plan.column_range(product, column_panel).begin;
  const auto tile =
      std::find_if(tiles.begin(), tiles.end(), [begin](const PlanTile& t) { return t.column_begin == begin; });
  if (tile == tiles.end()) return std::nullopt;
  item.tiles = tiles.subspan(static_cast<std::size_t>(tile - tiles.begin()), 1);
  item.begins = tile == tiles.begin();
  return item;
}

/// A row item of some head.
struct HeadItem {
  Head head;
  RowItem item;
};

/// What a slice has reached of the sums over its row panels.
struct SliceOfKeys {
  const KeySlices& slices;
  std::int64_t index = 0;
  std::vector<bool> begun;  ///< of each column panel

  std::int64_t name(std::int64_t column_panel) const { return slices.named_slice(index, column_panel); }
};

/// Hints at what follows a tile of a row item: the next one, or after the last the rows and the first tile of the item
/// that comes next, if any. `slice`: of the one-pass backward; null: forward.
void expect_next(const PlanData& plan, const HeadItem& here, const PlanTile& tile, const HeadItem* next,
                 const SliceOfKeys* slice, WalkVisitor& visitor) {
  if (!visitor.looks_ahead()) return;
  const bool is_last = &tile == &here.item.tiles.back();
  if (is_last && next == nullptr) return;
  const HeadItem& at = is_last ? *next : here;
  const Product product = slice == nullptr ? Product::forward : Product::backward_rows;
  const TileNames names(plan, at.head, plan.row_range(product, at.item.panel));
  std::array<Block, 7> blocks;
  std::size_t count = 0;
  if (is_last) {
    blocks[count++] = names.rows(Operand::query, names.features());
    if (slice != nullptr) blocks[count++] = names.rows(Operand::grad_output, names.value_features());
    if (slice != nullptr && at.item.slot < 0) blocks[count++] = names.rows(Operand::output, names.value_features());
  }
  if (!is_last || !at.item.tiles.empty()) {
    const PlanTile& following = is_last ? at.item.tiles.front() : *(&tile + 1);
    blocks[count++] = names.keys(Operand::value, following, names.value_features());
    blocks[count++] = names.keys(Operand::key, following, names.features());
    if (slice != nullptr) {
      const std::int64_t name = slice->name(plan.key_panel(following.column_begin));
      for (const Block& sums : {names.keys(Operand::grad_value, following, names.value_features()),
                                names.keys(Operand::grad_key, following, names.features())}) {
        blocks[count] = sums;
        blocks[count++].slice = name;
      }
    }
  }
  visitor.expect({blocks.data(), count});
}

/// What rows have summed up.
struct RowSums {
  Block output;
  Block row_maximum;
  Block row_sum;

  RowSums(const TileNames& names, std::int64_t slice)
      : output(names.rows(Operand::output, names.value_features())),
        row_maximum(names.statistic(Operand::row_maximum)),
        row_sum(names.statistic(Operand::row_sum)) {
    for (Block* const block : {&output, &row_maximum, &row_sum}) block->slice = slice;
  }
};

void finish_row_panel(const TileNames& names, const RowSums& sums, WalkVisitor& visitor) {
  const Block lse = names.statistic(Operand::lse);
  visitor.create(lse);
  visitor.compute(names.step(Operation::finish_output));
  visitor.store(sums.output);
  visitor.store(lse);
  for (const Block& block : {sums.output, sums.row_maximum, sums.row_sum, lse}) visitor.drop(block);
}

/// A row panel, or a part of its tiles, whose sums go to a slot. `next`: the item that is likely to follow, or null.
void forward_row_panel(const PlanData& plan, const HeadItem& here, const HeadItem* next, WalkVisitor& visitor) {
  const Head& head = here.head;
  const RowItem& item = here.item;
  const TileNames names(plan, head, plan.row_range(Product::forward, item.panel));
  const ProductTiles& sizes = plan.product(Product::forward);
  const Block query = names.rows(Operand::query, names.features());
  const RowSums sums(names, item.slot + 1);
  visitor.load(query);
  for (const Block& block : {sums.output, sums.row_maximum, sums.row_sum}) {
    item.begins ? visitor.create(block) : visitor.load(block);
  }
  for (const PlanTile& tile : item.tiles) {
    const Block score = names.pairs(Operand::score, tile);
    visitor.create(score);
    expect_next(plan, here, tile, next, nullptr, visitor);
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
  visitor.drop(query);
  if (item.slot < 0) return finish_row_panel(names, sums, visitor);
  for (const Block& block : {sums.output, sums.row_maximum, sums.row_sum}) {
    visitor.store(block);
    visitor.drop(block);
  }
}

/// Puts the parts of a shared row panel together.
void join_row_panel(const PlanData& plan, const Head& head, const SharedPanel& panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(Product::forward, panel.panel));
  const RowSums sums(names, 0);
  for (const Block& block : {sums.output, sums.row_maximum, sums.row_sum}) visitor.create(block);
  for (std::int64_t part = 0; part < panel.parts(); ++part) {
    const RowSums of_part(names, panel.first_slot + part + 1);
    const Block blocks[] = {of_part.output, of_part.row_maximum, of_part.row_sum};
    for (const Block& block : blocks) visitor.stream(block, block.columns.size(), Stream::in);
    visitor.compute(names.step(Operation::add_output_part));
    for (const Block& block : blocks) visitor.drop(block);
  }
  finish_row_panel(names, sums, visitor);
}

/// Lets blocks pass by a step, a row at a time.
void pass_by(WalkVisitor& visitor, std::initializer_list<std::pair<Block, Stream>> blocks, const Step& step) {
  for (const auto& [block, direction] : blocks) visitor.stream(block, block.columns.size(), direction);
  visitor.compute(step);
  for (const auto& [block, direction] : blocks) visitor.drop(block);
}

void begin_passing(WalkVisitor& visitor, std::initializer_list<Block> blocks) {
  for (const Block& block : blocks) {
    visitor.stream(block, block.columns.size(), Stream::out);
    visitor.drop(block);
  }
}

/// Forward with the keys of a tile in fast memory and the rows of a long panel passing by.
void forward_passing_rows(const PlanData& plan, const Head& head, std::int64_t row_panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(Product::forward, row_panel));
  const Block output = names.rows(Operand::output, names.value_features());
  const Block row_maximum = names.statistic(Operand::row_maximum);
  const Block row_sum = names.statistic(Operand::row_sum);
  begin_passing(visitor, {output, row_maximum, row_sum});
  for (const PlanTile& tile : plan.tiles(Product::forward, head).row(row_panel)) {
    const Block score = names.pairs(Operand::score, tile);
    const Block key = names.keys(Operand::key, tile, names.features());
    const Block value = names.keys(Operand::value, tile, names.value_features());
    const Block tile_output = names.rows(Operand::output, names.value_features(), tile);
    visitor.create(score);
    visitor.load(key);
    pass_by(visitor, {{names.rows(Operand::query, names.features(), tile), Stream::in}},
            names.step(Operation::scores, tile, names.features()));
    visitor.drop(key);
    pass_by(visitor,
            {{tile_output, Stream::in_out},
             {names.statistic(Operand::row_maximum, tile), Stream::in_out},
             {names.statistic(Operand::row_sum, tile), Stream::in_out}},
            names.step(Operation::online_softmax, tile));
    visitor.load(value);
    pass_by(visitor, {{tile_output, Stream::in_out}},
            names.step(Operation::accumulate_output, tile, names.value_features()));
    visitor.drop(value);
    visitor.drop(score);
  }
  pass_by(visitor,
          {{output, Stream::in_out},
           {row_maximum, Stream::in},
           {row_sum, Stream::in},
           {names.statistic(Operand::lse), Stream::out}},
          names.step(Operation::finish_output));
}

/// P and dS of a tile, and its part of dQ; everything about the rows is in fast memory. Both stay there.
void row_tile(const PlanData& plan, const TileNames& names, const PlanTile& tile, WalkVisitor& visitor) {
  const std::int64_t streamed = plan.product(Product::backward_rows).streamed;
  const Block key = walk_grad_scores(plan, names, tile, visitor);
  if (streamed > 0) {  // what has passed must pass again
    visitor.drop(key);
    bring(key, streamed, visitor);
  }
  visitor.compute(names.step(Operation::grad_query, tile, names.features()));
  visitor.drop(key);
}

/// Adds a tile to the gradients of its keys, which pass through fast memory; P and dS are there, and so are the rows.
void add_to_keys(const PlanData& plan, const TileNames& names, const PlanTile& tile, SliceOfKeys& slice,
                 WalkVisitor& visitor) {
  const std::int64_t streamed = plan.product(Product::backward_rows).streamed;
  const std::int64_t panel = plan.key_panel(tile.column_begin);
  const bool begun = slice.begun[static_cast<std::size_t>(panel)];
  slice.begun[static_cast<std::size_t>(panel)] = true;
  const auto add = [&](Block sums, Operation operation) {
    sums.slice = slice.name(panel);
    const std::int64_t tokens = streamed == 0 ? sums.tokens : streamed;
    visitor.stream(sums, tokens * sums.columns.size(), begun ? Stream::in_out : Stream::out);
    visitor.compute(names.step(operation, tile, sums.columns));
    visitor.drop(sums);
  };
  add(names.keys(Operand::grad_value, tile, names.value_features()), Operation::grad_value);
  add(names.keys(Operand::grad_key, tile, names.features()), Operation::grad_key);
}

/// Gradients of a row panel's queries in one pass, each tile added to the slice of the gradients of its keys. Parts of
/// a shared panel find delta.
void one_pass_row_panel(const PlanData& plan, const HeadItem& here, const HeadItem* next, SliceOfKeys& slice,
                        WalkVisitor& visitor) {
  const Head& head = here.head;
  const RowItem& item = here.item;
  const TileNames names(plan, head, plan.row_range(Product::backward_rows, item.panel));
  const Block query = names.rows(Operand::query, names.features());
  const Block grad_output = names.rows(Operand::grad_output, names.value_features());
  const Block lse = names.statistic(Operand::lse);
  const Block delta = names.statistic(Operand::delta);
  Block grad_query = names.rows(Operand::grad_query, names.features());
  grad_query.slice = item.slot + 1;
  for (const Block& block : {query, grad_output, lse}) visitor.load(block);
  if (item.slot < 0) {
    create_delta(names, visitor);
  } else {
    visitor.load(delta);
  }
  item.begins ? visitor.create(grad_query) : visitor.load(grad_query);
  for (const PlanTile& tile : item.tiles) {
    const Block score = names.pairs(Operand::score, tile);
    const Block grad_score = names.pairs(Operand::grad_score, tile);
    expect_next(plan, here, tile, next, &slice, visitor);
    row_tile(plan, names, tile, visitor);
    add_to_keys(plan, names, tile, slice, visitor);
    visitor.drop(score);
    visitor.drop(grad_score);
  }
  visitor.store(grad_query);
  visitor.drop(grad_query);
  for (const Block& block : {query, grad_output, lse, delta}) visitor.drop(block);
}

/// The same with the keys of a tile in fast memory and the rows of a long panel passing by.
void one_pass_passing_rows(const PlanData& plan, const Head& head, std::int64_t row_panel, const SliceOfKeys& slice,
                           WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(Product::backward_rows, row_panel));
  const Block whole_grad_query = names.rows(Operand::grad_query, names.features());
  begin_passing(visitor, {whole_grad_query});
  for (const PlanTile& tile : plan.tiles(Product::backward_rows, head).row(row_panel)) {
    const Block score = names.pairs(Operand::score, tile);
    const Block grad_score = names.pairs(Operand::grad_score, tile);
    const Block key = names.keys(Operand::key, tile, names.features());
    const Block value = names.keys(Operand::value, tile, names.value_features());
    const Block query = names.rows(Operand::query, names.features(), tile);
    const Block grad_output = names.rows(Operand::grad_output, names.value_features(), tile);
    Block grad_key = names.keys(Operand::grad_key, tile, names.features());
    Block grad_value = names.keys(Operand::grad_value, tile, names.value_features());
    grad_key.slice = grad_value.slice = slice.name(plan.key_panel(tile.column_begin));
    visitor.create(grad_score);
    visitor.load(value);
    pass_by(visitor, {{grad_output, Stream::in}},
            names.step(Operation::grad_probabilities, tile, names.value_features()));
    visitor.drop(value);
    visitor.create(score);
    visitor.load(key);
    pass_by(visitor, {{query, Stream::in}}, names.step(Operation::scores, tile, names.features()));
    pass_by(visitor, {{names.statistic(Operand::lse, tile), Stream::in}}, names.step(Operation::probabilities, tile));
    pass_by(visitor, {{names.statistic(Operand::delta, tile), Stream::in}}, names.step(Operation::grad_scores, tile));
    pass_by(visitor, {{names.rows(Operand::grad_query, names.features(), tile), Stream::in_out}},
            names.step(Operation::grad_query, tile, names.features()));
    visitor.drop(key);
    visitor.stream(grad_value, words(grad_value), Stream::in_out);
    pass_by(visitor, {{grad_output, Stream::in}}, names.step(Operation::grad_value, tile, names.value_features()));
    visitor.drop(grad_value);
    visitor.stream(grad_key, words(grad_key), Stream::in_out);
    pass_by(visitor, {{query, Stream::in}}, names.step(Operation::grad_key, tile, names.features()));
    visitor.drop(grad_key);
    visitor.drop(score);
    visitor.drop(grad_score);
  }
  pass_by(visitor, {{whole_grad_query, Stream::in_out}}, names.step(Operation::finish_grad_query));
}

/// Both gradients of a panel of keys, in a slice.
std::array<Block, 2> key_sums(const PlanData& plan, const TileNames& names, std::int64_t column_panel,
                              std::int64_t slice) {
  const Range keys = plan.column_range(Product::backward_rows, column_panel);
  std::array<Block, 2> sums = {names.keys(Operand::grad_key, keys, names.features()),
                               names.keys(Operand::grad_value, keys, names.value_features())};
  for (Block& block : sums) block.slice = slice;
  return sums;
}

/// A slice's row items, or what of them lies in one column panel.
void one_pass_items(const PlanData& plan, const Head& group, std::int64_t slice, std::int64_t column_panel,
                    SliceOfKeys& keys, WalkVisitor& visitor) {
  const KeySlices& slices = keys.slices;
  auto item_at = [&, member = std::int64_t{0}](std::int64_t index) mutable -> HeadItem {
    while (index >= slices.members[static_cast<std::size_t>(member) + 1]) ++member;
    const Head head{group.batch, group.query + member, group.key_value};
    const std::int64_t item = index - slices.members[static_cast<std::size_t>(member)];
    return {head, plan.row_item(Product::backward_rows, head, item)};
  };
  const std::int64_t end = slices.begins[static_cast<std::size_t>(slice) + 1];
  for (std::int64_t index = slices.begins[static_cast<std::size_t>(slice)]; index < end; ++index) {
    const HeadItem here = item_at(index);
    const HeadItem next = index + 1 < end ? item_at(index + 1) : HeadItem{};
    if (plan.product(Product::backward_rows).rows_pass) {
      one_pass_passing_rows(plan, here.head, here.item.panel, keys, visitor);
    } else if (column_panel < 0) {
      one_pass_row_panel(plan, here, index + 1 < end ? &next : nullptr, keys, visitor);
    } else if (const auto part =
                   part_of_panel(plan, Product::backward_rows, here.head, here.item.panel, column_panel)) {
      one_pass_row_panel(plan, {here.head, *part}, nullptr, keys, visitor);
    }
  }
}

/// A slice of a group's row panels, one after another. Each column panel that it touches begins with the first tile, or
/// where tiles move some of its keys only, at 0 before all of them.
void one_pass_slice(const PlanData& plan, const Head& group, std::int64_t slice, WalkVisitor& visitor) {
  const KeySlices& slices = plan.slices(group);
  const TileNames names(plan, group, {});
  const ProductTiles& tiles = plan.product(Product::backward_rows);
  SliceOfKeys keys = {slices, slice, std::vector<bool>(static_cast<std::size_t>(slices.column_panels), false)};
  const auto begin_others = [&] {
    for (std::int64_t panel = 0; panel < slices.column_panels; ++panel) {
      if (slices.slot(slice, panel) < 0 || keys.begun[static_cast<std::size_t>(panel)]) continue;
      keys.begun[static_cast<std::size_t>(panel)] = true;
      for (const Block& block : key_sums(plan, names, panel, keys.name(panel))) {
        visitor.stream(block, 1, Stream::out);  // a panel of keys may be wider than fast memory
        visitor.drop(block);
      }
    }
  };
  if (tiles.streamed > 0 || tiles.rows_pass || plan.gathers) begin_others();
  if (tiles.panel_by_panel) {
    for (std::int64_t panel = 0; panel < slices.column_panels; ++panel) {
      one_pass_items(plan, group, slice, panel, keys, visitor);
    }
  } else {
    one_pass_items(plan, group, slice, -1, keys, visitor);
  }
  begin_others();  // keys that nobody attends to
}

/// Adds up the slices of a column panel, in their order.
void add_slices(const PlanData& plan, const Head& group, std::int64_t column_panel, WalkVisitor& visitor) {
  const KeySlices& slices = plan.slices(group);
  const TileNames names(plan, group, {});
  for (std::int64_t slice = 1; slice < slices.count(); ++slice) {
    if (slices.slot(slice, column_panel) <= 0) continue;
    const std::array<Block, 2> parts = key_sums(plan, names, column_panel, slice);
    const std::array<Block, 2> sums = key_sums(plan, names, column_panel, 0);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      visitor.stream(parts[i], 1, Stream::in);
      visitor.stream(sums[i], 1, Stream::in_out);
      Step step = names.step(i == 0 ? Operation::add_key_slice : Operation::add_value_slice);
      step.keys = sums[i].rows;
      step.features = sums[i].columns;
      visitor.compute(step);
      visitor.drop(parts[i]);
      visitor.drop(sums[i]);
    }
  }
}

/// Adds up the parts of a shared row panel, in their order.
void add_query_parts(const PlanData& plan, const Head& head, const SharedPanel& panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(Product::backward_rows, panel.panel));
  const Block sums = names.rows(Operand::grad_query, names.features());
  visitor.create(sums);
  for (std::int64_t index = 0; index < panel.parts(); ++index) {
    Block part = sums;
    part.slice = panel.first_slot + index + 1;
    visitor.stream(part, 1, Stream::in);
    visitor.compute(names.step(Operation::add_query_part));
    visitor.drop(part);
  }
  visitor.store(sums);
  visitor.drop(sums);
}

void backward_in_slices(const PlanData& plan, const PhaseConsumer& consume) {
  const std::int64_t heads = plan.problem.key_value_heads;
  const std::int64_t most = plan.most_slices();
  const auto group = [&plan, heads](std::int64_t index) {
    return Head{index / heads, index % heads * plan.heads_per_group(), index % heads};
  };
  consume({"slices", plan.problem.batch * heads * most, [&plan, group, most](std::int64_t task, WalkVisitor& visitor) {
             const Head head = group(task / most);
             if (task % most < plan.slices(head).count()) one_pass_slice(plan, head, task % most, visitor);
           }});
  consume_shared_panels(plan, Product::backward_rows, "row sums", consume, add_query_parts);
  if (most < 2) return;
  consume_column_panels(
      plan, Product::backward_rows, "sums", consume,
      [&plan](const Head& head, std::int64_t panel, WalkVisitor& visitor) { add_slices(plan, head, panel, visitor); });
}

/// The pass over rows: delta while dO is at hand, then dQ, which is stored or folded.
void two_pass_row_panel(const PlanData& plan, const Head& head, std::int64_t row_panel, Slice slice,
                        WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(Product::backward_rows, row_panel));
  const Block query = names.rows(Operand::query, names.features());
  const Block grad_output = names.rows(Operand::grad_output, names.value_features());
  const Block lse = names.statistic(Operand::lse);
  const Block delta = names.statistic(Operand::delta);
  const Block grad_query = names.rows(Operand::grad_query, names.features());
  for (const Block& block : {query, grad_output, lse}) visitor.load(block);
  create_delta(names, visitor);
  visitor.create(grad_query);
  for (const PlanTile& tile : plan.tiles(Product::backward_rows, head).row(row_panel)) {
    const Block score = names.pairs(Operand::score, tile);
    const Block grad_score = names.pairs(Operand::grad_score, tile);
    row_tile(plan, names, tile, visitor);
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

void backward_in_one_pass(const PlanData& plan, const PhaseConsumer& consume) {
  // Where one task sees all of a row panel's tiles, delta comes with them.
  if (plan.product(Product::backward_rows).rows_pass) {
    consume_row_panels(plan, Product::backward_rows, "delta", consume,
                       [&plan](const Head& head, std::int64_t panel, WalkVisitor& visitor) {
                         walk_delta(TileNames(plan, head, plan.row_range(Product::backward_rows, panel)), visitor);
                       });
  } else {
    consume_shared_panels(plan, Product::backward_rows, "delta", consume,
                          [](const PlanData& data, const Head& head, const SharedPanel& panel, WalkVisitor& visitor) {
                            walk_delta(TileNames(data, head, data.row_range(Product::backward_rows, panel.panel)),
                                       visitor);
                          });
  }
  backward_in_slices(plan, consume);
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
  if (plan.product(Product::forward).rows_pass) {
    return consume_row_panels(plan, Product::forward, "rows", consume,
                              [&plan](const Head& head, std::int64_t panel, WalkVisitor& visitor) {
                                forward_passing_rows(plan, head, panel, visitor);
                              });
  }
  const std::int64_t heads = plan.problem.query_heads;
  if (plan.product(Product::forward).panel_by_panel) {
    for (std::int64_t panel = 0; panel < plan.column_panels(Product::forward); ++panel) {
      consume_row_panels(plan, Product::forward, "rows", consume,
                         [&plan, panel](const Head& head, std::int64_t row_panel, WalkVisitor& visitor) {
                           const auto part = part_of_panel(plan, Product::forward, head, row_panel, panel);
                           if (part) forward_row_panel(plan, {head, *part}, nullptr, visitor);
                         });
    }
    return consume_shared_panels(plan, Product::forward, "joined rows", consume, join_row_panel);
  }
  const std::int64_t most = plan.most_row_items(Product::forward);
  consume({"rows", plan.problem.batch * heads * most, [&plan, heads, most](std::int64_t task, WalkVisitor& visitor) {
             const std::int64_t query = task / most % heads;
             const Head head{task / most / heads, query, query / plan.heads_per_group()};
             const std::int64_t items = plan.row_items(Product::forward, head);
             const std::int64_t item = task % most;
             if (item >= items) return;
             const bool is_last = item + 1 == items;
             const HeadItem next{head, is_last ? RowItem{} : plan.row_item(Product::forward, head, item + 1)};
             forward_row_panel(plan, {head, plan.row_item(Product::forward, head, item)}, is_last ? nullptr : &next,
                               visitor);
           }});
  consume_shared_panels(plan, Product::forward, "joined rows", consume, join_row_panel);
}

void recompute_backward(const PlanData& plan, const PhaseConsumer& consume) {
  if (plan.backward_passes == BackwardPasses::two) {
    backward_in_two_passes(plan, consume);
  } else {
    backward_in_one_pass(plan, consume);
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
