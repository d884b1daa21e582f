#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/plan.hpp"
#include "support/attention_inputs.hpp"
#include "support/schedules.hpp"

// The public reports of public_reports_test.cpp once more, as far as terms of scores have a part in them.

using namespace cobble;
using namespace cobble::test;

namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

template <class T>
void check_reference(const Plan& plan, const Inputs<T>& inputs, const ScoreTerms<T>& terms, const Results<T>& results) {
  const ReferenceResult reference = reference_of(plan, inputs, terms);
  CHECK(max_relative_error(results.attention.output, reference.output) < kTolerance<T>);
  CHECK(max_relative_error(results.attention.lse, reference.lse) < kTolerance<T>);
  CHECK(max_relative_error(results.gradients.query, reference.grad_query) < kTolerance<T>);
  CHECK(max_relative_error(results.gradients.key, reference.grad_key) < kTolerance<T>);
  CHECK(max_relative_error(results.gradients.value, reference.grad_value) < kTolerance<T>);
}

/// Calls check(plan) for every schedule, in a small and in a large fast memory.
template <class T, class Check>
void for_each_plan(const PatternGrid& patterns, const Problem& problem, Check check) {
  for (const std::int64_t words : {std::int64_t{256}, std::int64_t{1} << 17}) {
    for (const PlanOptions& options : all_schedules(words, sizeof(T))) {
      const std::optional<Plan> plan = feasible_plan(patterns, problem, options);
      if (!plan) continue;
      CAPTURE(describe(options));
      check(*plan);
    }
  }
}

/// A bias on every pair of n_q x n_k, value(i, j) each.
template <class T, class Value>
std::vector<T> whole_bias(std::int64_t n_q, std::int64_t n_k, Value value) {
  std::vector<T> bias;
  for (std::int64_t i = 0; i < n_q; ++i) {
    for (std::int64_t j = 0; j < n_k; ++j) bias.push_back(static_cast<T>(value(i, j)));
  }
  return bias;
}

template <class T>
ScoreBias<T> bias_on(const Pattern& structure, const std::vector<T>& values) {
  return {structure, {values.data(), {1, 1, 1, std::ssize(values)}}};
}

}  // namespace

TEST_CASE_TEMPLATE("reports 2 and 3: rows and first tiles that a bias of -infinity removes poison nothing", T, float,
                   double) {
  // Row 2 loses all pairs, every fourth row those of its first 70 keys, with softcap before the bias and without.
  const std::int64_t n_q = 20, n_k = 150;
  const std::vector<T> bias = whole_bias<T>(n_q, n_k, [](std::int64_t i, std::int64_t j) {
    return i == 2 || (i % 4 == 0 && j < 70) ? -kInfinity<double> : 0.125 * static_cast<double>((i + j) % 5);
  });
  const Pattern structure = from_csr(full(n_q, n_k).to_csr());
  for (const double softcap : {0.0, 2.0}) {
    CAPTURE(softcap);
    for_each_plan<T>(full(n_q, n_k), {.head_dim = 4}, [&](const Plan& plan) {
      const ScoreTerms<T> terms{.softcap = softcap, .bias = bias_on(structure, bias)};
      const Inputs<T> inputs = normal_inputs<T>(plan, 2);
      for (std::int64_t f = 0; f < 4; ++f) inputs.grad_output(0, 0, 2, f) = kNan<T>;
      const Results<T> results = run(plan, inputs, terms);
      check_reference(plan, inputs, terms, results);
      CHECK(results.attention.lse(0, 0, 2, 0) == -kInfinity<T>);
      CHECK(std::isfinite(results.attention.lse(0, 0, 4, 0)));
      for (std::int64_t f = 0; f < 4; ++f) {
        CHECK(results.attention.output(0, 0, 2, f) == 0);
        CHECK(results.gradients.query(0, 0, 2, f) == 0);
      }
      for (std::int64_t pair = 0; pair < std::ssize(bias); ++pair) {
        if (std::isinf(bias[static_cast<std::size_t>(pair)])) CHECK(results.gradients.bias(0, 0, 0, pair) == 0);
      }
    });
  }
}

