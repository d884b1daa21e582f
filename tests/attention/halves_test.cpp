#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/isa.hpp"
#include "cobble/plan.hpp"
#include "plan/plan_data.hpp"
#include "support/attention_inputs.hpp"
#include "support/sample_patterns.hpp"
#include "support/threads.hpp"

// Tensors of halves. What is computed from them is what float computes from the floats that they are, to the bit,
// rounded once. Where scores of bfloat16 are computed by AMX, their sums run in another order; what AVX-512 BF16 does
// is tested in executor_bf16_test.cpp.

using namespace cobble;
using namespace cobble::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Half a unit in the last place, relative to a number.
template <class Half>
const double kRounding = std::ldexp(1.0, -std::numeric_limits<Half>::digits);

/// A copy as floats.
template <class Half>
Tensor<float> widened(const TensorView<Half>& tensor) {
  return converted<float>(tensor);
}

/// Whether `halves` are `floats`, rounded; NaN may have any bits.
template <class Half>
bool is_rounded(const TensorView<const Half>& halves, const TensorView<const float>& floats) {
  if (halves.shape() != floats.shape()) return false;
  bool same = true;
  for_each_index(halves.shape(), [&](auto b, auto h, auto t, auto f) {
    const Half expected(floats(b, h, t, f));
    const Half found = halves(b, h, t, f);
    same = same && (equal_bits(found, expected) || (std::isnan(float(found)) && std::isnan(float(expected))));
  });
  return same;
}

/// The floats of the inputs, dense in C order.
template <class Half>
struct FloatInputs {
  Tensor<float> query, key, value, grad_output, grad_lse;

  explicit FloatInputs(const Inputs<Half>& inputs)
      : query(widened(inputs.query.view())),
        key(widened(inputs.key.view())),
        value(widened(inputs.value.view())),
        grad_output(widened(inputs.grad_output.view())),
        grad_lse(converted<float>(inputs.grad_lse.view())) {}
};

/// The widest instruction set that computes halves with the kernels of float, until this is destroyed.
class FloatKernels {
 public:
  FloatKernels() : before_(isa()) {
    if (before_ == Isa::amx || before_ == Isa::avx512_bf16) set_isa(Isa::avx512);
  }
  FloatKernels(const FloatKernels&) = delete;
  FloatKernels& operator=(const FloatKernels&) = delete;
  ~FloatKernels() { set_isa(before_); }

 private:
  Isa before_;
};

/// Forward and backward of halves against those of float, backward from the output that was rounded.
template <class Half>
void check_rounds_once(const Plan& plan, const Inputs<Half>& inputs, Layout output_layout = Layout::contiguous,
                       const ScoreTerms<Half>& terms = {}, const ScoreTerms<float>& float_terms = {}) {
  const FloatKernels kernels;
  const FloatInputs<Half> floats(inputs);
  const LaidOut<Half> output(output_shape(plan), output_layout);
  const LaidOut<float> lse(lse_shape(plan), output_layout);
  const LaidOut<Half> query(query_shape(plan), output_layout), key(key_shape(plan), output_layout),
      value(value_shape(plan), output_layout);
  Workspace workspace;
  forward(plan, TensorView<const Half>(inputs.query), TensorView<const Half>(inputs.key),
          TensorView<const Half>(inputs.value), AttentionView<Half>{output, lse}, workspace, terms);
  Attention<float> attention = forward(plan, floats.query.view(), floats.key.view(), floats.value.view(), float_terms);
  CHECK(is_rounded<Half>(output, attention.output));
  CHECK(max_relative_error(TensorView<const float>(lse), attention.lse.view()) == 0);

  attention.output = widened(output.view());
  GradientsView<Half> gradients{query, key, value};
  Tensor<Half> bias;
  Tensor<Half> sinks;
  const bool has_bias = terms.bias.values.data() != nullptr;
  if (has_bias) gradients.bias = (bias = Tensor<Half>(terms.bias.values.shape())).view();
  if (!terms.sinks.empty()) sinks = Tensor<Half>({1, plan.problem().query_heads, 1, 1});
  gradients.sinks = sinks.values();
  backward(plan, TensorView<const Half>(inputs.query), TensorView<const Half>(inputs.key),
           TensorView<const Half>(inputs.value), AttentionView<const Half>{output, lse},
           TensorView<const Half>(inputs.grad_output), gradients, workspace,
           BackwardOptions<Half>{inputs.grad_lse, terms});
  BackwardOptions<float> options{floats.grad_lse.view(), float_terms};
  options.bias_gradient = has_bias;
  const Gradients<float> expected = backward(plan, floats.query.view(), floats.key.view(), floats.value.view(),
                                             attention, floats.grad_output.view(), options);
  CHECK(is_rounded<Half>(query, expected.query));
  CHECK(is_rounded<Half>(key, expected.key));
  CHECK(is_rounded<Half>(value, expected.value));
  if (has_bias) CHECK(is_rounded<Half>(bias, expected.bias));
  // From double to half, not by way of float.
  if (!terms.sinks.empty()) CHECK(max_relative_error(sinks, expected.sinks) <= 1.01 * kRounding<Half>);
}

