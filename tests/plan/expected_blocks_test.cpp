#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan/plan_data.hpp"
#include "plan/schedules.hpp"
#include "plan/walk.hpp"
#include "support/sample_patterns.hpp"
#include "support/schedules.hpp"

using namespace cobble;
using namespace cobble::detail;
using namespace cobble::test;

namespace {

bool same_place(const Block& a, const Block& b) {
  return a.operand == b.operand && a.head.batch == b.head.batch && a.head.query == b.head.query && a.rows == b.rows &&
         a.slice == b.slice;
}

/// Follows a walk and checks that what it hints at is brought to fast memory soon.
class Hints final : public WalkVisitor {
 public:
  void load(const Block& block) override { bring(block); }
  void create(const Block&) override {}
  void stream(const Block& block, std::int64_t, Stream) override { bring(block); }
  void compute(const Step&) override {}
  void store(const Block&) override {}
  void drop(const Block&) override {}
  bool looks_ahead() const noexcept override { return true; }
  void expect(std::span<const Block> blocks) override {
    // Those of the hint before have come by now, but for the rest of a tile that has just begun.
    finish();
    before_ = std::move(open_);
    open_.assign(blocks.begin(), blocks.end());
    hints += std::ssize(open_);
  }
  void finish() {
    missing += std::ssize(before_);
    before_.clear();
  }

  std::int64_t hints = 0;
  std::int64_t missing = 0;
  std::int64_t brought = 0;         ///< keys and values
  std::int64_t brought_hinted = 0;  ///< of these, with a hint

 private:
  void bring(const Block& block) {
    const bool keys = block.operand == Operand::key || block.operand == Operand::value;
    bool hinted = false;
    for (std::vector<Block>* const blocks : {&open_, &before_}) {
      hinted |= std::erase_if(*blocks, [&](const Block& expected) { return same_place(expected, block); }) > 0;
    }
    brought += keys;
    brought_hinted += keys && hinted;
  }

  std::vector<Block> before_;
  std::vector<Block> open_;
};

}  // namespace

TEST_CASE("a walk brings what it hinted at before the hint after the next") {
  std::int64_t walks = 0;
  for (const SamplePattern& sample : named_sample_patterns(130, 130)) {
    for (const std::int64_t words : kFastMemories) {
      for (const PlanOptions& options : all_schedules(words)) {
        INFO(sample.name, ", ", describe(options));
        const auto plan =
            feasible_plan(sample.pattern, {.head_dim = 8, .query_heads = 2, .key_value_heads = 1}, options);
        if (!plan) continue;
        Hints hints;
        const PhaseConsumer follow = [&hints](const Phase& phase) {
          for (std::int64_t task = 0; task < phase.tasks; ++task) phase.walk(task, hints);
          hints.expect({});
          hints.expect({});
        };
        forward_phases(plan->data(), follow);
        backward_phases(plan->data(), follow);
        CHECK(hints.missing == 0);
        walks += hints.hints > 0;
      }
    }
  }
  CHECK(walks > 100);
}

TEST_CASE("of tiles that are multiplied densely all but the first panels of a pass have a hint") {
  const Plan plan = make_plan(window(1024, 128, 0), {.head_dim = 64},
                              {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::one});
  for (const auto& phases : {forward_phases, backward_phases}) {
    Hints hints;
    phases(plan.data(), [&hints](const Phase& phase) {
      for (std::int64_t task = 0; task < phase.tasks; ++task) phase.walk(task, hints);
    });
    CHECK(hints.brought > 60);
    CHECK(hints.brought_hinted >= hints.brought - 4);
  }
}
