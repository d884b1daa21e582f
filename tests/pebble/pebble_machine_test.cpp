#include "pebble/pebble_machine.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cobble/attention.hpp"
#include "plan/schedules.hpp"
#include "support/error_of.hpp"

// The machine catches a walk that cheats, each way of cheating as a case of its own, and counts an honest one as one
// does by hand.

using namespace cobble;
using namespace cobble::detail;
using cobble::test::error_of;

namespace {

using Pass = PebbleMachine::Pass;

constexpr std::int64_t kWordBytes = 4;

/// One head of d = 2 in tiles of 2 x 2.
Plan small_plan(const Pattern& pattern, std::int64_t fast_memory_words) {
  return make_plan(pattern, {.head_dim = 2},
                   {.schedule = Schedule::recompute,
                    .backward_passes = BackwardPasses::one,
                    .fast_memory_bytes = fast_memory_words * kWordBytes,
                    .row_panel = 2,
                    .column_panel = 2});
}
Plan dense_plan(std::int64_t fast_memory_words = 64) { return small_plan(full(4), fast_memory_words); }

/// Rows {0, 1}, {0}, {} and {3}: the upper left tile has 3 pairs, 2 rows, 2 keys; the upper right one none.
Plan sparse_plan() { return small_plan(from_csr({4, 4, {0, 2, 3, 3, 4}, {0, 1, 0, 3}}), 64); }

Block tokens(Operand operand, Range rows, Range features) { return {operand, {}, rows, features, rows.size()}; }
Block pairs(Operand operand, Range rows, Range keys, std::int64_t count) {
  return {operand, {}, rows, keys, 0, count, TileKind::partial};
}

constexpr Range kUpper{0, 2};  ///< rows, or keys, of the first panel
constexpr Range kLower{2, 4};
constexpr Range kFeatures{0, 2};
constexpr Range kOne{0, 1};

const Block kQuery = tokens(Operand::query, kUpper, kFeatures);
const Block kKey = tokens(Operand::key, kUpper, kFeatures);
const Block kValue = tokens(Operand::value, kUpper, kFeatures);
const Block kOutput = tokens(Operand::output, kUpper, kFeatures);
const Block kScore = pairs(Operand::score, kUpper, kUpper, 4);

Step step(Operation operation) { return {operation, {}, kUpper, kUpper, kFeatures, 4, TileKind::full}; }

/// What `walk` is caught at, "no error" when at nothing.
template <class Walk>
std::string caught(const Plan& plan, Pass pass, Walk walk) {
  PebbleMachine machine(plan.data(), pass);
  return error_of([&] { walk(machine); });
}
template <class Walk>
std::string caught(Walk walk) {
  return caught(dense_plan(), Pass::forward, walk);
}

bool says(const std::string& error, const std::string& part) {
  return error.starts_with("model_violation: ") && error.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("computing with what has not been loaded is caught") {
  const std::string error = caught([](PebbleMachine& machine) {
    machine.load(kQuery);
    machine.create(kScore);
    machine.compute(step(Operation::scores));
  });
  CHECK(error == "model_violation: scores needs key [0, 2) x [0, 2), which is not in fast memory");
}

TEST_CASE("computing with what has been dropped is caught") {
  const std::string error = caught([](PebbleMachine& machine) {
    machine.load(kQuery);
    machine.load(kKey);
    machine.create(kScore);
    machine.drop(kQuery);
    machine.compute(step(Operation::scores));
  });
  CHECK(says(error, "scores needs query"));
}

TEST_CASE("computing where no room has been made for the result is caught") {
  const std::string error = caught([](PebbleMachine& machine) {
    machine.load(kQuery);
    machine.load(kKey);
    machine.compute(step(Operation::scores));
  });
  CHECK(says(error, "scores needs score"));
}

TEST_CASE("computing with some of the tokens or features that it takes is caught") {
  const auto with_key = [](const Block& key) {
    return caught([&](PebbleMachine& machine) {
      machine.load(kQuery);
      machine.create(kScore);
      machine.load(key);
      machine.compute(step(Operation::scores));
    });
  };
  CHECK(with_key(kKey) == "no error");
  CHECK(says(with_key(tokens(Operand::key, {0, 1}, kFeatures)), "scores needs key"));
  CHECK(says(with_key(tokens(Operand::key, {1, 3}, kFeatures)), "scores needs key"));
  CHECK(says(with_key(tokens(Operand::key, kUpper, {0, 1})), "scores needs key"));
  CHECK(says(with_key(tokens(Operand::key, kUpper, {1, 2})), "scores needs key"));
  CHECK(says(with_key(tokens(Operand::value, kUpper, kFeatures)), "scores needs key"));
}

TEST_CASE("every operation names each operand that it lacks") {
  struct Needs {
    Operation operation;
    std::vector<Block> blocks;
  };
  const auto statistic = [](Operand operand) { return tokens(operand, kUpper, kOne); };
  const Block maximum = statistic(Operand::row_maximum), sum = statistic(Operand::row_sum);
  const Block lse = statistic(Operand::lse), delta = statistic(Operand::delta);
  const Block grad_score = pairs(Operand::grad_score, kUpper, kUpper, 4);
  const Block grad_output = tokens(Operand::grad_output, kUpper, kFeatures);
  const std::vector<Needs> all{
      {Operation::scores, {kQuery, kKey, kScore}},
      {Operation::online_softmax, {kScore, maximum, sum, kOutput}},
      {Operation::row_statistics, {kScore, maximum, sum}},
      {Operation::accumulate_output, {kScore, kValue, kOutput}},
      {Operation::finish_output, {kOutput, maximum, sum, lse}},
      {Operation::finish_lse, {maximum, sum, lse}},
      {Operation::delta, {grad_output, kOutput, delta}},
      {Operation::probabilities, {kScore, lse}},
      {Operation::grad_probabilities, {grad_output, kValue, grad_score}},
      {Operation::grad_scores, {kScore, grad_score, delta}},
      {Operation::grad_query, {grad_score, kKey, tokens(Operand::grad_query, kUpper, kFeatures)}},
      {Operation::grad_key, {grad_score, kQuery, tokens(Operand::grad_key, kUpper, kFeatures)}},
      {Operation::grad_value, {kScore, grad_output, tokens(Operand::grad_value, kUpper, kFeatures)}}};
  const Plan plan = dense_plan();
  for (const Needs& needs : all) {
    CAPTURE(to_string(needs.operation));
    for (std::size_t missing = 0; missing <= needs.blocks.size(); ++missing) {
      const std::string error = caught(plan, Pass::backward, [&](PebbleMachine& machine) {
        for (std::size_t k = 0; k < needs.blocks.size(); ++k) {
          if (k != missing) machine.create(needs.blocks[k]);
        }
        machine.compute(step(needs.operation));
      });
      if (missing == needs.blocks.size()) {
        CHECK(error == "no error");
      } else {
        const std::string name(to_string(needs.blocks[missing].operand));
        CHECK(says(error, std::string(to_string(needs.operation)) + " needs " + name + " "));
      }
    }
  }
}

TEST_CASE("loading what was never stored is caught") {
  const Plan plan = dense_plan();
  const auto load = [&](Pass pass, const Block& block) {
    return caught(plan, pass, [&](PebbleMachine& machine) { machine.load(block); });
  };
  const auto statistic = [](Operand operand) { return tokens(operand, kUpper, kOne); };
  for (const Block& block :
       {kOutput, statistic(Operand::lse), statistic(Operand::row_maximum), statistic(Operand::row_sum)}) {
    CHECK(says(load(Pass::forward, block), "is loaded before it has been stored"));
  }
  for (const Block& block :
       {statistic(Operand::delta), tokens(Operand::grad_query, kUpper, kFeatures),
        tokens(Operand::grad_key, kUpper, kFeatures), tokens(Operand::grad_value, kUpper, kFeatures)}) {
    CHECK(says(load(Pass::backward, block), "is loaded before it has been stored"));
  }
  CHECK(says(load(Pass::forward, kScore), "is loaded before all pairs have been stored"));
  // Backward takes what forward left behind.
  CHECK(load(Pass::backward, kOutput) == "no error");
  CHECK(load(Pass::backward, statistic(Operand::lse)) == "no error");
  CHECK(says(load(Pass::backward, statistic(Operand::row_maximum)), "before it has been stored"));
}

TEST_CASE("streaming in what was never stored is caught, streaming it out is not") {
  const Block sum = tokens(Operand::row_sum, kUpper, kOne);
  for (const Stream direction : {Stream::in, Stream::in_out}) {
    CHECK(
        says(caught([&](PebbleMachine& machine) { machine.stream(sum, 1, direction); }), "before it has been stored"));
  }
  CHECK(caught([&](PebbleMachine& machine) {
          machine.stream(sum, 1, Stream::out);
          machine.drop(sum);
          machine.load(sum);
        }) == "no error");
}

TEST_CASE("a word counts as stored only where it was") {
  const auto load_after = [](const Block& stored, const Block& loaded) {
    return caught([&](PebbleMachine& machine) {
      machine.create(stored);
      machine.store(stored);
      machine.drop(stored);
      machine.load(loaded);
    });
  };
  CHECK(load_after(kOutput, kOutput) == "no error");
  CHECK(load_after(kOutput, tokens(Operand::output, {1, 2}, kFeatures)) == "no error");
  CHECK(says(load_after(kOutput, tokens(Operand::output, {1, 3}, kFeatures)), "before it has been stored"));
  CHECK(says(load_after(tokens(Operand::output, kUpper, {0, 1}), kOutput), "before it has been stored"));
}

TEST_CASE("holding more than fast memory is caught, to the word") {
  const auto hold = [](std::int64_t fast_memory) {
    return caught(dense_plan(fast_memory), Pass::forward, [](PebbleMachine& machine) {
      for (const Range rows : {kUpper, kLower}) {
        for (const Operand operand : {Operand::query, Operand::key, Operand::value}) {
          machine.load(tokens(operand, rows, kFeatures));
        }
      }
      for (const Range features : {Range{0, 1}, Range{1, 2}}) machine.create(tokens(Operand::output, {0, 4}, features));
    });
  };
  // 6 blocks of 4 words and 2 of 4: 32.
  CHECK(hold(32) == "no error");
  CHECK(says(hold(31), "brings fast memory to 32 words; it has 31"));
}

TEST_CASE("a streamed block occupies its window, and no more than itself") {
  const Block whole = tokens(Operand::output, {0, 4}, kFeatures);
  const auto peak = [&](std::int64_t window) {
    const Plan plan = dense_plan();
    PebbleMachine machine(plan.data(), Pass::backward);
    machine.stream(whole, window, Stream::in);
    CHECK(machine.count().loads == 8);
    machine.drop(whole);
    machine.end_task();
    return machine.count().peak_resident;
  };
  CHECK(peak(1) == 1);
  CHECK(peak(5) == 5);
  CHECK(peak(100) == 8);
  CHECK(says(caught([&](PebbleMachine& machine) { machine.stream(kKey, 0, Stream::in); }), "through no word at all"));
}

TEST_CASE("a second step with tokens that have passed by is caught") {
  const auto two_steps = [](bool stream_again) {
    return caught([&](PebbleMachine& machine) {
      machine.load(kQuery);
      machine.create(kScore);
      machine.stream(kKey, 2, Stream::in);
      machine.compute(step(Operation::scores));
      if (stream_again) {
        machine.drop(kKey);
        machine.stream(kKey, 2, Stream::in);
      }
      machine.compute(step(Operation::scores));
    });
  };
  CHECK(two_steps(true) == "no error");
  CHECK(says(two_steps(false), "key [0, 2) x [0, 2) of head 0 has passed by with an earlier step"));
}

TEST_CASE("dropping what is not there is caught") {
  CHECK(says(caught([](PebbleMachine& machine) { machine.drop(kKey); }), "is dropped and not in fast memory"));
  CHECK(says(caught([](PebbleMachine& machine) {
               machine.load(kKey);
               machine.drop(kKey);
               machine.drop(kKey);
             }),
             "is dropped and not in fast memory"));
  CHECK(says(caught([](PebbleMachine& machine) {
               machine.load(kKey);
               machine.drop(tokens(Operand::key, {0, 1}, kFeatures));
             }),
             "is dropped and not in fast memory"));
}

TEST_CASE("storing what is not there is caught") {
  CHECK(says(caught([](PebbleMachine& machine) { machine.store(kOutput); }), "is stored and not in fast memory"));
  CHECK(says(caught([](PebbleMachine& machine) {
               machine.create(kOutput);
               machine.store(tokens(Operand::output, {0, 4}, kFeatures));
             }),
             "is stored and not in fast memory"));
}

TEST_CASE("storing a streamed block, which never is in fast memory as a whole, is caught") {
  for (const Stream direction : {Stream::in, Stream::out}) {
    CHECK(says(caught(dense_plan(), Pass::backward,
                      [&](PebbleMachine& machine) {
                        machine.stream(kOutput, 1, direction);
                        machine.store(kOutput);
                      }),
               "is stored and not in fast memory"));
  }
}

TEST_CASE("loading twice is caught") {
  CHECK(says(caught([](PebbleMachine& machine) {
               machine.load(kKey);
               machine.load(kKey);
             }),
             "is in fast memory already"));
  CHECK(says(caught([](PebbleMachine& machine) {
               machine.load(kKey);
               machine.stream(kKey, 1, Stream::in);
             }),
             "is in fast memory already"));
  CHECK(says(caught([](PebbleMachine& machine) {
               machine.create(kOutput);
               machine.create(kOutput);
             }),
             "is in fast memory already"));
}

TEST_CASE("pebbles that stay behind at the end of a task are caught") {
  CHECK(says(caught([](PebbleMachine& machine) {
               machine.load(kKey);
               machine.end_task();
             }),
             "key [0, 2) x [0, 2) of head 0 is left in fast memory at the end of a task"));
  CHECK(caught([](PebbleMachine& machine) {
          machine.load(kKey);
          machine.drop(kKey);
          machine.end_task();
        }) == "no error");
}

TEST_CASE("loading fewer tokens than have a pair in the tile is caught") {
  // The upper left tile: 2 rows and 2 keys have pairs. Of the lower right one it is 1 and 1.
  const auto with_tokens = [](Range range, std::int64_t count, std::int64_t queries, std::int64_t keys) {
    return caught(sparse_plan(), Pass::forward, [&](PebbleMachine& machine) {
      Block query = tokens(Operand::query, range, kFeatures);
      Block key = tokens(Operand::key, range, kFeatures);
      query.tokens = queries;
      key.tokens = keys;
      machine.load(query);
      machine.load(key);
      machine.create(pairs(Operand::score, range, range, count));
      machine.compute({Operation::scores, {}, range, range, kFeatures, count, TileKind::partial});
    });
  };
  CHECK(with_tokens(kUpper, 3, 2, 2) == "no error");
  CHECK(says(with_tokens(kUpper, 3, 2, 1), "key [0, 2) x [0, 2) of head 0 lacks tokens that have a pair in the tile"));
  CHECK(says(with_tokens(kUpper, 3, 1, 2), "query [0, 2) x [0, 2) of head 0 lacks tokens"));
  CHECK(with_tokens(kLower, 1, 1, 1) == "no error");
  CHECK(says(with_tokens(kLower, 1, 1, 0), "key [2, 4) x [0, 2) of head 0 lacks tokens"));
  CHECK(says(with_tokens(kLower, 1, 0, 1), "query [2, 4) x [0, 2) of head 0 lacks tokens"));
}

TEST_CASE("only the tokens that are loaded are counted") {
  const Plan plan = sparse_plan();
  PebbleMachine machine(plan.data(), Pass::forward);
  Block key = tokens(Operand::key, kLower, kFeatures);
  key.tokens = 1;
  machine.load(key);
  CHECK(machine.count().loads == 2);
  CHECK(machine.count().peak_resident == 2);
}

TEST_CASE("another number of pairs than the pattern has is caught") {
  for (const Operand operand : {Operand::score, Operand::grad_score}) {
    for (const std::int64_t count : {2, 4}) {
      CHECK(says(caught(sparse_plan(), Pass::forward,
                        [&](PebbleMachine& machine) { machine.create(pairs(operand, kUpper, kUpper, count)); }),
                 "does not hold as many pairs as the pattern"));
    }
    CHECK(caught(sparse_plan(), Pass::forward,
                 [&](PebbleMachine& machine) { machine.create(pairs(operand, kUpper, kUpper, 3)); }) == "no error");
  }
}

TEST_CASE("reading stored pairs before all of them are there is caught") {
  const auto read_after = [](std::vector<Range> stored) {
    return caught([&](PebbleMachine& machine) {
      for (const Range rows : stored) {
        const Block block = pairs(Operand::score, rows, {0, 4}, 8);
        machine.create(block);
        machine.store(block);
        machine.drop(block);
      }
      machine.load(kScore);
    });
  };
  CHECK(read_after({kUpper, kLower}) == "no error");
  CHECK(says(read_after({kUpper}), "is loaded before all pairs have been stored"));
}

TEST_CASE("a block of one head does not serve another, but keys serve their group") {
  const Plan plan = make_plan(full(4), {.head_dim = 2, .query_heads = 4, .key_value_heads = 2},
                              {.schedule = Schedule::recompute, .fast_memory_bytes = 64 * kWordBytes});
  const auto compute = [&](const Head& query_head, const Head& key_head, const Head& step_head) {
    return caught(plan, Pass::forward, [&](PebbleMachine& machine) {
      Block query = kQuery;
      Block key = kKey;
      Block score = kScore;
      query.head = query_head;
      key.head = key_head;
      score.head = step_head;
      machine.load(query);
      machine.load(key);
      machine.create(score);
      Step scores = step(Operation::scores);
      scores.head = step_head;
      machine.compute(scores);
    });
  };
  CHECK(compute({0, 1, 0}, {0, 1, 0}, {0, 1, 0}) == "no error");
  CHECK(compute({0, 1, 0}, {0, 0, 0}, {0, 1, 0}) == "no error");
  CHECK(says(compute({0, 0, 0}, {0, 0, 0}, {0, 1, 0}), "needs query"));
  CHECK(says(compute({0, 1, 0}, {0, 2, 1}, {0, 1, 0}), "needs key"));
  CHECK(says(compute({1, 1, 0}, {0, 1, 0}, {0, 1, 0}), "needs query"));
}

TEST_CASE("a result that has not been stored completely is caught") {
  const Plan plan = dense_plan();
  const auto lse = [](Range rows) { return tokens(Operand::lse, rows, kOne); };
  const auto output = [](Range rows, Range features) { return tokens(Operand::output, rows, features); };
  const auto end_after = [&](const std::vector<Block>& stored) {
    return caught(plan, Pass::forward, [&](PebbleMachine& machine) {
      for (const Block& block : stored) {
        machine.create(block);
        machine.store(block);
        machine.drop(block);
      }
      machine.end_pass();
    });
  };
  const Range all{0, 4};
  CHECK(end_after({output(all, kFeatures), lse(all)}) == "no error");
  CHECK(end_after({output(kLower, kFeatures), output(kUpper, {1, 2}), lse(all), output(kUpper, {0, 1})}) == "no error");
  CHECK(says(end_after({}), "output of head 0 has not been stored completely"));
  CHECK(says(end_after({output(all, kFeatures)}), "lse of head 0 has not been stored completely"));
  CHECK(says(end_after({output(kUpper, kFeatures), lse(all)}), "output of head 0 has not been stored"));
  CHECK(says(end_after({output(all, {0, 1}), lse(all)}), "output of head 0 has not been stored"));
  CHECK(says(end_after({output(all, kFeatures), lse({0, 3})}), "lse of head 0 has not been stored"));
}

TEST_CASE("each gradient of each head must be stored") {
  const Plan plan = make_plan(full(4), {.head_dim = 2, .query_heads = 2, .key_value_heads = 1},
                              {.schedule = Schedule::recompute, .fast_memory_bytes = 64 * kWordBytes});
  const auto end_without = [&](Operand missing, std::int64_t head) {
    return caught(plan, Pass::backward, [&](PebbleMachine& machine) {
      for (const Operand operand : {Operand::grad_query, Operand::grad_key, Operand::grad_value}) {
        const std::int64_t heads = operand == Operand::grad_query ? 2 : 1;
        for (std::int64_t h = 0; h < heads; ++h) {
          if (operand == missing && h == head) continue;
          Block block = tokens(operand, {0, 4}, kFeatures);
          block.head = {0, h, 0};
          machine.create(block);
          machine.store(block);
          machine.drop(block);
        }
      }
      machine.end_pass();
    });
  };
  CHECK(end_without(Operand::output, 0) == "no error");
  CHECK(says(end_without(Operand::grad_query, 1), "grad_query of head 1 has not been stored completely"));
  CHECK(says(end_without(Operand::grad_key, 0), "grad_key of head 0 has not been stored completely"));
  CHECK(says(end_without(Operand::grad_value, 0), "grad_value of head 0 has not been stored completely"));
}

TEST_CASE("recompute on 4 tokens of 2 features in tiles of 2 x 2 is counted by hand") {
  const Plan plan = dense_plan();
  const PebbleCount forward = count_forward(plan);
  // Each of 2 row panels: Q 4 in; 2 tiles with K 4 and V 4; O 4 and LSE 2 out.
  CHECK(forward.loads == 2 * (4 + 2 * (4 + 4)));
  CHECK(forward.stores == 2 * (4 + 2));
  // Q 4, O 4, maximum 2, sum 2, S 4, K or V 4.
  CHECK(forward.peak_resident == 20);
  CHECK(forward.index_words == 0);
  CHECK(forward.counted() == 52);

  const PebbleCount backward = count_backward(plan);
  // Each of 2 row panels: Q 4, dO 4, LSE 2, O 4 in, delta 2 and dQ 4 out, and 2 tiles with V 4 and K 4 in, dV 4 and dK
  // 4 out, and but for the first row panel, with which they begin, in.
  CHECK(backward.loads == 2 * (14 + 2 * 8) + 2 * 8);
  CHECK(backward.stores == 2 * (6 + 2 * 8));
  // Q 4, dO 4, LSE 2, delta 2, dQ 4, P 4, dS 4, K 4.
  CHECK(backward.peak_resident == 28);
  CHECK(backward.counted() == 120);
}

TEST_CASE("materialize on 4 tokens of 2 features in one tile is counted by hand") {
  const Plan plan = make_plan(
      full(4), {.head_dim = 2},
      {.schedule = Schedule::materialize, .tile_sizes = TileSizes::model, .fast_memory_bytes = 64 * kWordBytes});
  const PebbleCount forward = count_forward(plan);
  // S: Q 8 and K 8 in, maximum and sum 8 out, S 16 out; LSE: maximum and sum 8 in, 4 out.
  // O: LSE 4, P 16, V 8 in, O 8 out.
  CHECK(forward.loads == 16 + 8 + 4 + 16 + 8);
  CHECK(forward.stores == 8 + 16 + 4 + 8);
  CHECK(forward.peak_resident <= 64);

  const PebbleCount backward = count_backward(plan);
  // delta: O and dO 16 in, 4 out. P: Q, K 16 and LSE 4 in, 16 out. dS: dO, V 16, P 16, LSE 4, delta 4 in, 16 out.
  // dQ, dV, dK: 16 pairs and 8 words of the other side in, 8 out each.
  CHECK(backward.loads == 16 + 20 + 40 + 3 * 24);
  CHECK(backward.stores == 4 + 16 + 16 + 3 * 8);
  CHECK(backward.peak_resident <= 64);
}

TEST_CASE("index words are those of stored patterns, and no part of the count") {
  const auto count = [](const Pattern& pattern) { return count_backward(small_plan(pattern, 64)); };
  const PebbleCount analytic = count(causal(6));
  const PebbleCount stored = count(from_csr(causal(6).to_csr()));
  CHECK(analytic.index_words == 0);
  CHECK(stored.index_words >= 2 * 21);  // the pairs of P and of dS
  CHECK(stored.counted() == analytic.counted());
}

TEST_CASE("backward in several slices keeps to the rules as well") {
  const Plan plan = make_plan(full(1100), {.head_dim = 2, .value_dim = 1, .query_heads = 2, .key_value_heads = 1},
                              {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::one, .threads = 4});
  REQUIRE(plan.data().most_slices() > 1);
  const PebbleCount count = count_backward(plan);
  CHECK(count.peak_resident <= plan.fast_memory_words());
  // A further slice's sums are read back once, beside the sum that they are added to and that is written once more; its
  // first tiles have nothing to read.
  const Plan whole = make_plan(full(1100), {.head_dim = 2, .value_dim = 1, .query_heads = 2, .key_value_heads = 1},
                               {.schedule = Schedule::recompute,
                                .backward_passes = BackwardPasses::one,
                                .tile_sizes = TileSizes::model,
                                .row_panel = plan.row_panel(),
                                .column_panel = plan.column_panel()});
  const std::int64_t extra = plan.data().most_slices() - 1;
  CHECK(count.loads == count_backward(whole).loads + extra * 1100 * 3);
  CHECK(count.stores == count_backward(whole).stores + extra * 1100 * 3);
}
