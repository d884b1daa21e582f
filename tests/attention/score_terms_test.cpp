#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/error.hpp"
#include "cobble/plan.hpp"
#include "plan/plan_data.hpp"
#include "support/attention_inputs.hpp"
#include "support/schedules.hpp"
#include "support/threads.hpp"

// The terms of scores, forward and backward, against the reference in every schedule.

using namespace cobble;
using namespace cobble::test;

namespace {

/// Which terms are on, and how a bias is shared.
struct Case {
  double softcap = 0;
  std::optional<Pattern> bias = {};  ///< its structure
  bool per_batch = true;
  bool per_head = true;
  bool alibi = false;
  bool sinks = false;
  double removed = 0;  ///< share of the biases that are -infinity
};

/// The memory of terms.
template <class T>
struct Terms {
  LaidOut<T> bias;
  LaidOut<T> sinks;
  std::vector<double> slopes;
  ScoreTerms<T> terms;

  Terms(const Case& c, const Problem& problem, Random& random) {
    terms.softcap = c.softcap;
    if (c.bias) {
      bias = normal_tensor<T>(
          {c.per_batch ? problem.batch : 1, c.per_head ? problem.query_heads : 1, 1, bias_values(*c.bias)}, random);
      for_each_index(bias.view().shape(), [&](auto b, auto h, auto t, auto f) {
        if (random.uniform() < c.removed) bias(b, h, t, f) = -std::numeric_limits<T>::infinity();
      });
      terms.bias = {*c.bias, bias};
    }
    if (c.alibi) terms.alibi_slopes = slopes = alibi_slopes(problem.query_heads);
    if (c.sinks) {
      sinks = normal_tensor<T>({1, problem.query_heads, 1, 1}, random);
      terms.sinks = sinks.memory();
    }
  }
};

template <class T>
void check_terms(Results<T>& results, const ReferenceResult& reference) {
  check_close(results.attention.view(), results.gradients.view(), reference);
  if (reference.grad_bias.data() != nullptr) {
    CHECK(max_relative_error(results.gradients.bias, reference.grad_bias) < kTolerance<T>);
  }
  if (reference.grad_sinks.data() != nullptr) {
    CHECK(max_relative_error(results.gradients.sinks, reference.grad_sinks) < kTolerance<T>);
  }
}

/// Each term alone, and all of them; biases on rows and on blocks, shared and not.
std::vector<Case> cases(std::int64_t n_q, std::int64_t n_k) {
  BsrPattern blocks =
      random_pairs((n_q + 4) / 5, (n_k + 6) / 7, std::max<std::int64_t>(1, (n_k + 6) / 14), 3).to_bsr(1, 1);
  blocks.bits.clear();
  blocks.rows = n_q;
  blocks.columns = n_k;
  blocks.block_rows = 5;
  blocks.block_columns = 7;
  const Pattern some = random_pairs(n_q, n_k, n_k / 2, 4);
  const Pattern few = random_pairs(n_q, n_k, 2, 5);
  return {{.softcap = 1.5},
          {.alibi = true},
          {.sinks = true},
          {.bias = some},
          {.bias = from_bsr(blocks), .per_batch = false},
          {.bias = from_csr(full(n_q, n_k).to_csr()), .per_head = false, .removed = 0.2},
          {.softcap = 2, .bias = few, .alibi = true, .sinks = true},
          {.softcap = 2,
           .bias = some,
           .per_batch = false,
           .per_head = false,
           .alibi = true,
           .sinks = true,
           .removed = 0.5}};
}

template <class T>
void check_every_schedule(const Pattern& pattern, const Problem& problem, std::uint64_t seed) {
  CAPTURE(pattern.describe());
  std::vector<std::pair<std::string, Plan>> plans;
  for (const std::int64_t memory : {std::int64_t{256}, std::int64_t{1} << 18}) {
    for (const PlanOptions& options : all_schedules(memory, sizeof(T))) {
      const std::optional<Plan> plan = feasible_plan(pattern, problem, options);
      if (plan) plans.emplace_back(describe(options), *plan);
    }
  }
  const Inputs<T> inputs = normal_inputs<T>(plans.front().second, seed);
  int number = 0;
  for (const Case& c : cases(pattern.rows(), pattern.columns())) {
    CAPTURE(number++);
    Random random(seed + 1);
    const Terms<T> terms(c, problem, random);
    const ReferenceResult reference = reference_of(plans.front().second, inputs, terms.terms);
    for (const auto& named : plans) {
      CAPTURE(named.first);
      Results<T> results = run(named.second, inputs, terms.terms);
      check_terms(results, reference);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("terms equal the reference in every schedule: patterns x terms", T, float, double) {
  check_every_schedule<T>(causal(37), {.head_dim = 6, .value_dim = 5}, 1);
  check_every_schedule<T>(full(20, 33), {.head_dim = 4, .query_heads = 2, .key_value_heads = 1, .batch = 2}, 2);
  check_every_schedule<T>(random_pairs(40, 90, 5, 1), {.head_dim = 7}, 3);
  check_every_schedule<T>(causal(30, 20), {.head_dim = 5, .query_heads = 2, .batch = 2}, 4);  // ten empty rows
}

TEST_CASE_TEMPLATE("terms equal the reference on tiles as the library cuts them", T, float, double) {
  const Problem problem{.head_dim = 16, .query_heads = 2, .key_value_heads = 1};
  std::uint64_t seed = 10;
  for (const Pattern& pattern : {causal(100), window(150, 70, 9), random_pairs(90, 400, 3, 1), full(33, 70)}) {
    CAPTURE(pattern.describe());
    const Plan plan = make_plan(pattern, problem, {.element_bytes = sizeof(T)});
    const Inputs<T> inputs = normal_inputs<T>(plan, ++seed);
    for (const Case& c : cases(pattern.rows(), pattern.columns())) {
      Random random(seed);
      const Terms<T> terms(c, problem, random);
      Results<T> results = run(plan, inputs, terms.terms);
      check_terms(results, reference_of(plan, inputs, terms.terms));
    }
  }
}

TEST_CASE_TEMPLATE("terms equal the reference in every candidate of sparse patterns, however tensors lie", T, float,
                   double) {
  const Problem problem{.head_dim = 20, .value_dim = 9, .query_heads = 2, .key_value_heads = 1};
  int gathering = 0;
  for (const Pattern& pattern : {random_pairs(200, 330, 6, 1), power_law_graph(240, 14, 2)}) {
    CAPTURE(pattern.describe());
    const PlanOptions automatic{.element_bytes = sizeof(T)};
    for (std::int64_t index = 0; index < std::ssize(make_plan(pattern, problem, automatic).candidates()); ++index) {
      const Plan plan = make_plan(pattern, problem, {.element_bytes = sizeof(T), .candidate = index});
      CAPTURE(plan.candidates()[static_cast<std::size_t>(index)].name);
      gathering += plan.data().gathers ? 1 : 0;
      for (const Layout layout : {Layout::contiguous, Layout::feature_stride}) {
        CAPTURE(to_string(layout));
        Random random(20);
        const Inputs<T> inputs = normal_inputs<T>(plan, random, {layout, layout, layout, layout, layout});
        for (const Case& c : cases(pattern.rows(), pattern.columns())) {
          const Terms<T> terms(c, problem, random);
          Results<T> results = run(plan, inputs, terms.terms);
          check_terms(results, reference_of(plan, inputs, terms.terms));
        }
      }
    }
  }
  CHECK(gathering > 0);
}

TEST_CASE_TEMPLATE("what a bias removes touches nothing, whatever it holds", T, float, double) {
  // Key 3 holds NaN and infinity; the bias removes it from every row, and all pairs of row 5.
  const std::int64_t n = 40;
  CsrMatrix<T> bias;
  bias.rows = bias.columns = n;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      if (i != 5 && j != 3) continue;
      bias.column_indices.push_back(static_cast<std::int32_t>(j));
      bias.values.push_back(-std::numeric_limits<T>::infinity());
    }
    bias.row_offsets.push_back(static_cast<std::int64_t>(bias.column_indices.size()));
  }
  ScoreTerms<T> terms;
  terms.bias = {from_csr(bias), {bias.values.data(), {1, 1, 1, std::ssize(bias.values)}}};
  for (const Pattern& pattern : {full(n), causal(n), random_pairs(n, n, 3, 1) | leading_tokens(n, 4)}) {
    CAPTURE(pattern.describe());
    for (const std::int64_t memory : {std::int64_t{256}, std::int64_t{1} << 18}) {
      for (const PlanOptions& options : all_schedules(memory, sizeof(T))) {
        const std::optional<Plan> plan = feasible_plan(pattern, {.head_dim = 5}, options);
        if (!plan) continue;
        CAPTURE(describe(options));
        const Inputs<T> inputs = normal_inputs<T>(*plan, 7);
        for (std::int64_t f = 0; f < 5; ++f) {
          inputs.key(0, 0, 3, f) = std::numeric_limits<T>::quiet_NaN();
          inputs.value(0, 0, 3, f) = std::numeric_limits<T>::infinity();
          inputs.grad_output(0, 0, 5, f) = std::numeric_limits<T>::quiet_NaN();
        }
        Results<T> results = run(*plan, inputs, terms);
        check_terms(results, reference_of(*plan, inputs, terms));
        CHECK(results.attention.lse(0, 0, 5, 0) == -std::numeric_limits<T>::infinity());
        CHECK(std::isfinite(results.gradients.key(0, 0, 0, 0)));
        CHECK(all_equal(results.gradients.bias.view(), T{0}));
      }
    }
  }
}

TEST_CASE("terms have the same bits for any number of threads") {
  const Problem problem{.head_dim = 8, .query_heads = 4, .key_value_heads = 2};
  for (const PlanOptions& options : all_schedules(1 << 14)) {
    CAPTURE(describe(options));
    const Plan plan = make_plan(causal(60), problem, options);
    const Inputs<float> inputs = normal_inputs<float>(plan, 1);
    for (const Case& c : cases(60, 60)) {
      Random random(2);
      const Terms<float> terms(c, problem, random);
      const auto run_on = [&](int threads) {
        return on_threads(threads, [&] { return run(plan, inputs, terms.terms); });
      };
      const Results<float> one = run_on(1);
      for (const int threads : {2, 3}) {
        const Results<float> many = run_on(threads);
        CHECK(same_bits(one, many));
        CHECK(same_bits(one.gradients.bias, many.gradients.bias));
        CHECK(same_bits(one.gradients.sinks, many.gradients.sinks));
      }
    }
  }
}

TEST_CASE("gradients of terms are overwritten, and only where they are asked for") {
  const Plan plan = make_plan(causal(20), Problem{.head_dim = 4});
  const Inputs<float> inputs = normal_inputs<float>(plan, 1);
  Random random(2);
  const Terms<float> terms({.bias = random_pairs(20, 20, 5, 1), .sinks = true}, plan.problem(), random);
  const TensorView<const float> query = inputs.query, key = inputs.key, value = inputs.value;
  const TensorView<const float> grad_output = inputs.grad_output;
  const Attention<float> result = forward(plan, query, key, value, terms.terms);
  const BackwardOptions<float> options{.terms = terms.terms};
  Gradients<float> without = backward(plan, query, key, value, result, grad_output, options);
  CHECK(without.bias.data() == nullptr);
  CHECK(without.sinks.values().size() == 1);

  Workspace workspace;
  std::vector<float> bias(100, std::nanf("")), sinks(1, std::nanf(""));
  GradientsView<float> view = without.view();
  view.bias = {bias.data(), {1, 1, 1, 100}};
  view.sinks = sinks;
  backward(plan, query, key, value, result, grad_output, view, workspace, options);
  Gradients<float> with = backward(plan, query, key, value, result, grad_output,
                                   BackwardOptions<float>{.terms = terms.terms, .bias_gradient = true});
  CHECK(same_bits(with.bias.view(), view.bias));
  CHECK(sinks[0] == with.sinks.values()[0]);
}
