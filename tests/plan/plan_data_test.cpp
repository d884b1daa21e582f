#include "plan/plan_data.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "plan/schedules.hpp"
#include "support/sample_patterns.hpp"
#include "support/schedules.hpp"

// Scratch memory is one allocation whose parts follow one another, so no sanitizer sees one part run into the next.
// Here a visitor follows each walk and adds up what the executor may put where.

using namespace cobble;
using namespace cobble::detail;
using namespace cobble::test;

namespace {

std::int64_t padded(std::int64_t size) { return (size + 15) / 16 * 16; }

/// The most elements that any block of a walk takes in each part of scratch memory. Panels of inputs may all be packed,
/// as inputs with strides are.
class ScratchMeter final : public WalkVisitor {
 public:
  void load(const Block& block) override { hold(block); }
  void create(const Block& block) override { hold(block); }
  void stream(const Block& block, std::int64_t, Stream) override { hold(block); }
  void store(const Block&) override {}
  void drop(const Block& block) override {
    if (block.operand == Operand::key) key = {};
    if (block.operand == Operand::value) value = {};
  }
  void compute(const Step& step) override {
    // Panels of keys are packed by the first step that takes them, if any does.
    raise(most.column_features, keys_of(key.rows), key.columns);
    raise(most.column_value_features, keys_of(value.rows), value.columns);
    // Products on their way to the gradients of keys: a row for each key of the tile.
    if (step.operation == Operation::grad_key) raise(most.column_features, keys_of(step.keys), step.features);
    if (step.operation == Operation::grad_value) raise(most.column_value_features, keys_of(step.keys), step.features);
  }

  struct Most {
    std::int64_t row_features = 0;
    std::int64_t row_value_features = 0;
    std::int64_t column_features = 0;
    std::int64_t column_value_features = 0;
    std::int64_t row = 0;
    std::int64_t tile = 0;
  } most;
  bool lists = false;
  bool gathers = false;

 private:
  Block key, value;        ///< in fast memory
  std::int64_t width = 0;  ///< of the tile

  /// Of keys that are gathered there are as many as the tile holds.
  Range keys_of(Range keys) const { return gathers && keys.size() > 0 ? Range{0, width} : keys; }

  static void raise(std::int64_t& most, Range tokens, Range features) {
    most = std::max(most, tokens.size() * padded(features.size()));
  }
  void hold(const Block& block) {
    switch (block.operand) {
      case Operand::query:
      case Operand::grad_query: return raise(most.row_features, block.rows, block.columns);
      case Operand::output:
      case Operand::grad_output: return raise(most.row_value_features, block.rows, block.columns);
      case Operand::key: key = block; return;
      case Operand::value: value = block; return;
      default: return;  // in the caller's memory
      case Operand::lse:
      case Operand::delta:
      case Operand::row_maximum:
      case Operand::row_sum: most.row = std::max(most.row, block.rows.size()); return;
      case Operand::score:
      case Operand::grad_score:
        width = block.tokens;
        if (gathers) most.tile = std::max(most.tile, width * padded(block.rows.size()));
        most.tile = std::max(most.tile, tile_layout(block.rows.size(), block.tokens, block.pairs, lists).values);
        return;
    }
  }
};

void check_scratch(const Plan& plan) {
  ScratchMeter meter;
  meter.lists = plan.data().lists;
  meter.gathers = plan.data().gathers;
  const PhaseConsumer follow = [&meter](const Phase& phase) {
    for (std::int64_t task = 0; task < phase.tasks; ++task) phase.walk(task, meter);
  };
  forward_phases(plan.data(), follow);
  backward_phases(plan.data(), follow);
  const ScratchSizes sizes = scratch_sizes(plan.data());
  CHECK(sizes.row_panel_features >= meter.most.row_features);
  CHECK(sizes.row_panel_value_features >= meter.most.row_value_features);
  CHECK(sizes.column_panel_features >= meter.most.column_features);
  CHECK(sizes.column_panel_value_features >= meter.most.column_value_features);
  CHECK(sizes.row_panel >= meter.most.row);
  CHECK(sizes.tile >= meter.most.tile);
  // Every part begins at a cache line: 16 elements of at least 4 bytes.
  for (const std::int64_t part : {sizes.row_panel_features, sizes.row_panel_value_features, sizes.column_panel_features,
                                  sizes.column_panel_value_features, sizes.row_panel, sizes.tile}) {
    CHECK(part % kPaddedElements == 0);
  }
}

}  // namespace