TEST_CASE_TEMPLATE("report 7: with a sink the lse of an empty row is the sink, without end it is minus infinity", T,
                   float, double) {
  const Pattern pattern = window(30, 3, 0) - leading_tokens(30, 4);  // rows 0 to 3 are empty
  for_each_plan<T>(pattern, {.head_dim = 4, .query_heads = 2}, [](const Plan& plan) {
    const std::vector<T> sinks = {T(0.75), -kInfinity<T>};
    const ScoreTerms<T> terms{.sinks = sinks};
    const Inputs<T> inputs = normal_inputs<T>(plan, 7);
    const Results<T> results = run(plan, inputs, terms);
    check_reference(plan, inputs, terms, results);
    for (std::int64_t i = 0; i < 4; ++i) {
      CHECK(results.attention.lse(0, 0, i, 0) == T(0.75));
      CHECK(results.attention.lse(0, 1, i, 0) == -kInfinity<T>);
      for (std::int64_t f = 0; f < 4; ++f) {
        CHECK(results.attention.output(0, 0, i, f) == 0);
        CHECK(results.gradients.query(0, 0, i, f) == 0);
      }
    }
    CHECK(std::isfinite(results.gradients.sinks.values()[0]));
    CHECK(results.gradients.sinks.values()[1] == 0);
    // A sink of minus infinity is as good as none.
    const Results<T> without = run(plan, inputs, {});
    bool same = true;
    for (std::int64_t i = 0; i < 30; ++i) {
      same = same && equal_bits(without.attention.lse(0, 1, i, 0), results.attention.lse(0, 1, i, 0));
      for (std::int64_t f = 0; f < 4; ++f) {
        same = same && without.attention.output(0, 1, i, f) == results.attention.output(0, 1, i, f);
        same = same && without.gradients.query(0, 1, i, f) == results.gradients.query(0, 1, i, f);
      }
    }
    CHECK(same);
  });
}

TEST_CASE("report 8: parts of the keys with ALiBi and softcap merge by their lse, the sink in one of them") {
  const std::int64_t n = 60, d = 5;
  const Problem problem{.head_dim = d, .query_heads = 2};
  const Pattern near = window(n, 7, 0);
  const Plan whole = make_plan(causal(n), problem), first = make_plan(near, problem);
  const Plan second = make_plan(causal(n) - near, problem);
  const std::vector<double> slopes = alibi_slopes(2), sinks = {0.5, -1};
  const Inputs<double> inputs = normal_inputs<double>(whole, 8);
  const ScoreTerms<double> with_sink{.softcap = 1.5, .alibi_slopes = slopes, .sinks = sinks};
  const ScoreTerms<double> without{.softcap = 1.5, .alibi_slopes = slopes};
  const TensorView<const double> query = inputs.query, key = inputs.key, value = inputs.value;
  const Attention<double> all = forward(whole, query, key, value, with_sink);
  const Attention<double> a = forward(first, query, key, value, with_sink);
  const Attention<double> b = forward(second, query, key, value, without);
  Attention<double> merged{Tensor<double>(output_shape(whole)), Tensor<double>(lse_shape(whole))};
  for_each_index(output_shape(whole), [&](auto batch, auto h, auto t, auto f) {
    const double lse_a = a.lse(batch, h, t, 0), lse_b = b.lse(batch, h, t, 0);
    const double lse = lse_a + std::log1p(std::exp(lse_b - lse_a));
    merged.lse(batch, h, t, 0) = lse;
    merged.output(batch, h, t, f) =
        std::exp(lse_a - lse) * a.output(batch, h, t, f) + std::exp(lse_b - lse) * b.output(batch, h, t, f);
  });
  CHECK(max_relative_error(merged.output, all.output) < 1e-13);
  CHECK(max_relative_error(merged.lse, all.lse) < 1e-13);
}

