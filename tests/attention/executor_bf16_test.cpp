#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/isa.hpp"
#include "cobble/plan.hpp"
#include "support/attention_inputs.hpp"
#include "support/isas.hpp"
#include "support/sample_patterns.hpp"

// Attention from bfloat16 where products multiply bfloat16 (AVX-512 BF16): P and dS are rounded on their way into them.

using namespace cobble;
using namespace cobble::test;

namespace {

constexpr double kRounding = 0x1p-8;  // of bfloat16, relative to a number
constexpr double kFloat = 2e-5;       // of sums in float, relative to the largest

/// How far each result may be from the reference.
struct Bounds {
  Tensor<double> output, grad_query, grad_key, grad_value;
};

/// With u = kRounding and r(x) = x (1 + e), |e| <= u, what is computed, beside the rounding of float, is
///   o_i = r(sum_j r(p_ij) v_j), off by 2 u sum_j p_ij |v_j| at most, as |o_i| <= sum_j p_ij |v_j|;
///   dv_j = r(sum_i r(p_ij) do_i), likewise;
///   delta_i = <do_i, o_i> from that output, off by E_i = sum_f |do_if| (error of o_if);
///   dq_i = r(scale sum_j r(p_ij (dp_ij - delta_i)) k_j), off by scale sum_j (2 u |ds_ij| + E_i p_ij) |k_j|;
///   dk_j likewise.
/// Products of two errors are below u of these; 1.02 covers them.
Bounds bounds_of(const Plan& plan, const Inputs<bfloat16>& inputs, const ReferenceResult& reference) {
  const Problem& problem = plan.problem();
  const auto zeros = [](const TensorShape& shape) {
    Tensor<double> tensor(shape);
    for (double& x : tensor.values()) x = 0;
    return tensor;
  };
  Bounds bounds{zeros(output_shape(plan)), zeros(query_shape(plan)), zeros(key_shape(plan)), zeros(value_shape(plan))};
  const double scale = 1 / std::sqrt(static_cast<double>(problem.head_dim));
  const double once = 1.02 * kRounding;
  const Tensor<double> query = converted<double>(inputs.query.view()), key = converted<double>(inputs.key.view());
  const Tensor<double> value = converted<double>(inputs.value.view());
  const Tensor<double> grad_output = converted<double>(inputs.grad_output.view());
  std::vector<ColumnRun> runs;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      const std::int64_t g = h / (problem.query_heads / problem.key_value_heads);
      const Pattern& pattern = plan.patterns().at(b, h);
      for (std::int64_t i = 0; i < pattern.rows(); ++i) {
        runs.clear();
        pattern.append_runs(i, 0, pattern.columns(), runs);
        const auto for_each_key = [&](auto visit) {
          for (const ColumnRun& run : runs) {
            for (std::int64_t j = run.begin; j < run.end; ++j) {
              double score = 0;
              for (std::int64_t f = 0; f < problem.head_dim; ++f) score += query(b, h, i, f) * key(b, g, j, f);
              visit(j, std::exp(scale * score - reference.lse(b, h, i, 0)));
            }
          }
        };
        for_each_key([&](std::int64_t j, double p) {
          for (std::int64_t f = 0; f < problem.value_dim; ++f) {
            bounds.output(b, h, i, f) += 2 * once * p * std::abs(value(b, g, j, f));
            bounds.grad_value(b, g, j, f) += 2 * once * p * std::abs(grad_output(b, h, i, f));
          }
        });
        double delta = -static_cast<double>(inputs.grad_lse.view()(b, h, i, 0));
        double delta_error = 0;
        for (std::int64_t f = 0; f < problem.value_dim; ++f) {
          delta += grad_output(b, h, i, f) * reference.output(b, h, i, f);
          delta_error += std::abs(grad_output(b, h, i, f)) * bounds.output(b, h, i, f);
        }
        for_each_key([&](std::int64_t j, double p) {
          double grad = -delta;
          for (std::int64_t f = 0; f < problem.value_dim; ++f) grad += grad_output(b, h, i, f) * value(b, g, j, f);
          const double error = scale * p * (2 * once * std::abs(grad) + 1.02 * delta_error);
          for (std::int64_t f = 0; f < problem.head_dim; ++f) {
            bounds.grad_query(b, h, i, f) += error * std::abs(key(b, g, j, f));
            bounds.grad_key(b, g, j, f) += error * std::abs(query(b, h, i, f));
          }
        });
      }
    }
  }
  return bounds;
}