TEST_CASE("no part of scratch memory is too small for any walk") {
  struct Size {
    std::int64_t first, second;
  };
  constexpr std::array kDims{Size{9, 13}, Size{40, 3}, Size{1, 70}};
  std::size_t turn = 0;
  for (const Size size : {Size{65, 65}, {30, 100}, {100, 30}}) {
    const std::int64_t n_q = size.first, n_k = size.second;
    for (const SamplePattern& sample : named_sample_patterns(n_q, n_k)) {
      for (const std::int64_t words : kFastMemories) {
        for (const PlanOptions& options : all_schedules(words)) {
          const Size dims = kDims[turn++ % kDims.size()];
          INFO(sample.name, ", ", n_q, " x ", n_k, ", d ", dims.first, ", d_v ", dims.second, ", ", describe(options));
          const auto plan = feasible_plan(sample.pattern, {.head_dim = dims.first, .value_dim = dims.second}, options);
          if (plan) check_scratch(*plan);
        }
      }
    }
  }
}

TEST_CASE("no part of scratch memory is too small when panels are given") {
  for (const std::int64_t rows : {1, 7, 64, 1000}) {
    for (const std::int64_t columns : {1, 50, 1000}) {
      for (const Pattern& pattern : {full(70, 90), random_pairs(70, 90, 3, 1)}) {
        INFO(rows, " x ", columns);
        check_scratch(make_plan(pattern, {.head_dim = 5, .value_dim = 20, .query_heads = 4, .key_value_heads = 2},
                                {.schedule = Schedule::recompute, .row_panel = rows, .column_panel = columns}));
      }
    }
  }
}

TEST_CASE("a tile is compact when fewer than one place in eight holds a pair") {
  CHECK(tile_layout(16, 64, 128, false).compact == false);
  CHECK(tile_layout(16, 64, 128, false).values == 16 * 64);
  CHECK(tile_layout(16, 64, 127, false).compact);
  CHECK(tile_layout(16, 64, 127, false).values == 128);
  // Keys of a dense tile stand a multiple of 16 apart, also where it has few rows.
  CHECK(tile_layout(3, 5, 15, false).values == 5 * 16);
  CHECK(tile_layout(2, 3, 1, false).compact == false);
}

TEST_CASE("the store of pairs holds the largest head, in compressed rows when materialized") {
  const Pattern uneven = from_csr({4, 100, {0, 3, 3, 8, 9}, {0, 50, 99, 1, 2, 3, 4, 5, 7}});
  const PatternGrid grid({uneven, full(4, 100)}, 1, 2);
  const Plan materialized = make_plan(grid, {.head_dim = 4, .query_heads = 2}, {.schedule = Schedule::materialize});
  CHECK(pair_store_values(materialized.data()) == 400);
  CHECK(materialized.data().pair_offsets ==
        std::vector<std::vector<std::int64_t>>{{0, 3, 3, 8, 9}, {0, 100, 200, 300, 400}});

  const Plan two = make_plan(grid, {.head_dim = 4, .query_heads = 2},
                             {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::two});
  CHECK(pair_store_values(two.data()) == 0);
}

namespace {

const KeySlices& slices_of(const Plan& plan, std::int64_t key_value = 0) {
  return plan.data().slices({0, key_value * plan.data().heads_per_group(), key_value});
}

}  // namespace

TEST_CASE("slices of the one-pass backward hold about as many pairs each") {
  const Pattern pattern = window(16384, 255, 0);
  const Plan plan = make_plan(pattern, {.head_dim = 64}, {.schedule = Schedule::recompute, .threads = 2});
  const KeySlices& slices = slices_of(plan);
  REQUIRE(slices.count() > 2);
  CHECK(slices.begins.front() == 0);
  CHECK(slices.begins.back() == plan.data().row_panels(Product::backward_rows));
  const std::int64_t height = plan.data().cut(Product::backward_rows).row_panel;
  for (std::int64_t slice = 0; slice < slices.count(); ++slice) {
    const auto index = static_cast<std::size_t>(slice);
    const std::int64_t held = pattern.pairs(slices.begins[index] * height, slices.begins[index + 1] * height);
    CHECK(std::abs(held - pattern.pairs() / slices.count()) <= 2 * height * 256);
  }
}