TEST_CASE_TEMPLATE("report 15: grouped query heads keep slopes and sinks of their own", T, float, double) {
  const std::int64_t n = 50, heads = 6, d = 6;
  const std::vector<double> slopes = {0.5, 0.25, 0, 1, 0.125, 2};
  const std::vector<T> sinks = {T{0}, T{1}, T{-1}, T{2}, T(0.5), -kInfinity<T>};
  const ScoreTerms<T> terms{.alibi_slopes = slopes, .sinks = sinks};
  for_each_plan<T>(causal(n), {.head_dim = d, .query_heads = heads, .key_value_heads = 2}, [&](const Plan& plan) {
    const Inputs<T> inputs = normal_inputs<T>(plan, 15);
    const Results<T> results = run(plan, inputs, terms);
    check_reference(plan, inputs, terms, results);
  });
}

TEST_CASE_TEMPLATE("report 16: what masked tokens hold does not leak through softcap, ALiBi or a bias", T, float,
                   double) {
  // Keys 11 and 40 are no row's. Softcap would make a number of their infinities.
  const std::int64_t n = 90;
  const Pattern pattern =
      from_predicate(n, n, [](auto i, auto j) { return j <= i && j != 11 && j != 40 && (i + j) % 7 != 0; });
  const std::vector<T> bias = whole_bias<T>(n, n, [](std::int64_t i, std::int64_t j) {
    return j == 11 || j == 40 ? kNan<double> : 0.25 * static_cast<double>((i * j) % 3);
  });
  const std::vector<double> slopes = {0.25};
  const std::vector<T> sinks = {T{1}};
  const Pattern structure = from_csr(full(n).to_csr());
  for_each_plan<T>(pattern, {.head_dim = 5}, [&](const Plan& plan) {
    const ScoreTerms<T> terms{.softcap = 2, .bias = bias_on(structure, bias), .alibi_slopes = slopes, .sinks = sinks};
    const Inputs<T> clean = normal_inputs<T>(plan, 16), poisoned = normal_inputs<T>(plan, 16);
    for (std::int64_t f = 0; f < 5; ++f) {
      poisoned.key(0, 0, 11, f) = f % 2 == 0 ? kInfinity<T> : kNan<T>;
      poisoned.key(0, 0, 40, f) = -kInfinity<T>;
      poisoned.value(0, 0, 11, f) = kNan<T>;
      poisoned.value(0, 0, 40, f) = kInfinity<T>;
    }
    const Results<T> expected = run(plan, clean, terms), results = run(plan, poisoned, terms);
    check_reference(plan, clean, terms, expected);
    check_reference(plan, poisoned, terms, results);
    CHECK(max_relative_error(results.gradients.bias, expected.gradients.bias) < kTolerance<T>);
    CHECK(max_relative_error(results.gradients.sinks, expected.gradients.sinks) < kTolerance<T>);
  });
}

TEST_CASE_TEMPLATE("report 16: a NaN query touches its own row alone, also where softcap and a sink hide it", T, float,
                   double) {
  const std::int64_t n = 70;
  const std::vector<T> sinks = {T{1}};
  for_each_plan<T>(window(n, 20, 0), {.head_dim = 5}, [&](const Plan& plan) {
    for (const T bad : {kNan<T>, kInfinity<T>}) {
      const ScoreTerms<T> terms{.softcap = 2, .sinks = sinks};
      const Inputs<T> clean = normal_inputs<T>(plan, 17), poisoned = normal_inputs<T>(plan, 17);
      poisoned.query(0, 0, 33, 2) = bad;
      const Results<T> expected = run(plan, clean, terms), results = run(plan, poisoned, terms);
      // Products with what is not finite are taken pair by pair, so last bits differ.
      const auto close = [](T x, T y) { return std::abs(x - y) < T(100 * kTolerance<T>); };
      bool same = true;
      for_each_index(output_shape(plan), [&](auto b, auto h, auto t, auto f) {
        if (t == 33) return;
        same = same && close(expected.attention.output(b, h, t, f), results.attention.output(b, h, t, f));
        same = same && close(expected.gradients.query(b, h, t, f), results.gradients.query(b, h, t, f));
        if (t >= 13 && t <= 33) return;  // the keys of row 33
        same = same && close(expected.gradients.key(b, h, t, f), results.gradients.key(b, h, t, f));
        same = same && close(expected.gradients.value(b, h, t, f), results.gradients.value(b, h, t, f));
      });
      CHECK(same);
      if (std::isnan(bad)) CHECK(std::isnan(results.attention.lse(0, 0, 33, 0)));
    }
  });
}