std::vector<PlanOptions> schedules() {
  return {
      {},
      {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::one, .row_panel = 16, .column_panel = 16},
      {.schedule = Schedule::recompute, .row_panel = 7, .column_panel = 5},
      {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::two, .fast_memory_bytes = 10000},
      {.schedule = Schedule::materialize},
      {.schedule = Schedule::materialize, .tile_sizes = TileSizes::model, .fast_memory_bytes = 1000},
      {.tile_sizes = TileSizes::model, .fast_memory_bytes = 5000}};
}

}  // namespace

TEST_CASE_TEMPLATE("halves give float's results, rounded once: patterns x schedules x heads x features x strides", Half,
                   bfloat16, float16) {
  const std::int64_t features[] = {1, 8, 16, 40, 65};
  const Layout layouts[] = {Layout::contiguous, Layout::tokens_first, Layout::feature_stride, Layout::reversed};
  std::uint64_t turn = 0;
  for (const PlanOptions& options : schedules()) {
    for (const std::int64_t n : {17, 33}) {
      for (const SamplePattern& sample : named_sample_patterns(n, n * 3 / 5 + static_cast<std::int64_t>(turn % 7))) {
        ++turn;
        CAPTURE(turn);
        CAPTURE(sample.name);
        const bool grouped = turn % 2 == 0;
        const Plan plan = make_plan(sample.pattern,
                                    {.head_dim = features[turn % 5],
                                     .value_dim = features[turn / 5 % 5],
                                     .query_heads = grouped ? 3 : 1,
                                     .key_value_heads = 1,
                                     .batch = grouped ? 2 : 1},
                                    options);
        Random random(turn);
        const Layout layout = layouts[turn / 3 % 4];
        check_rounds_once(plan, normal_inputs<Half>(plan, random, {layout, layout, layout, layout}),
                          layouts[turn / 4 % 4]);
      }
    }
  }
}

TEST_CASE_TEMPLATE("halves give float's results on every instruction set", Half, bfloat16, float16) {
  const Isa before = isa();
  for (const Isa other : available_isas()) {
    CAPTURE(std::string(to_string(other)));
    set_isa(other);
    const Plan plan = make_plan(causal(70) | random_pairs(70, 70, 3, 1), {.head_dim = 24, .value_dim = 9});
    check_rounds_once(plan, normal_inputs<Half>(plan, 3));
  }
  set_isa(before);
}

