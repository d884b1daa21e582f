#include <doctest/doctest.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/plan.hpp"
#include "core/parallel_for.hpp"
#include "plan/plan_data.hpp"
#include "support/attention_inputs.hpp"
#include "support/threads.hpp"

// The same bits for any number of threads, from run to run, with a used workspace as with a fresh one.

using namespace cobble;
using namespace cobble::test;

namespace {

struct Sample {
  std::string name;
  Plan plan;
};

/// Fewer heads than threads, as many, more; patterns that are dense, sparse and scattered; tiles of several sizes.
std::vector<Sample> samples() {
  const Pattern scattered = random_pairs(200, 200, 7, 5);
  return {
      {"one head, dense", make_plan(full(150), {.head_dim = 16})},
      {"one head, window", make_plan(window(300, 40, 3), {.head_dim = 9, .value_dim = 5})},
      {"one head, scattered", make_plan(scattered, {.head_dim = 16})},
      {"one head, small tiles", make_plan(causal(150), {.head_dim = 16}, {.row_panel = 16, .column_panel = 32})},
      {"one head, two passes", make_plan(window(150, 30, 30), {.head_dim = 16},
                                         {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::two})},
      {"one head, materialized", make_plan(scattered, {.head_dim = 16}, {.schedule = Schedule::materialize})},
      {"three heads, materialized, small memory",
       make_plan(causal(100), {.head_dim = 16, .query_heads = 3},
                 {.schedule = Schedule::materialize, .fast_memory_bytes = 4000})},
      {"one key head, three query heads",
       make_plan(causal(100), {.head_dim = 8, .query_heads = 3, .key_value_heads = 1})},
      {"eight heads", make_plan(causal(100), {.head_dim = 8, .query_heads = 8})},
      {"eight query heads, four key heads, two batch entries",
       make_plan(scattered | leading_tokens(200, 2),
                 {.head_dim = 8, .query_heads = 8, .key_value_heads = 4, .batch = 2})},
  };
}

}  // namespace

TEST_CASE_TEMPLATE("results have the same bits for 1, 2, 3 and 7 threads, run after run", T, float, double) {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    const Inputs<T> inputs = normal_inputs<T>(sample.plan, 7);
    const Results<T> expected = on_threads(1, [&] { return run(sample.plan, inputs); });
    check_close(on_threads(1, [&] { return run(sample.plan, inputs); }), reference_of(sample.plan, inputs));
    for (const int threads : {1, 2, 3, 7}) {
      CAPTURE(threads);
      for (int repetition = 0; repetition < 3; ++repetition) {
        CHECK(same_bits(on_threads(threads, [&] { return run(sample.plan, inputs); }), expected));
      }
    }
  }
}

TEST_CASE("results have the same bits inside a parallel loop of the caller") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    const Inputs<float> inputs = normal_inputs<float>(sample.plan, 8);
    const Results<float> expected = run(sample.plan, inputs);
    std::vector<Results<float>> results(5);
    on_threads(4, [&] {
      cobble::detail::parallel_for(std::ssize(results), [&](std::int64_t i) {
        results[static_cast<std::size_t>(i)] = run(sample.plan, inputs);
      });
    });
    for (const Results<float>& result : results) CHECK(same_bits(result, expected));
  }
}

TEST_CASE("one workspace serves concurrent calls") {
  const std::vector<Sample> all = samples();
  std::vector<Inputs<float>> inputs;
  std::vector<Results<float>> expected;
  std::vector<Results<float>> results;
  for (const Sample& sample : all) {
    inputs.push_back(normal_inputs<float>(sample.plan, 9));
    expected.push_back(run(sample.plan, inputs.back()));
    results.push_back(run(sample.plan, inputs.back()));
    for (float& x : results.back().attention.output.values()) x = 0;
    for (float& x : results.back().gradients.key.values()) x = 0;
  }
  Workspace workspace;
  on_threads(4, [&] {
    cobble::detail::parallel_for(std::ssize(all), [&](std::int64_t task) {
      const auto i = static_cast<std::size_t>(task);
      const Inputs<float>& in = inputs[i];
      forward(all[i].plan, TensorView<const float>(in.query), TensorView<const float>(in.key),
              TensorView<const float>(in.value), results[i].attention.view(), workspace);
      backward(all[i].plan, TensorView<const float>(in.query), TensorView<const float>(in.key),
               TensorView<const float>(in.value), results[i].attention, TensorView<const float>(in.grad_output),
               results[i].gradients.view(), workspace, BackwardOptions<float>{in.grad_lse});
    });
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].name);
    CHECK(same_bits(results[i], expected[i]));
  }
}