bool is_within(const Tensor<bfloat16>& found, const Tensor<double>& reference, const Tensor<double>& bounds) {
  double largest = 0;
  for (const double x : reference.values()) largest = std::max(largest, std::abs(x));
  bool within = true;
  for_each_index(reference.shape(), [&](auto b, auto h, auto t, auto f) {
    const double error = std::abs(static_cast<double>(found(b, h, t, f)) - reference(b, h, t, f));
    within = within && error <= bounds(b, h, t, f) + kFloat * largest;
  });
  return within;
}

void check_bounds(const Plan& plan, const Inputs<bfloat16>& inputs) {
  const Results<bfloat16> results = run(plan, inputs);
  const ReferenceResult reference = reference_of(plan, inputs);
  const Bounds bounds = bounds_of(plan, inputs, reference);
  CHECK(max_relative_error(results.attention.lse, reference.lse) <= kFloat);
  CHECK(is_within(results.attention.output, reference.output, bounds.output));
  CHECK(is_within(results.gradients.query, reference.grad_query, bounds.grad_query));
  CHECK(is_within(results.gradients.key, reference.grad_key, bounds.grad_key));
  CHECK(is_within(results.gradients.value, reference.grad_value, bounds.grad_value));
}

std::vector<PlanOptions> schedules() {
  return {
      {},
      {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::one, .row_panel = 16, .column_panel = 16},
      {.schedule = Schedule::recompute, .row_panel = 7, .column_panel = 5},
      {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::two, .row_panel = 32, .column_panel = 9},
      {.schedule = Schedule::materialize},
      {.schedule = Schedule::materialize, .tile_sizes = TileSizes::model, .fast_memory_bytes = 1000}};
}

}  // namespace

TEST_CASE("bfloat16 products: within the rounding of P and dS of the reference, for patterns x schedules x features") {
  on_isa(Isa::avx512_bf16, [] {
    const std::int64_t features[] = {1, 8, 16, 40, 65};
    const Layout layouts[] = {Layout::contiguous, Layout::tokens_first, Layout::feature_stride, Layout::reversed};
    std::uint64_t turn = 0;
    for (const PlanOptions& options : schedules()) {
      for (const std::int64_t n : {17, 34, 67}) {
        for (const SamplePattern& sample : named_sample_patterns(n, n * 3 / 5 + static_cast<std::int64_t>(turn % 7))) {
          ++turn;
          CAPTURE(turn);
          CAPTURE(sample.name);
          const bool grouped = turn % 2 == 0;
          const Plan plan = make_plan(sample.pattern,
                                      {.head_dim = features[turn % 5],
                                       .value_dim = features[turn / 5 % 5],
                                       .query_heads = grouped ? 2 : 1,
                                       .key_value_heads = 1,
                                       .batch = grouped ? 2 : 1},
                                      options);
          Random random(turn);
          const Layout layout = layouts[turn / 3 % 4];
          check_bounds(plan, normal_inputs<bfloat16>(plan, random, {layout, layout, layout, layout}));
        }
      }
    }
  });
}

TEST_CASE("bfloat16 products are in use where they are set, and nowhere else") {
  const Plan plan = make_plan(causal(80), {.head_dim = 32});
  const Inputs<bfloat16> inputs = normal_inputs<bfloat16>(plan, 5);
  const Inputs<float> floats = normal_inputs<float>(plan, 5);
  const Isa before = isa();
  on_isa(Isa::avx512_bf16, [&] {
    const Results<bfloat16> results = run(plan, inputs);
    const Results<float> float_results = run(plan, floats);
    set_isa(Isa::avx512);
    const Results<bfloat16> by_floats = run(plan, inputs);
    CHECK_FALSE(same_bits(results.attention.output, by_floats.attention.output));
    CHECK_FALSE(same_bits(results.gradients.query, by_floats.gradients.query));
    CHECK_FALSE(same_bits(results.gradients.key, by_floats.gradients.key));
    CHECK_FALSE(same_bits(results.gradients.value, by_floats.gradients.value));
    CHECK(same_bits(run(plan, floats), float_results));
  });
  CHECK(isa() == before);
}