TEST_CASE_TEMPLATE("halves are as near to the reference as their rounding lets them", Half, bfloat16, float16) {
  constexpr double kFloat = 2e-5;
  const FloatKernels kernels;
  for (const Pattern& pattern : {full(80), window(150, 40, 3), random_pairs(100, 100, 7, 5)}) {
    const Plan plan = make_plan(pattern, {.head_dim = 40, .query_heads = 4, .key_value_heads = 2});
    const Inputs<Half> inputs = normal_inputs<Half>(plan, 21);
    const Results<Half> results = run(plan, inputs);
    const ReferenceResult reference = reference_of(plan, inputs);
    CHECK(max_relative_error(results.attention.output, reference.output) <= kFloat + kRounding<Half>);
    CHECK(max_relative_error(results.attention.lse, reference.lse) <= kFloat);
    CHECK(max_relative_error(results.gradients.value, reference.grad_value) <= kFloat + kRounding<Half>);
    // delta comes from the rounded output.
    CHECK(max_relative_error(results.gradients.query, reference.grad_query) <= kFloat + 4 * kRounding<Half>);
    CHECK(max_relative_error(results.gradients.key, reference.grad_key) <= kFloat + 4 * kRounding<Half>);
  }
}

TEST_CASE_TEMPLATE("NaN and infinity in halves reach the rows that attend to them, and no other", Half, bfloat16,
                   float16) {
  const FloatKernels kernels;
  const double poisons[] = {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity};
  int turn = 0;
  for (const SamplePattern& sample : named_sample_patterns(70, 70)) {
    CAPTURE(sample.name);
    for (const PlanOptions& options : {PlanOptions{}, PlanOptions{.row_panel = 16, .column_panel = 16}}) {
      const Plan plan = make_plan(sample.pattern, {.head_dim = 16, .value_dim = 5}, options);
      const Inputs<Half> inputs = normal_inputs<Half>(plan, 31);
      const Attention<Half> clean = run_forward(plan, inputs);
      const std::int64_t token = 7 * (++turn % 10);
      for (const TensorView<Half>& tensor : {inputs.key.view(), inputs.value.view()}) {
        for (std::int64_t f = 0; f < tensor.shape().features; ++f) tensor(0, 0, token, f) = Half(poisons[turn % 3]);
      }
      const Results<Half> results = run(plan, inputs);
      bool same = true;
      bool reached = true;
      for (std::int64_t i = 0; i < 70; ++i) {
        for (std::int64_t f = 0; f < 5; ++f) {
          const auto found = static_cast<double>(results.attention.output(0, 0, i, f));
          const auto expected = static_cast<double>(clean.output(0, 0, i, f));
          if (sample.contains(i, token)) {
            if (turn % 3 == 0) reached = reached && std::isnan(found);
          } else {
            same = same && std::abs(found - expected) <= 2.01 * kRounding<Half> * std::abs(expected);
          }
        }
        if (!sample.contains(i, token)) {
          for (std::int64_t f = 0; f < 16; ++f)
            same = same && std::isfinite(static_cast<float>(results.gradients.query(0, 0, i, f)));
        }
      }
      CHECK(same);
      CHECK(reached);
    }
  }
}

TEST_CASE_TEMPLATE("halves: the same bits for 1, 2, 3 and 7 threads, with a used workspace", Half, bfloat16, float16) {
  const std::vector<Plan> plans{
      make_plan(causal(70), {.head_dim = 16, .query_heads = 3, .key_value_heads = 1}),
      make_plan(random_pairs(100, 100, 7, 5), {.head_dim = 9}, {.schedule = Schedule::materialize}),
      make_plan(causal(800), {.head_dim = 2, .value_dim = 3})};
  Workspace workspace;
  for (const Plan& plan : plans) {
    const Inputs<Half> inputs = normal_inputs<Half>(plan, 41);
    const Results<Half> expected = on_threads(1, [&] { return run(plan, inputs); });
    for (const int threads : {1, 2, 3, 7}) {
      CHECK(same_bits(on_threads(threads, [&] { return run(plan, inputs); }), expected));
      Results<Half> results = run(plan, inputs);
      for (Half& x : results.gradients.key.values()) x = Half(1.0F);
      on_threads(threads, [&] {
        backward(plan, TensorView<const Half>(inputs.query), TensorView<const Half>(inputs.key),
                 TensorView<const Half>(inputs.value), results.attention, TensorView<const Half>(inputs.grad_output),
                 results.gradients.view(), workspace, BackwardOptions<Half>{inputs.grad_lse});
      });
      CHECK(same_bits(results, expected));
    }
  }
}