TEST_CASE_TEMPLATE("report 20: the gradient of a shared bias is the sum of those of its copies", T, float, double) {
  const std::int64_t n = 40, heads = 3, batch = 2;
  const Pattern structure = from_csr(random_pairs(n, n, 9, 1).to_csr());
  const std::int64_t count = bias_values(structure);
  Random random(20);
  const LaidOut<T> shared = normal_tensor<T>({1, 1, 1, count}, random);
  LaidOut<T> copies({batch, heads, 1, count}, Layout::contiguous);
  for_each_index(copies.view().shape(),
                 [&](auto b, auto h, auto t, auto f) { copies(b, h, t, f) = shared(0, 0, t, f); });
  for_each_plan<T>(causal(n), {.head_dim = 4, .query_heads = heads, .batch = batch}, [&](const Plan& plan) {
    const Inputs<T> inputs = normal_inputs<T>(plan, 21);
    const Results<T> one = run(plan, inputs, ScoreTerms<T>{.bias = {structure, shared}});
    const Results<T> each = run(plan, inputs, ScoreTerms<T>{.bias = {structure, copies}});
    CHECK(same_bits(one.attention, each.attention));
    Tensor<double> sum({1, 1, 1, count});
    for (double& x : sum.values()) x = 0;
    for_each_index(each.gradients.bias.shape(), [&](auto b, auto h, auto t, auto f) {
      sum(0, 0, t, f) += static_cast<double>(each.gradients.bias(b, h, t, f));
    });
    CHECK(max_relative_error(one.gradients.bias, sum) < kTolerance<T>);
  });
}

TEST_CASE_TEMPLATE("one query after its keys scores as the last row of the whole: ALiBi is aligned at the end", T,
                   float, double) {
  const std::int64_t n = 80, d = 6;
  const Problem problem{.head_dim = d, .query_heads = 2};
  const std::vector<double> slopes = alibi_slopes(2);
  const ScoreTerms<T> terms{.softcap = 3, .alibi_slopes = slopes};
  const Plan whole = make_plan(causal(n), problem), last = make_plan(causal(1, n), problem);
  const Inputs<T> inputs = normal_inputs<T>(whole, 22);
  Inputs<T> decode = normal_inputs<T>(last, 22);
  for_each_index(query_shape(last),
                 [&](auto b, auto h, auto, auto f) { decode.query(b, h, 0, f) = inputs.query(b, h, n - 1, f); });
  const TensorView<const T> key = inputs.key, value = inputs.value;
  const Attention<T> all = forward(whole, TensorView<const T>(inputs.query), key, value, terms);
  const Attention<T> one = forward(last, TensorView<const T>(decode.query), key, value, terms);
  Tensor<T> output(output_shape(last)), lse(lse_shape(last));
  for_each_index(output.shape(),
                 [&](auto b, auto h, auto t, auto f) { output(b, h, t, f) = all.output(b, h, n - 1, f); });
  for_each_index(lse.shape(), [&](auto b, auto h, auto t, auto f) { lse(b, h, t, f) = all.lse(b, h, n - 1, f); });
  CHECK(max_relative_error(one.output, output) < kTolerance<T>);
  CHECK(max_relative_error(one.lse, lse) < kTolerance<T>);
}