TEST_CASE("bfloat16 products: terms of scores and their gradients") {
  on_isa(Isa::avx512_bf16, [] {
    const std::vector<double> slopes = alibi_slopes(4);
    for (const PlanOptions& options : schedules()) {
      const Pattern square = random_pairs(51, 51, 20, 6);
      const Plan plan = make_plan(window(51, 20, 5) | random_pairs(51, 51, 8, 7),
                                  {.head_dim = 16, .value_dim = 9, .query_heads = 4, .key_value_heads = 2}, options);
      Random random(51);
      Tensor<bfloat16> bias({1, 4, 1, bias_values(square)});
      fill_normal(bias.view(), random);
      for (std::size_t i = 0; i < bias.values().size(); i += 9) {
        bias.values()[i] = bfloat16(-std::numeric_limits<float>::infinity());
      }
      const std::vector<bfloat16> sinks{bfloat16(0.3), bfloat16(-1.0), bfloat16(-1.1), bfloat16(2.0)};
      const ScoreTerms<bfloat16> terms{
          .softcap = 3, .bias = {square, bias.view()}, .alibi_slopes = slopes, .sinks = sinks};
      const Inputs<bfloat16> inputs = normal_inputs<bfloat16>(plan, random);
      const Results<bfloat16> results = run(plan, inputs, terms);
      const ReferenceResult reference = reference_of(plan, inputs, terms);
      // Relative to the largest entry, errors of single pairs are small: this is what halves are given everywhere.
      constexpr double kTolerated = kFloat + 4 * kRounding;
      CHECK(max_relative_error(results.attention.lse, reference.lse) <= kFloat);
      CHECK(max_relative_error(results.attention.output, reference.output) <= kTolerated);
      CHECK(max_relative_error(results.gradients.query, reference.grad_query) <= kTolerated);
      CHECK(max_relative_error(results.gradients.key, reference.grad_key) <= kTolerated);
      CHECK(max_relative_error(results.gradients.value, reference.grad_value) <= kTolerated);
      CHECK(max_relative_error(results.gradients.bias, reference.grad_bias) <= kTolerated);
      CHECK(max_relative_error(results.gradients.sinks, reference.grad_sinks) <= kTolerated);
    }
  });
}

TEST_CASE("bfloat16 products: a token that is not finite touches no row that does not attend to it") {
  on_isa(Isa::avx512_bf16, [] {
    constexpr std::int64_t kTokens = 35;
    int turn = 0;
    for (const SamplePattern& sample : named_sample_patterns(kTokens, kTokens)) {
      CAPTURE(sample.name);
      for (const PlanOptions& options : schedules()) {
        const Plan plan = make_plan(sample.pattern, {.head_dim = 16, .value_dim = 5}, options);
        for (const std::int64_t token : {std::int64_t{0}, std::int64_t{17}, kTokens - 1}) {
          const Inputs<bfloat16> inputs = normal_inputs<bfloat16>(plan, 31);
          const Attention<bfloat16> clean = run_forward(plan, inputs);
          const float poison =
              std::vector{std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}[static_cast<std::size_t>(++turn % 2)];
          for (const TensorView<bfloat16>& tensor :
               {inputs.key.view(), inputs.value.view(), inputs.query.view(), inputs.grad_output.view()}) {
            for (std::int64_t f = 0; f < tensor.shape().features; ++f) tensor(0, 0, token, f) = bfloat16(poison);
          }
          const Results<bfloat16> results = run(plan, inputs);
          bool same = true;
          bool reached = true;
          for (std::int64_t i = 0; i < kTokens; ++i) {
            if (i == token) continue;  // its query is not finite
            for (std::int64_t f = 0; f < 5; ++f) {
              const auto found = static_cast<double>(results.attention.output(0, 0, i, f));
              const auto expected = static_cast<double>(clean.output(0, 0, i, f));
              if (sample.contains(i, token)) {
                reached = reached && (turn % 2 != 0 || std::isnan(found));
              } else {
                // Pair by pair, in float: what rounding P and the output makes of values up to 5, twice.
                same = same && std::abs(found - expected) <= 4.04 * kRounding * 5;
              }
              if (!sample.contains(token, i)) {
                bool poisoned = false;  // by a row that attends to both
                for (std::int64_t row = 0; row < kTokens; ++row) {
                  poisoned = poisoned || (sample.contains(row, token) && sample.contains(row, i));
                }
                if (!poisoned) same = same && std::isfinite(static_cast<float>(results.gradients.value(0, 0, i, f)));
                if (!poisoned) same = same && std::isfinite(static_cast<float>(results.gradients.key(0, 0, i, f)));
              }
            }
            for (std::int64_t f = 0; f < 16 && !sample.contains(i, token); ++f) {
              same = same && std::isfinite(static_cast<float>(results.gradients.query(0, 0, i, f)));
            }
          }
          CHECK(same);
          CHECK(reached);
        }
      }
    }
  });
}
