#include "cobble/plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/pebble.hpp"
#include "cobble/tile_choice.hpp"
#include "support/attention_inputs.hpp"
#include "support/error_of.hpp"
#include "support/schedules.hpp"
#include "support/threads.hpp"

using namespace cobble;
using namespace cobble::test;

namespace {

constexpr std::int64_t kWordBytes = 4;

std::string error_of_plan(const PatternGrid& patterns, const Problem& problem, const PlanOptions& options = {}) {
  return error_of([&] { make_plan(patterns, problem, options); });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const PlanCandidate& chosen(const Plan& plan) {
  const auto& all = plan.candidates();
  return *std::find_if(all.begin(), all.end(), [](const PlanCandidate& candidate) { return candidate.chosen; });
}

std::int64_t words(const PlanCandidate& candidate) { return candidate.forward_words + candidate.backward_words; }

/// Sets COBBLE_FAST_MEMORY, and puts back what was there.
class FastMemoryVariable {
 public:
  explicit FastMemoryVariable(const char* value) {
    if (const char* old = std::getenv(kName)) old_ = old;
    ::setenv(kName, value, 1);
  }
  FastMemoryVariable(const FastMemoryVariable&) = delete;
  FastMemoryVariable& operator=(const FastMemoryVariable&) = delete;
  ~FastMemoryVariable() { old_.empty() ? ::unsetenv(kName) : ::setenv(kName, old_.c_str(), 1); }

 private:
  static constexpr const char* kName = "COBBLE_FAST_MEMORY";
  std::string old_;
};

}  // namespace

TEST_CASE("sizes of a problem that make no sense are refused by name") {
  const Pattern pattern = full(4);
  CHECK(error_of_plan(pattern, {.head_dim = 0}) == "invalid_argument: head_dim = 0, expected at least 1");
  CHECK(error_of_plan(pattern, {.head_dim = -3}) == "invalid_argument: head_dim = -3, expected at least 1");
  CHECK(error_of_plan(pattern, {.value_dim = -1}).starts_with("invalid_argument: value_dim = -1, expected 0"));
  CHECK(error_of_plan(pattern, {.query_heads = 0}) == "invalid_argument: query_heads = 0, expected at least 1");
  CHECK(error_of_plan(pattern, {.key_value_heads = -2}).starts_with("invalid_argument: key_value_heads = -2"));
  CHECK(error_of_plan(pattern, {.batch = 0}) == "invalid_argument: batch = 0, expected at least 1");
  for (const std::int64_t heads : {3, 8}) {
    CHECK(error_of_plan(pattern, {.query_heads = 4, .key_value_heads = heads}) ==
          "invalid_argument: key_value_heads = " + std::to_string(heads) + " does not divide query_heads = 4");
  }
  CHECK(contains(error_of_plan(pattern, {.scale = std::nan("")}), "invalid_argument: scale = nan"));
  CHECK(contains(error_of_plan(pattern, {.scale = std::numeric_limits<double>::infinity()}), "scale = inf"));
}

TEST_CASE("options that make no sense are refused by name") {
  const auto error = [](const PlanOptions& options) { return error_of_plan(full(4), {}, options); };
  CHECK(error({.fast_memory_bytes = -1}).starts_with("invalid_argument: fast_memory_bytes = -1"));
  CHECK(error({.element_bytes = 0}) == "invalid_argument: element_bytes = 0, expected at least 1");
  CHECK(error({.row_panel = -1}).starts_with("invalid_argument: row_panel = -1"));
  CHECK(error({.column_panel = -7}).starts_with("invalid_argument: column_panel = -7"));
}

TEST_CASE("products of sizes that leave 64 bits are refused") {
  constexpr std::int64_t kMany = std::int64_t{1} << 40;
  CHECK(error_of_plan(full(4), {.query_heads = kMany, .batch = kMany}).starts_with("overflow: "));
}

TEST_CASE("a grid of patterns must have the problem's batch and heads, or 1") {
  const std::vector<Pattern> six(6, causal(5));
  CHECK(error_of_plan(PatternGrid(six, 2, 3), {.query_heads = 3, .batch = 2}) == "no error");
  CHECK(error_of_plan(PatternGrid(six, 6, 1), {.query_heads = 3, .batch = 6}) == "no error");
  CHECK(error_of_plan(PatternGrid(six, 2, 3), {.query_heads = 3, .batch = 4}) ==
        "shape_mismatch: the patterns have batch = 2, the problem 4; expected that or 1");
  CHECK(error_of_plan(PatternGrid(six, 1, 6), {.query_heads = 3}) ==
        "shape_mismatch: the patterns have heads = 6, the problem 3; expected that or 1");
}

TEST_CASE("a fast memory that holds no tile is refused with its size") {
  const auto error = [](Schedule schedule, std::int64_t words, TileSizes sizes = TileSizes::hardware) {
    return error_of_plan(full(100), {.head_dim = 64},
                         {.schedule = schedule, .tile_sizes = sizes, .fast_memory_bytes = words * kWordBytes});
  };
  for (const TileSizes sizes : {TileSizes::hardware, TileSizes::model}) {
    const std::string recompute = error(Schedule::recompute, 100, sizes);
    CHECK(recompute.starts_with("infeasible: fast memory of 100 words holds no tile of the recompute schedule"));
    CHECK(contains(recompute, "head_dim = 64 and value_dim = 64"));
    CHECK(error(Schedule::materialize, 63, sizes).starts_with("infeasible: fast memory of 63 words"));
    CHECK(error(Schedule::automatic, 63, sizes).starts_with("infeasible: fast memory of 63 words"));
    CHECK(error(Schedule::materialize, 64, sizes) == "no error");
    CHECK(error(Schedule::automatic, 64, sizes) == "no error");
    // One row: 2 d + d_v + 2 words of its own, d of a key, a score and its gradient: 4 d + 4.
    CHECK(error(Schedule::recompute, 4 * 64 + 4, sizes) == "no error");
  }
  CHECK(error_of_plan(full(4), {}, {.fast_memory_bytes = 3}) != "no error");
}

TEST_CASE("a problem's defaults are filled in") {
  const Plan plan = make_plan(full(4), {.head_dim = 16, .query_heads = 6});
  CHECK(plan.problem().value_dim == 16);
  CHECK(plan.problem().key_value_heads == 6);
  CHECK(plan.problem().batch == 1);
  CHECK(*plan.problem().scale == 0.25);
  CHECK(*make_plan(full(4), {.scale = 3.0}).problem().scale == 3);
}

TEST_CASE("pairs are those of all batch entries and heads") {
  CHECK(make_plan(causal(10), {.query_heads = 3, .batch = 2}).total_pairs() == 6 * 55);
  const PatternGrid grid({causal(10), full(10), window(10, 0, 0)}, 1, 3);
  CHECK(make_plan(grid, {.query_heads = 3, .batch = 2}).total_pairs() == 2 * (55 + 100 + 10));
}

TEST_CASE("the regime follows from the split point, which follows from the sizes of one head") {
  const auto plan = [](const PatternGrid& patterns, const Problem& problem, std::int64_t words) {
    return make_plan(patterns, problem, {.fast_memory_bytes = words * kWordBytes});
  };
  // Full: (n d)^2 / n^2 = d^2, whatever the heads.
  for (const std::int64_t heads : {1, 4}) {
    const Problem problem{.head_dim = 16, .query_heads = heads, .batch = 2};
    CHECK(plan(full(100), problem, 256).split_point() == 256);
    CHECK(plan(full(100), problem, 256).regime() == Regime::large_fast_memory);
    CHECK(plan(full(100), problem, 255).regime() == Regime::small_fast_memory);
  }
  // The larger side and the larger features: Z_input = 200 x 32, Z = 50 x 200.
  CHECK(plan(full(50, 200), {.head_dim = 16, .value_dim = 32}, 1000).split_point() == 6400.0 * 6400 / 10000);
  // The mean of the heads: (100 + 300) / 2 pairs.
  const PatternGrid grid({window(100, 0, 0), leading_tokens(100, 3)}, 1, 2);
  CHECK(plan(grid, {.head_dim = 4, .query_heads = 2}, 1000).split_point() == 400.0 * 400 / 200);
  const Plan empty = plan(full(9) - full(9), {.head_dim = 4}, 1000);
  CHECK(std::isinf(empty.split_point()));
  CHECK(empty.regime() == Regime::small_fast_memory);
}

TEST_CASE("exactly one candidate is chosen, and the plan is that one") {
  for (const Pattern& pattern : {full(300), window(300, 30, 0), random_pairs(300, 300, 3, 1)}) {
    for (const std::int64_t memory : {256, 2000, 20000, 200000}) {
      for (const TileSizes sizes : {TileSizes::hardware, TileSizes::model}) {
        const Plan plan = make_plan(pattern, {.head_dim = 16, .query_heads = 2},
                                    {.tile_sizes = sizes, .fast_memory_bytes = memory * kWordBytes});
        INFO(plan.describe());
        const auto& all = plan.candidates();
        REQUIRE(std::count_if(all.begin(), all.end(), [](const auto& candidate) { return candidate.chosen; }) == 1);
        const PlanCandidate& best = chosen(plan);
        CHECK(plan.schedule() == best.schedule);
        CHECK(plan.row_panel() == best.row_panel);
        CHECK(plan.column_panel() == best.column_panel);
        CHECK(plan.feature_chunk() == best.feature_chunk);
        CHECK(plan.fast_memory_words() == memory);
        std::set<std::string> names;
        for (const PlanCandidate& candidate : all) {
          // The fastest by the cost model, or by the model of traffic the one that moves least.
          CHECK((sizes == TileSizes::hardware ? best.seconds <= candidate.seconds : words(best) <= words(candidate)));
          CHECK(candidate.forward_words > 0);
          CHECK(candidate.backward_words > candidate.forward_words);
          CHECK(candidate.forward_formula_words > 0);
          CHECK(candidate.backward_formula_words > candidate.forward_formula_words);
          CHECK(candidate.seconds > 0);
          // A step of the walk moves no less than its operands once.
          CHECK(candidate.seconds > static_cast<double>(words(candidate)) * kWordBytes / 1e12);
          names.insert(candidate.name);
        }
        CHECK(names.size() == all.size());
      }
    }
  }
}

TEST_CASE("with the model's sizes and pairs spread evenly the regime decides between the schedules") {
  for (const Pattern& pattern : {full(192), random_pairs(192, 192, 48, 2), random_pairs(192, 192, 12, 2)}) {
    for (std::int64_t memory = 128; memory <= 1 << 18; memory *= 4) {
      const Plan plan = make_plan(pattern, {.head_dim = 16},
                                  {.tile_sizes = TileSizes::model, .fast_memory_bytes = memory * kWordBytes});
      const bool large = static_cast<double>(memory) >= plan.split_point();
      CAPTURE(memory);
      CHECK(plan.schedule() == (large ? Schedule::recompute : Schedule::materialize));
      for (const PlanCandidate& candidate : plan.candidates()) CHECK(candidate.schedule == plan.schedule());
    }
  }
}

TEST_CASE("where tiles are fuller than the pattern, recompute is considered before the regime asks for it") {
  const auto plan = [](const Pattern& pattern, std::int64_t memory) {
    return make_plan(pattern, {.head_dim = 16},
                     {.tile_sizes = TileSizes::model, .fast_memory_bytes = memory * kWordBytes});
  };
  // M* = 16^2 n / 128 = 2048 words, but inside the blocks it is 16^2.
  const Pattern blocks = random_blocks(1024, 64, 2, 1);
  CHECK(plan(blocks, 1000).regime() == Regime::small_fast_memory);
  CHECK(plan(blocks, 1000).schedule() == Schedule::recompute);
  CHECK(plan(blocks, 100).schedule() == Schedule::materialize);
  // As many pairs spread evenly: materialize up to M*.
  CHECK(plan(random_pairs(1024, 1024, 128, 1), 1000).schedule() == Schedule::materialize);
}

TEST_CASE("a plan describes its candidates and why it chose") {
  const Plan plan = make_plan(random_pairs(500, 500, 20, 1), {.head_dim = 16}, {.fast_memory_bytes = 8000});
  const std::string text = plan.describe();
  CHECK(std::count(text.begin(), text.end(), '\n') == 1 + static_cast<std::ptrdiff_t>(plan.candidates().size()));
  CHECK(text.starts_with("M* = 6400 words, M = 2000: "));
  for (const PlanCandidate& candidate : plan.candidates()) {
    CHECK(contains(text, (candidate.chosen ? "\n* " : "\n  ") + candidate.name));
    CHECK(contains(text, std::to_string(candidate.forward_words)));
    CHECK(contains(text, std::to_string(candidate.backward_words)));
  }
}

TEST_CASE("a schedule that is asked for is the only one considered") {
  for (const std::int64_t memory : {1000, 100000}) {
    for (const Schedule schedule : {Schedule::recompute, Schedule::materialize}) {
      for (const TileSizes sizes : {TileSizes::hardware, TileSizes::model}) {
        const Plan plan =
            make_plan(random_pairs(200, 200, 10, 1), {.head_dim = 16},
                      {.schedule = schedule, .tile_sizes = sizes, .fast_memory_bytes = memory * kWordBytes});
        CHECK(plan.schedule() == schedule);
        for (const PlanCandidate& candidate : plan.candidates()) CHECK(candidate.schedule == schedule);
      }
    }
  }
}

TEST_CASE("passes that are asked for are the only ones considered") {
  for (const BackwardPasses passes : {BackwardPasses::one, BackwardPasses::two}) {
    for (const TileSizes sizes : {TileSizes::hardware, TileSizes::model}) {
      const Plan plan = make_plan(full(200), {.head_dim = 16},
                                  {.schedule = Schedule::recompute, .backward_passes = passes, .tile_sizes = sizes});
      for (const PlanCandidate& candidate : plan.candidates()) CHECK(candidate.backward_passes == passes);
    }
  }
}

TEST_CASE("panels that are given are those of the plan, cut to the pattern's size") {
  for (const BackwardPasses passes : {BackwardPasses::one, BackwardPasses::two, BackwardPasses::automatic}) {
    const auto plan = [&](std::int64_t rows, std::int64_t columns) {
      return make_plan(
          full(100, 150), {.head_dim = 16},
          {.schedule = Schedule::recompute, .backward_passes = passes, .row_panel = rows, .column_panel = columns});
    };
    CAPTURE(to_string(passes));
    CHECK(plan(7, 33).row_panel() == 7);
    CHECK(plan(7, 33).column_panel() == 33);
    CHECK(plan(1000, 1000).row_panel() == 100);
    CHECK(plan(1000, 1000).column_panel() == 150);
    CHECK(plan(5, 0).row_panel() == 5);
    CHECK(plan(0, 5).column_panel() == 5);
  }
}

TEST_CASE("tiles are counted as they are cut") {
  const PlanOptions options{
      .schedule = Schedule::recompute, .backward_passes = BackwardPasses::one, .row_panel = 64, .column_panel = 64};
  CHECK(make_plan(full(130), {}, options).tiles() == 9);
  CHECK(make_plan(causal(130), {}, options).tiles() == 6);
  CHECK(make_plan(full(130) - full(130), {}, options).tiles() == 0);
  const PatternGrid grid({full(130), causal(130)}, 1, 2);
  CHECK(make_plan(grid, {.query_heads = 2}, options).tiles() == 15);
  CHECK(make_plan(full(130), {.query_heads = 8, .batch = 3}, options).tiles() == 9);
}

TEST_CASE("the plan of a long window takes memory by tiles, not by pairs") {
  const auto check = [](Schedule schedule, std::int64_t n) {
    const Plan plan =
        make_plan(window(n, 4096, 0), {.head_dim = 64}, {.schedule = schedule, .fast_memory_bytes = 1 << 19});
    CAPTURE(to_string(schedule));
    CHECK(plan.total_pairs() == n * 4097 - 4096 * 4097 / 2);
    CHECK(plan.memory_bytes() < 100 * plan.tiles() + 32 * n);
    CHECK(plan.memory_bytes() < plan.total_pairs() / 20);
  };
  check(Schedule::recompute, 1 << 20);  // 4.3 thousand million pairs
  check(Schedule::materialize, 1 << 15);
}

TEST_CASE("hardware sizes are multiples of registers and cache lines where they fit, model sizes are to the word") {
  const Problem problem{.head_dim = 64};
  const auto plan = [&](Schedule schedule, TileSizes sizes, std::int64_t memory) {
    return make_plan(full(1000), problem,
                     {.schedule = schedule,
                      .backward_passes = BackwardPasses::two,
                      .tile_sizes = sizes,
                      .fast_memory_bytes = memory * kWordBytes});
  };
  const Plan hardware = plan(Schedule::recompute, TileSizes::hardware, 20000);
  CHECK(hardware.row_panel() % kRegisterRows == 0);
  CHECK(hardware.column_panel() % kRegisterColumns == 0);
  const AttentionSize size{1000, 1000, 1000000, 64, 64};
  const Plan model = plan(Schedule::recompute, TileSizes::model, 20000);
  CHECK(model.row_panel() == choose_panel(RecomputePass::forward, size, 20000)->rows);
  CHECK(model.row_panel() > hardware.row_panel());
  CHECK(words(chosen(model)) <= words(chosen(hardware)));

  const Plan materialized = plan(Schedule::materialize, TileSizes::hardware, 20000);
  CHECK(materialized.row_panel() % kRegisterRows == 0);
  CHECK(materialized.feature_chunk() % 16 == 0);
  CHECK(plan(Schedule::materialize, TileSizes::model, 20000).row_panel() ==
        choose_materialize(size, 20000).scores.rows);
}

TEST_CASE("nothing jumps at the split point") {
  // Full, M* = d^2; and evenly spread, M* = d^2 / rho.
  struct Sample {
    Pattern pattern;
    std::int64_t d, split;
  };
  for (const Sample& sample : {Sample{full(300), 32, 1024}, Sample{random_pairs(320, 320, 80, 4), 16, 1024}}) {
    const auto plan = [&](Schedule schedule, std::int64_t memory) {
      return make_plan(
          sample.pattern, {.head_dim = sample.d},
          {.schedule = schedule, .tile_sizes = TileSizes::model, .fast_memory_bytes = memory * kWordBytes});
    };
    REQUIRE(plan(Schedule::automatic, sample.split).split_point() == static_cast<double>(sample.split));
    for (const Schedule schedule : {Schedule::recompute, Schedule::materialize}) {
      const Plan below = plan(schedule, sample.split - 1), above = plan(schedule, sample.split + 1);
      CAPTURE(to_string(schedule));
      CHECK(std::abs(below.row_panel() - above.row_panel()) <= 1);
      CHECK(std::abs(below.feature_chunk() - above.feature_chunk()) <= 2);
      CHECK(static_cast<double>(words(chosen(above))) ==
            doctest::Approx(static_cast<double>(words(chosen(below)))).epsilon(0.05));
    }
    // The schedule changes, and with it what else moves; not the order of magnitude.
    const Plan below = plan(Schedule::automatic, sample.split - 1), at = plan(Schedule::automatic, sample.split);
    CHECK(below.schedule() == Schedule::materialize);
    CHECK(at.schedule() == Schedule::recompute);
    const double ratio = static_cast<double>(words(chosen(at))) / static_cast<double>(words(chosen(below)));
    CAPTURE(ratio);
    CHECK(ratio < 1.6);
    CHECK(ratio > 1 / 1.6);
  }
}

TEST_CASE("a default plan is feasible for any mixture of dense and scattered pairs") {
  // 16 tokens see all and are seen by all, the others have 16 random pairs: the scattered tiles are so many that the
  // dense ones hardly show in a sample, but one of those is what must fit.
  const Pattern mixed = random_pairs(8192, 8192, 16, 1) | global_tokens(8192, 16);
  for (const Schedule schedule : {Schedule::automatic, Schedule::recompute, Schedule::materialize}) {
    CAPTURE(to_string(schedule));
    CHECK(error_of_plan(mixed, {.head_dim = 16}, {.schedule = schedule, .fast_memory_bytes = 1 << 19}) == "no error");
  }
}

TEST_CASE("every plan keeps within its fast memory, also with panels of keys that are wide") {
  const Pattern scattered = random_pairs(5000, 5000, 3, 1);
  for (const std::int64_t memory : {20000, 131072}) {
    const Plan plan = make_plan(scattered, {.head_dim = 64},
                                {.schedule = Schedule::recompute,
                                 .backward_passes = BackwardPasses::one,
                                 .fast_memory_bytes = memory * kWordBytes});
    INFO(plan.describe());
    CHECK(count_forward(plan).peak_resident <= memory);
    CHECK(count_backward(plan).peak_resident <= memory);
  }
}

TEST_CASE("the finished tile of a score product leaves room for what passes beside it") {
  // Few rows with many pairs: tiles of one row, as long as fast memory allows. Rows that see all keys beside others
  // that see one: a tile that is full although the pattern is nearly empty.
  const std::vector<Pattern> patterns{random_pairs(16, 3000, 80, 1), full(1, 1000),
                                      window(1000, 0, 0) | (global_tokens(1000, 2) - leading_tokens(1000, 2))};
  for (const Pattern& pattern : patterns) {
    for (const std::int64_t memory : {64, 65, 80, 128}) {
      for (const TileSizes sizes : {TileSizes::hardware, TileSizes::model}) {
        const Plan plan = make_plan(
            pattern, {.head_dim = 4},
            {.schedule = Schedule::materialize, .tile_sizes = sizes, .fast_memory_bytes = memory * kWordBytes});
        INFO(pattern.describe(), ", ", plan.describe());
        CHECK(count_forward(plan).peak_resident <= memory);
        CHECK(count_backward(plan).peak_resident <= memory);
      }
    }
  }
}

TEST_CASE_TEMPLATE("a workspace never grows beyond what the plan says", T, float, double) {
  const std::vector<Pattern> patterns{full(50), random_pairs(120, 120, 6, 1), window(100, 20, 0)};
  for (const Pattern& pattern : patterns) {
    for (const std::int64_t heads : {1, 4}) {
      for (const std::int64_t memory : {1000, 50000}) {
        for (const PlanOptions& options : all_schedules(memory, sizeof(T))) {
          const auto plan =
              feasible_plan(pattern, {.head_dim = 16, .query_heads = heads, .key_value_heads = 1}, options);
          REQUIRE(plan.has_value());
          const Inputs<T> inputs = normal_inputs<T>(*plan, 1);
          Results<T> results = run(*plan, inputs);
          for (const int threads : {1, 2}) {
            INFO(pattern.describe(), ", ", describe(options), ", heads ", heads, ", threads ", threads);
            Workspace workspace;
            for (int call = 0; call < 2; ++call) {
              on_threads(threads, [&] {
                forward(*plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key),
                        TensorView<const T>(inputs.value), results.attention.view(), workspace);
                backward(*plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key),
                         TensorView<const T>(inputs.value), results.attention, TensorView<const T>(inputs.grad_output),
                         results.gradients.view(), workspace);
              });
            }
            CHECK(workspace.bytes() <= plan->workspace_bytes(threads, sizeof(T)));
          }
        }
      }
    }
  }
}

