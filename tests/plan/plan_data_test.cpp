#include "plan/plan_data.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
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
    raise(most.column_features, key.rows, key.columns);
    raise(most.column_value_features, value.rows, value.columns);
    // Products on their way to the gradients of keys: a row for each key of the tile.
    if (step.operation == Operation::grad_key) raise(most.column_features, step.keys, step.features);
    if (step.operation == Operation::grad_value) raise(most.column_value_features, step.keys, step.features);
  }

  struct Most {
    std::int64_t row_features = 0;
    std::int64_t row_value_features = 0;
    std::int64_t column_features = 0;
    std::int64_t column_value_features = 0;
    std::int64_t row = 0;
    std::int64_t tile = 0;
  } most;

 private:
  Block key, value;  ///< in fast memory

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
        most.tile = std::max(most.tile, tile_layout(block.rows.size(), block.columns.size(), block.pairs).values);
        return;
    }
  }
};

void check_scratch(const Plan& plan) {
  ScratchMeter meter;
  const PhaseConsumer follow = [&meter](const Phase& phase) {
    for (std::int64_t task = 0; task < phase.tasks; ++task) phase.walk(task, meter);
  };
  forward_phases(plan.data(), follow);
  for (const BackwardTasks tasks : {BackwardTasks::heads, BackwardTasks::chunks}) {
    backward_phases(plan.data(), tasks, follow);
  }
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
  CHECK(tile_layout(16, 64, 128).compact == false);
  CHECK(tile_layout(16, 64, 128).values == 16 * 64);
  CHECK(tile_layout(16, 64, 127).compact);
  CHECK(tile_layout(16, 64, 127).values == 128);
  // Rows of a dense tile stand a multiple of 16 apart, also where it is narrow.
  CHECK(tile_layout(3, 5, 15).row_stride == 16);
  CHECK(tile_layout(3, 5, 15).values == 48);
  CHECK(tile_layout(2, 3, 1).compact == false);
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

TEST_CASE("recompute stores the pairs of a group of heads, but no more than a chunk") {
  const PlanOptions options{
      .schedule = Schedule::recompute, .backward_passes = BackwardPasses::one, .row_panel = 64, .column_panel = 64};
  // Whole tiles of 64 x 64: what is stored is n^2 for each query head of the group.
  const auto stored = [&](std::int64_t n, std::int64_t heads, std::int64_t key_value_heads) {
    const Plan plan =
        make_plan(full(n), {.head_dim = 1, .query_heads = heads, .key_value_heads = key_value_heads}, options);
    return pair_store_values(plan.data());
  };
  CHECK(stored(128, 1, 1) == 128 * 128);
  CHECK(stored(128, 4, 4) == 128 * 128);
  CHECK(stored(128, 4, 2) == 2 * 128 * 128);
  CHECK(stored(128, 4, 1) == 4 * 128 * 128);
  CHECK(stored(4096, 1, 1) == kPairStoreValues);
}
