#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/plan.hpp"
#include "support/attention_inputs.hpp"
#include "support/pairwise.hpp"
#include "support/plain_attention.hpp"
#include "support/sample_patterns.hpp"

// forward and backward against the reference: every kind of pattern at every size, with the other factors chosen so
// that any two of their levels meet.

using namespace cobble;
using namespace cobble::test;

namespace {

constexpr std::array<std::int64_t, 9> kSizes{1, 15, 16, 17, 63, 64, 65, 100, 257};
constexpr std::array<std::int64_t, 5> kFeatures{1, 8, 40, 64, 65};
constexpr std::array kQueryLayouts{Layout::contiguous, Layout::tokens_first, Layout::feature_stride, Layout::reversed,
                                   Layout::broadcast_heads};

struct Heads {
  std::int64_t batch, query, key_value;
};
constexpr std::array kHeads{Heads{1, 1, 1}, Heads{1, 4, 2}, Heads{1, 3, 1}, Heads{2, 2, 2}};

/// Schedules and tiles: chosen by the library, or asked for.
const std::vector<PlanOptions>& plan_options() {
  static const std::vector<PlanOptions> options{
      {},
      {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::one, .row_panel = 16, .column_panel = 16},
      {.schedule = Schedule::recompute, .row_panel = 32, .column_panel = 48},
      {.schedule = Schedule::recompute, .row_panel = 7, .column_panel = 5},
      {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::one, .row_panel = 1, .column_panel = 300},
      {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::two},
      {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::two, .fast_memory_bytes = 10000},
      {.schedule = Schedule::materialize},
      {.schedule = Schedule::materialize, .tile_sizes = TileSizes::model, .fast_memory_bytes = 1000},
      {.tile_sizes = TileSizes::model, .fast_memory_bytes = 5000}};
  return options;
}

struct Case {
  std::string pattern_name;
  Pattern pattern;
  Heads heads;
  std::int64_t head_dim, value_dim;
  PlanOptions options;
  InputLayouts layouts;
  Layout output_layout;
};

template <class T>
void check_case(const Case& c, std::uint64_t seed, Workspace& workspace) {
  const Plan plan = make_plan(c.pattern,
                              {.head_dim = c.head_dim,
                               .value_dim = c.value_dim,
                               .query_heads = c.heads.query,
                               .key_value_heads = c.heads.key_value,
                               .batch = c.heads.batch},
                              c.options);
  Random random(seed);
  const Inputs<T> inputs = normal_inputs<T>(plan, random, c.layouts);
  const LaidOut<T> output(output_shape(plan), c.output_layout), lse(lse_shape(plan), c.output_layout);
  const LaidOut<T> query(query_shape(plan), c.output_layout), key(key_shape(plan), c.output_layout),
      value(value_shape(plan), c.output_layout);
  const AttentionView<T> attention{output, lse};
  const GradientsView<T> gradients{query, key, value};
  forward(plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key), TensorView<const T>(inputs.value),
          attention, workspace);
  backward(plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key), TensorView<const T>(inputs.value),
           AttentionView<const T>{attention.output, attention.lse}, TensorView<const T>(inputs.grad_output), gradients,
           workspace, BackwardOptions<T>{inputs.grad_lse});
  check_close(attention, gradients, reference_of(plan, inputs));
}

enum class Shape { square, wide, tall };

/// The patterns of one size: rectangular kinds or those that are always square.
std::vector<SamplePattern> patterns_of(std::int64_t size, Shape shape, bool square_kinds) {
  const std::int64_t other = size * 3 / 5 + 1;
  if (square_kinds) {
    std::vector<SamplePattern> samples;
    test::detail::add_square_kinds(size, samples);
    return samples;
  }
  std::vector<SamplePattern> samples;
  test::detail::add_rectangular_kinds(shape == Shape::tall ? other : size, shape == Shape::wide ? other : size,
                                      samples);
  return samples;
}