TEST_CASE("for one thread nothing is cut") {
  CHECK(slices_of(make_plan(window(16384, 255, 0), {}, {.schedule = Schedule::recompute, .threads = 1})).count() == 1);
}

TEST_CASE("where slices all touch the same keys, threads get some each, and one thread few or none") {
  const Pattern pattern = random_pairs(8192, 8192, 64, 5);
  const auto slices = [&](const Problem& problem, std::int64_t threads) {
    return slices_of(make_plan(pattern, problem, {.schedule = Schedule::recompute, .threads = threads})).count();
  };
  CHECK(slices({.head_dim = 64}, 1) == 1);
  CHECK(slices({.head_dim = 64}, 2) == 2);
  CHECK(slices({.head_dim = 64, .query_heads = 2}, 2) == 1);
  CHECK(slices({.head_dim = 64}, 16) > 2);
}

TEST_CASE("slices are cut by what their pairs cost, and none is shorter than a task should be") {
  const auto slices = [](const Pattern& pattern, double flop_per_second) {
    PlanOptions options = {.schedule = Schedule::recompute, .threads = 2};
    CostModel& cost = options.cost_model;
    for (double* const rate : {&cost.dense_flop_per_second, &cost.near_pair_flop_per_second,
                               &cost.middle_pair_flop_per_second, &cost.far_pair_flop_per_second}) {
      *rate = flop_per_second;
    }
    return slices_of(make_plan(pattern, {.head_dim = 64}, options)).count();
  };
  const Pattern scattered = random_pairs(4096, 4096, 16, 5);
  CHECK(slices(scattered, 2e10) == 2);
  CHECK(slices(full(64), 1e11) == 1);
  CHECK(slices(full(64), 1e9) == 1);  // one row panel
  CHECK(slices(full(256), 1e13) == 1);
  CHECK(slices(full(256), 1e10) > 1);
}

TEST_CASE("slots of slices stay small beside the tensors") {
  const Plan plan = make_plan(full(65536), {.head_dim = 64}, {.schedule = Schedule::recompute, .threads = 64});
  const std::int64_t values = all_slot_values(plan.data(), 64) + all_slot_values(plan.data(), 64);
  CHECK(slices_of(plan).count() > 1);
  CHECK(values <= std::int64_t{1} << 24);
}

TEST_CASE("of the slices that touch a panel of keys the first has the caller's memory, the others a slot each") {
  const Plan plan = make_plan(window(8192, 255, 0), {.head_dim = 64}, {.schedule = Schedule::recompute, .threads = 2});
  const KeySlices& slices = slices_of(plan);
  REQUIRE(slices.count() > 2);
  std::vector<bool> used(static_cast<std::size_t>(slices.slot_count) + 1, false);
  for (std::int64_t panel = 0; panel < slices.column_panels; ++panel) {
    std::int64_t owners = 0;
    for (std::int64_t slice = 0; slice < slices.count(); ++slice) {
      const std::int64_t slot = slices.slot(slice, panel);
      if (slot == 0) {
        ++owners;
      } else if (slot > 0) {
        CHECK(owners == 1);
        CHECK(!used[static_cast<std::size_t>(slot)]);
        used[static_cast<std::size_t>(slot)] = true;
      }
    }
    CHECK(owners == 1);
  }
  // A band is touched twice only where two slices meet: the window and the panel around it.
  CHECK(slices.slot_count <= 4 * (slices.count() - 1));
}

TEST_CASE("keys that nobody attends to belong to a slice as well") {
  const Plan plan = make_plan(leading_tokens(100, 1000, 10), {.head_dim = 8}, {.schedule = Schedule::recompute});
  const KeySlices& slices = slices_of(plan);
  for (std::int64_t panel = 0; panel < slices.column_panels; ++panel) CHECK(slices.slot(0, panel) == 0);
}

TEST_CASE("the model's walk, few pairs and many heads make one slice") {
  CHECK(slices_of(make_plan(full(1024), {.head_dim = 8},
                            {.backward_passes = BackwardPasses::one, .tile_sizes = TileSizes::model}))
            .count() == 1);
  CHECK(slices_of(make_plan(full(256), {.head_dim = 8})).count() == 1);
  CHECK(slices_of(make_plan(full(1024), {.head_dim = 8, .query_heads = 32})).count() == 1);
}