TEST_CASE_TEMPLATE("halves need no more workspace than the plan says", Half, bfloat16, float16) {
  const Plan plan = make_plan(causal(300), {.head_dim = 32, .value_dim = 40, .query_heads = 2});
  const Inputs<Half> inputs = normal_inputs<Half>(plan, 12);
  Results<Half> results = run(plan, inputs);
  Workspace workspace;
  on_threads(1, [&] {
    backward(plan, TensorView<const Half>(inputs.query), TensorView<const Half>(inputs.key),
             TensorView<const Half>(inputs.value), results.attention, TensorView<const Half>(inputs.grad_output),
             results.gradients.view(), workspace, BackwardOptions<Half>{inputs.grad_lse});
  });
  CHECK(workspace.bytes() > plan.workspace_bytes(1, sizeof(float)) / 2);
  CHECK(workspace.bytes() <= plan.workspace_bytes(1, sizeof(Half)));
}

TEST_CASE_TEMPLATE("terms of halves give float's results, rounded once", Half, bfloat16, float16) {
  const std::vector<double> slopes = alibi_slopes(4);
  for (const PlanOptions& options : schedules()) {
    const Plan plan =
        make_plan(window(50, 20, 5) | random_pairs(50, 50, 8, 7),
                  {.head_dim = 16, .value_dim = 9, .query_heads = 4, .key_value_heads = 2, .batch = 2}, options);
    const Pattern square = random_pairs(50, 50, 20, 6);
    const std::int64_t values = bias_values(square);
    for (const TensorShape& shape :
         {TensorShape{1, 1, 1, values}, TensorShape{2, 4, 1, values}, TensorShape{1, 4, 1, values}}) {
      CAPTURE(shape.batch);
      CAPTURE(shape.heads);
      Random random(51);
      Tensor<Half> bias(shape);
      fill_normal(bias.view(), random);
      for (std::int64_t i = 0; i < values; i += 9) bias(0, 0, 0, i) = Half(-kInfinity);
      const Tensor<float> float_bias = widened(bias.view());
      const std::vector<Half> sinks{Half(0.3), Half(-kInfinity), Half(-1.1), Half(2.0)};
      std::vector<float> float_sinks;
      for (const Half sink : sinks) float_sinks.push_back(static_cast<float>(sink));
      const ScoreTerms<Half> terms{.softcap = 3, .bias = {square, bias.view()}, .alibi_slopes = slopes, .sinks = sinks};
      const ScoreTerms<float> float_terms{
          .softcap = 3, .bias = {square, float_bias.view()}, .alibi_slopes = slopes, .sinks = float_sinks};
      check_rounds_once(plan, normal_inputs<Half>(plan, random), Layout::contiguous, terms, float_terms);
    }
  }
}

TEST_CASE_TEMPLATE("every candidate of sparse patterns gives float's results with terms of halves", Half, bfloat16,
                   float16) {
  const std::vector<double> slopes = alibi_slopes(2);
  const ScoreTerms<Half> terms{.softcap = 3, .alibi_slopes = slopes};
  const ScoreTerms<float> float_terms{.softcap = 3, .alibi_slopes = slopes};
  const Problem problem{.head_dim = 20, .value_dim = 9, .query_heads = 2, .key_value_heads = 1};
  const Pattern pattern = random_pairs(200, 330, 6, 1);
  int gathering = 0;
  for (std::int64_t index = 0; index < std::ssize(make_plan(pattern, problem).candidates()); ++index) {
    const Plan plan = make_plan(pattern, problem, {.candidate = index});
    CAPTURE(plan.candidates()[static_cast<std::size_t>(index)].name);
    gathering += plan.data().gathers ? 1 : 0;
    check_rounds_once(plan, normal_inputs<Half>(plan, 52), Layout::contiguous, terms, float_terms);
  }
  CHECK(gathering > 0);
}