/// Runs every pattern at every size, and more until any two levels of different factors have met.
void sweep(bool square_kinds, std::uint64_t seed) {
  std::vector<std::vector<std::vector<SamplePattern>>> samples;  // by size and shape
  const int shapes = square_kinds ? 1 : 3;
  for (const std::int64_t size : kSizes) {
    samples.emplace_back();
    for (int shape = 0; shape < shapes; ++shape) {
      samples.back().push_back(patterns_of(size, static_cast<Shape>(shape), square_kinds));
    }
  }
  const int patterns = static_cast<int>(samples[0][0].size());
  const auto levels = [](const auto& array) { return static_cast<int>(array.size()); };
  Pairwise pairwise({patterns, levels(kSizes), shapes, 2, levels(kHeads), levels(kFeatures), levels(kFeatures),
                     levels(plan_options()), levels(kQueryLayouts), levels(kQueryLayouts), levels(kQueryLayouts),
                     levels(kInputLayouts), levels(kOutputLayouts)});
  Random random(seed);
  Workspace workspace;
  const auto run_case = [&](const std::vector<int>& chosen) {
    const auto level = [&chosen](std::size_t factor) { return static_cast<std::size_t>(chosen[factor]); };
    const SamplePattern& sample = samples[level(1)][level(2)][level(0)];
    const Layout grad_layout = kInputLayouts[level(11)];
    const Case c{sample.name,
                 sample.pattern,
                 kHeads[level(4)],
                 kFeatures[level(5)],
                 kFeatures[level(6)],
                 plan_options()[level(7)],
                 {kQueryLayouts[level(8)], kQueryLayouts[level(9)], kQueryLayouts[level(10)], grad_layout, grad_layout},
                 kOutputLayouts[level(12)]};
    const bool is_double = level(3) == 1;
    const std::uint64_t case_seed = random.bits();
    INFO("pattern ", c.pattern_name, " ", c.pattern.rows(), " x ", c.pattern.columns(), is_double ? ", f64" : ", f32",
         ", seed ", case_seed);
    INFO("batch ", c.heads.batch, ", heads ", c.heads.query, " / ", c.heads.key_value, ", d ", c.head_dim, ", d_v ",
         c.value_dim, ", ", to_string(c.options.schedule), ", ", to_string(c.options.backward_passes),
         " passes, panels ", c.options.row_panel, " x ", c.options.column_panel, ", fast memory ",
         c.options.fast_memory_bytes);
    INFO("layouts: query ", to_string(c.layouts.query), ", key ", to_string(c.layouts.key), ", value ",
         to_string(c.layouts.value), ", gradients in ", to_string(grad_layout), ", outputs ",
         to_string(c.output_layout));
    if (is_double) {
      check_case<double>(c, case_seed, workspace);
    } else {
      check_case<float>(c, case_seed, workspace);
    }
  };
  for (int pattern = 0; pattern < patterns; ++pattern) {
    for (int size = 0; size < levels(kSizes); ++size) run_case(pairwise.next({pattern, size}, random));
  }
  for (int extra = 0; !pairwise.complete() && extra < 100; ++extra) run_case(pairwise.next({}, random));
  CHECK(pairwise.complete());
}

}  // namespace

TEST_CASE("forward and backward equal the reference: patterns x sizes x types x heads x strides x features") {
  sweep(false, 2024);
}

TEST_CASE("forward and backward equal the reference: square patterns x sizes x types x heads x strides x features") {
  sweep(true, 2025);
}

TEST_CASE_TEMPLATE("each batch entry and head has its own pattern, with other numbers of pairs", T, float, double) {
  const std::int64_t n = 70;
  const std::vector<Pattern> patterns{
      causal(n), window(n, 3, 3),           leading_tokens(n, 1), !full(n),
      full(n),   random_pairs(n, n, 5, 17), window(n, 0, 0),      causal(n) - window(n, 9, 0)};
  SUBCASE("per batch entry and head") {
    check_against_reference<T>(
        make_plan(PatternGrid(patterns, 2, 4), {.head_dim = 8, .query_heads = 4, .key_value_heads = 2, .batch = 2}),
        61);
  }
  SUBCASE("per head") {
    check_against_reference<T>(
        make_plan(PatternGrid(patterns, 1, 8), {.head_dim = 8, .query_heads = 8, .key_value_heads = 1, .batch = 2},
                  {.row_panel = 16, .column_panel = 16}),
        62);
  }
  SUBCASE("per batch entry") {
    check_against_reference<T>(make_plan(PatternGrid(patterns, 8, 1), {.head_dim = 8, .query_heads = 2, .batch = 8}),
                               63);
  }
}

TEST_CASE_TEMPLATE("the scale multiplies the scores and the gradients of query and key", T, float, double) {
  for (const double scale : {0.0, 1.0, -0.7, 2.5}) {
    CAPTURE(scale);
    check_against_reference<T>(make_plan(causal(40), {.head_dim = 3, .scale = scale}), 71);
  }
}

TEST_CASE_TEMPLATE("without a gradient of lse it counts as zero", T, float, double) {
  const Plan plan = make_plan(causal(40), {.head_dim = 8});
  const Inputs<T> inputs = normal_inputs<T>(plan, 81);
  for_each_index(inputs.grad_lse.view().shape(),
                 [&](auto b, auto h, auto t, auto f) { inputs.grad_lse(b, h, t, f) = 0; });
  const Results<T> with_zeros = run(plan, inputs);
  const Gradients<T> without =
      backward(plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key),
               TensorView<const T>(inputs.value), with_zeros.attention.view(), TensorView<const T>(inputs.grad_output));
  CHECK(same_bits(with_zeros.gradients, without));
}

