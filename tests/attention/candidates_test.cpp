#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/plan.hpp"
#include "support/attention_inputs.hpp"
#include "support/isas.hpp"
#include "support/plain_attention.hpp"
#include "support/threads.hpp"

// What every candidate of the planner computes, on every instruction set.

using namespace cobble;
using namespace cobble::test;

namespace {

std::vector<Pattern> patterns() {
  return {causal(70),
          window(90, 21, 3),
          random_pairs(70, 130, 5, 1),
          power_law_graph(90, 7, 2),
          random_pairs(60, 90, 30, 3) | leading_tokens(60, 90, 2),
          from_csr(longformer(80, 5, 2).to_csr())};
}

/// Calls check(plan) with each candidate of each fast memory forced in turn; panels of keys for L1 and
/// for the last cache are small.
template <class Check>
void for_each_candidate(const Pattern& pattern, const Problem& problem, std::int64_t element_bytes,
                        std::initializer_list<std::int64_t> memories, Check check) {
  CAPTURE(pattern.describe());
  for (const std::int64_t words : memories) {
    CAPTURE(words);
    PlanOptions options = {.fast_memory_bytes = words * element_bytes,
                           .element_bytes = element_bytes,
                           .cost_model = {.near_bytes = 1500, .far_bytes = 7200}};
    const auto count = std::ssize(make_plan(pattern, problem, options).candidates());
    for (std::int64_t index = 0; index < count; ++index) {
      options.candidate = index;
      const Plan plan = make_plan(pattern, problem, options);
      CAPTURE(plan.candidates()[static_cast<std::size_t>(index)].name);
      check(plan);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("every candidate gives the reference's results on every instruction set", T, float, double) {
  const Problem problem{.head_dim = 19, .value_dim = 11, .query_heads = 2, .key_value_heads = 1};
  std::uint64_t seed = 1;
  for (const Pattern& pattern : patterns()) {
    const Plan any = make_plan(pattern, problem);
    const Inputs<T> inputs = normal_inputs<T>(any, ++seed);
    const ReferenceResult reference = reference_of(any, inputs);
    for_each_candidate(pattern, problem, sizeof(T), {300, 1 << 17},
                       [&](const Plan& plan) { on_every_isa([&] { check_close(run(plan, inputs), reference); }); });
  }
}

TEST_CASE("every candidate has the same bits for any number of threads, on every instruction set") {
  const Problem problem{.head_dim = 8, .query_heads = 2};
  for (const Pattern& pattern : {power_law_graph(90, 7, 2), window(90, 21, 3)}) {
    const Inputs<float> inputs = normal_inputs<float>(make_plan(pattern, problem), 3);
    for_each_candidate(pattern, problem, sizeof(float), {300, 1 << 17}, [&](const Plan& plan) {
      on_every_isa([&] {
        const Results<float> one = on_threads(1, [&] { return run(plan, inputs); });
        for (const int threads : {2, 3}) {
          CHECK(same_bits(on_threads(threads, [&] { return run(plan, inputs); }), one));
        }
      });
    });
  }
}

TEST_CASE("errors in float are at most 4 times those of plain arithmetic in natural order") {
  const Problem problem{.head_dim = 64};
  std::uint64_t seed = 40;
  for (const Pattern& pattern :
       {causal(90), window(130, 40, 0), random_pairs(70, 150, 20, 5), power_law_graph(110, 16, 6)}) {
    const Plan any = make_plan(pattern, problem);
    Inputs<float> inputs = normal_inputs<float>(any, ++seed);
    for_each_index(lse_shape(any), [&](auto b, auto h, auto t, auto f) { inputs.grad_lse(b, h, t, f) = 0; });
    const ReferenceResult reference = reference_of(any, inputs);
    const PlainAttention<float> plain =
        plain_attention<float>(pattern, inputs.query, inputs.key, inputs.value, inputs.grad_output);
    for_each_candidate(pattern, problem, sizeof(float), {2000, 12000, 1 << 17}, [&](const Plan& plan) {
      on_every_isa([&] {
        const Results<float> results = run(plan, inputs);
        const auto check = [](const Tensor<float>& fast, const Tensor<float>& natural, const Tensor<double>& exact) {
          CHECK(max_relative_error(fast, exact) <= 4 * max_relative_error(natural, exact));
        };
        check(results.attention.output, plain.output, reference.output);
        check(results.gradients.query, plain.grad_query, reference.grad_query);
        check(results.gradients.key, plain.grad_key, reference.grad_key);
        check(results.gradients.value, plain.grad_value, reference.grad_value);
      });
    });
  }
}