TEST_CASE("the bound of the workspace grows with threads and elements") {
  const Plan plan = make_plan(full(200), {.head_dim = 16});
  CHECK(plan.workspace_bytes(1, 8) == 2 * plan.workspace_bytes(1, 4));
  const std::int64_t thread = plan.workspace_bytes(2, 4) - plan.workspace_bytes(1, 4);
  CHECK(thread > 0);
  CHECK(plan.workspace_bytes(7, 4) == plan.workspace_bytes(1, 4) + 6 * thread);
}

TEST_CASE("fast memory comes from the option, else from COBBLE_FAST_MEMORY, in words of the compute type") {
  const FastMemoryVariable variable("65536");
  CHECK(make_plan(full(10), {}).fast_memory_words() == 16384);
  CHECK(make_plan(full(10), {}, {.element_bytes = 8}).fast_memory_words() == 8192);
  CHECK(make_plan(full(10), {}, {.fast_memory_bytes = 8000}).fast_memory_words() == 2000);
  {
    const FastMemoryVariable small("200");
    CHECK(make_plan(full(10), {}, {.fast_memory_bytes = 8000}).fast_memory_words() == 2000);
    CHECK(error_of_plan(full(10), {}).starts_with("infeasible: fast memory of 50 words"));
  }
  {
    const FastMemoryVariable malformed("much");
    CHECK(error_of_plan(full(10), {}).starts_with("invalid_argument: COBBLE_FAST_MEMORY"));
  }
  CHECK(make_plan(full(10), {}).fast_memory_words() == 16384);
}

TEST_CASE("schedules and passes have names") {
  CHECK(to_string(Schedule::automatic) == "auto");
  CHECK(to_string(Schedule::recompute) == "recompute");
  CHECK(to_string(Schedule::materialize) == "materialize");
  CHECK(to_string(BackwardPasses::automatic) == "auto");
  CHECK(to_string(BackwardPasses::one) == "one");
  CHECK(to_string(BackwardPasses::two) == "two");
}