TEST_CASE_TEMPLATE("problems without tokens have empty or zero results", T, float, double) {
  SUBCASE("no queries: keys have zero gradients") {
    const Plan plan = make_plan(full(0, 5), {.head_dim = 3});
    const Results<T> results = run(plan, normal_inputs<T>(plan, 91));
    CHECK(results.attention.output.shape() == TensorShape{1, 1, 0, 3});
    CHECK(all_equal(results.gradients.key.view(), 0));
    CHECK(all_equal(results.gradients.value.view(), 0));
  }
  SUBCASE("no keys: all rows are empty") {
    const Plan plan = make_plan(full(5, 0), {.head_dim = 3});
    const Results<T> results = run(plan, normal_inputs<T>(plan, 92));
    CHECK(all_equal(results.attention.output.view(), 0));
    CHECK(all_equal(results.attention.lse.view(), -std::numeric_limits<T>::infinity()));
    CHECK(all_equal(results.gradients.query.view(), 0));
  }
  SUBCASE("neither") {
    const Plan plan = make_plan(full(0), {.head_dim = 3});
    const Results<T> results = run(plan, normal_inputs<T>(plan, 93));
    CHECK(results.gradients.query.shape() == TensorShape{1, 1, 0, 3});
  }
}

TEST_CASE("one token attends to itself: output is its value, gradients of query and key are zero") {
  const Plan plan = make_plan(full(1), {.head_dim = 1});
  const std::vector<double> query{2}, key{3}, value{5}, grad_output{7};
  const TensorShape one{1, 1, 1, 1};
  const TensorView<const double> q(query.data(), one), k(key.data(), one), v(value.data(), one),
      d(grad_output.data(), one);
  const Attention<double> attention = forward(plan, q, k, v);
  CHECK(attention.output.values()[0] == 5);
  CHECK(attention.lse.values()[0] == doctest::Approx(6));
  const Gradients<double> gradients = backward(plan, q, k, v, attention, d);
  CHECK(gradients.query.values()[0] == 0);
  CHECK(gradients.key.values()[0] == 0);
  CHECK(gradients.value.values()[0] == 7);
}

TEST_CASE("float32 results are within 4 times the error of plain float32 arithmetic in natural order") {
  for (const Pattern& pattern : {full(257), causal(257), window(257, 60, 10), random_pairs(257, 257, 9, 4)}) {
    for (const std::int64_t d : {16, 64, 128}) {
      const Plan plan = make_plan(pattern, {.head_dim = d});
      const std::string name = pattern.describe();
      CAPTURE(name);
      CAPTURE(d);
      Inputs<float> inputs = normal_inputs<float>(plan, 101 + static_cast<std::uint64_t>(d));
      inputs.grad_lse = LaidOut<float>(lse_shape(plan), Layout::contiguous);
      for_each_index(lse_shape(plan), [&](auto b, auto h, auto t, auto f) { inputs.grad_lse(b, h, t, f) = 0; });
      const ReferenceResult reference = reference_of(plan, inputs);
      const PlainAttention<float> plain =
          plain_attention<float>(pattern, inputs.query, inputs.key, inputs.value, inputs.grad_output);
      const Results<float> results = run(plan, inputs);
      const auto check = [](const Tensor<float>& ours, const Tensor<float>& theirs, const Tensor<double>& exact) {
        CHECK(max_relative_error(ours, exact) <= 4 * max_relative_error(theirs, exact));
      };
      check(results.attention.output, plain.output, reference.output);
      check(results.gradients.query, plain.grad_query, reference.grad_query);
      check(results.gradients.key, plain.grad_key, reference.grad_key);
      check(results.gradients.value, plain.grad_value, reference.grad_value);
    }
  }
}

TEST_CASE("only what is infinite by the formula is: a scale above 1 is not put into queries") {
  constexpr std::int64_t kTokens = 64;
  constexpr std::int64_t kFeatures16 = 16;
  const Plan plan = make_plan(full(kTokens), {.head_dim = kFeatures16, .scale = 1e19});
  const TensorShape shape{1, 1, kTokens, kFeatures16};
  Tensor<float> query(shape), key(shape), value(shape), grad_output(shape);
  for (Tensor<float>* tensor : {&query, &key, &value, &grad_output}) std::ranges::fill(tensor->values(), 0.0F);
  for (std::int64_t token = 0; token < kTokens; ++token) {
    query(0, 0, token, token % kFeatures16) = 1e20F;  // times the scale: more than float holds
    key(0, 0, token, token % kFeatures16) = 1e-38F;
    value(0, 0, token, 0) = static_cast<float>(token);
    grad_output(0, 0, token, 0) = 1e-19F;
  }
  const Attention<float> result = forward(plan, query, key, value);
  const Gradients<float> gradients = backward(plan, query, key, value, result, grad_output);
  // Four keys of a query have the score 10, the others 0.
  const double four = std::exp(10.0);
  for (std::int64_t token = 0; token < kTokens; ++token) {
    const double alike = static_cast<double>(token % kFeatures16 * 4 + 6 * kFeatures16);
    const double expected = (four * alike + (2016 - alike)) / (4 * four + 60);
    CHECK(result.output(0, 0, token, 0) == doctest::Approx(expected).epsilon(1e-4));
  }
  for (const float gradient : gradients.key.values()) CHECK(std::isfinite(gradient));
}