TEST_CASE_TEMPLATE("a workspace that served other problems gives the bits of a fresh one", T, float, double) {
  Workspace used;
  for (int round = 0; round < 2; ++round) {
    for (const Sample& sample : samples()) {
      CAPTURE(sample.name);
      const Inputs<T> inputs = normal_inputs<T>(sample.plan, 10);
      const Results<T> expected = run(sample.plan, inputs);
      Results<T> results = run(sample.plan, inputs);
      const auto compute = [&](const Inputs<T>& in) {
        forward(sample.plan, TensorView<const T>(in.query), TensorView<const T>(in.key), TensorView<const T>(in.value),
                results.attention.view(), used);
        backward(sample.plan, TensorView<const T>(in.query), TensorView<const T>(in.key), TensorView<const T>(in.value),
                 results.attention, TensorView<const T>(in.grad_output), results.gradients.view(), used,
                 BackwardOptions<T>{in.grad_lse});
      };
      // Leave NaN behind in all of the scratch memory: whoever reads more than was written meets it.
      const Inputs<T> poison = normal_inputs<T>(sample.plan, 11);
      for (const TensorView<T>& tensor : {poison.query.view(), poison.value.view(), poison.grad_output.view()}) {
        for_each_index(tensor.shape(), [&](auto b, auto h, auto t, auto f) {
          tensor(b, h, t, f) = std::numeric_limits<T>::quiet_NaN();
        });
      }
      compute(poison);
      compute(inputs);
      CHECK(same_bits(results, expected));
    }
  }
}

TEST_CASE("a workspace stays as it is once it has served the largest call, within the plan's bound") {
  const Plan plan = make_plan(causal(300), {.head_dim = 32, .query_heads = 2});
  const Inputs<float> inputs = normal_inputs<float>(plan, 12);
  Results<float> results = run(plan, inputs);
  Workspace workspace;
  std::int64_t after_first = 0;
  for (int call = 0; call < 3; ++call) {
    on_threads(1, [&] {
      forward(plan, TensorView<const float>(inputs.query), TensorView<const float>(inputs.key),
              TensorView<const float>(inputs.value), results.attention.view(), workspace);
      backward(plan, TensorView<const float>(inputs.query), TensorView<const float>(inputs.key),
               TensorView<const float>(inputs.value), results.attention, TensorView<const float>(inputs.grad_output),
               results.gradients.view(), workspace, BackwardOptions<float>{inputs.grad_lse});
    });
    if (call == 0) after_first = workspace.bytes();
  }
  CHECK(after_first > 0);
  CHECK(workspace.bytes() == after_first);
  CHECK(workspace.bytes() <= plan.workspace_bytes(1, sizeof(float)));
}

TEST_CASE("backward in several slices has the same bits for any number of threads") {
  const Plan plan = make_plan(causal(1500), {.head_dim = 2, .value_dim = 3}, {.threads = 4});
  REQUIRE(plan.data().most_slices() > 2);
  const Inputs<float> inputs = normal_inputs<float>(plan, 13);
  const Results<float> expected = on_threads(1, [&] { return run(plan, inputs); });
  check_close(run(plan, inputs), reference_of(plan, inputs));
  for (const int threads : {2, 5}) CHECK(same_bits(on_threads(threads, [&] { return run(plan, inputs); }), expected));
}
