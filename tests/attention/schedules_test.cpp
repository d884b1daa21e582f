#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/plan.hpp"
#include "support/attention_inputs.hpp"
#include "support/sample_patterns.hpp"
#include "support/schedules.hpp"
#include "support/threads.hpp"

// Every schedule that is feasible, at fast memories from 64 words up, computes the same attention.

using namespace cobble;
using namespace cobble::test;

namespace {

struct Dims {
  std::int64_t d, d_v;
};
/// The last one is for materialize alone when fast memory is small.
constexpr std::array kDims{Dims{9, 13}, Dims{1, 1}, Dims{16, 5}, Dims{40, 48}};

struct Heads {
  std::int64_t batch, query, key_value;
};
constexpr std::array kHeads{Heads{1, 2, 1}, Heads{1, 1, 1}, Heads{2, 2, 1}};

struct Tokens {
  std::int64_t n_q, n_k;
};
constexpr std::array kSizes{Tokens{23, 23}, Tokens{12, 50}, Tokens{40, 11}};

/// Factors of different lengths: counting through them meets any two of their levels.
constexpr std::array<InputLayouts, 5> kInputs{{{},
                                               {.query = Layout::feature_stride,
                                                .key = Layout::feature_stride,
                                                .value = Layout::feature_stride,
                                                .grad_output = Layout::feature_stride,
                                                .grad_lse = Layout::feature_stride},
                                               {.query = Layout::tokens_first,
                                                .key = Layout::reversed,
                                                .value = Layout::tokens_first,
                                                .grad_output = Layout::reversed,
                                                .grad_lse = Layout::reversed},
                                               {.query = Layout::reversed,
                                                .key = Layout::broadcast_heads,
                                                .value = Layout::feature_stride,
                                                .grad_output = Layout::broadcast_all,
                                                .grad_lse = Layout::broadcast_all},
                                               {.key = Layout::tokens_first, .value = Layout::reversed}}};

/// Forward and backward into memory of any layout.
template <class T>
struct OutputTensors {
  LaidOut<T> output, lse, query, key, value;

  OutputTensors(const Plan& plan, Layout layout)
      : output(output_shape(plan), layout),
        lse(lse_shape(plan), layout),
        query(query_shape(plan), layout),
        key(key_shape(plan), layout),
        value(value_shape(plan), layout) {}
};

template <class T>
void run_into(const Plan& plan, const Inputs<T>& inputs, const OutputTensors<T>& to, Workspace& workspace) {
  forward(plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key), TensorView<const T>(inputs.value),
          AttentionView<T>{to.output, to.lse}, workspace);
  backward(plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key), TensorView<const T>(inputs.value),
           AttentionView<const T>{to.output.view(), to.lse.view()}, TensorView<const T>(inputs.grad_output),
           GradientsView<T>{to.query, to.key, to.value}, workspace, BackwardOptions<T>{inputs.grad_lse});
}

template <class T>
void check_plan(const Plan& plan, const InputLayouts& inputs_layout, Layout outputs_layout, std::uint64_t seed,
                Workspace& workspace) {
  Random random(seed);
  const Inputs<T> inputs = normal_inputs<T>(plan, random, inputs_layout);
  const OutputTensors<T> outputs(plan, outputs_layout);
  run_into(plan, inputs, outputs, workspace);
  check_close(AttentionView<T>{outputs.output, outputs.lse},
              GradientsView<T>{outputs.query, outputs.key, outputs.value}, reference_of(plan, inputs));
}

/// Every schedule at every fast memory; visit(plan) for the feasible ones.
template <class Visit>
void over_schedules(const PatternGrid& patterns, const Problem& problem, Visit&& visit) {
  for (const std::int64_t words : kFastMemories) {
    for (const PlanOptions& options : all_schedules(words)) {
      INFO(describe(options));
      const auto plan = feasible_plan(patterns, problem, options);
      if (options.schedule == Schedule::materialize) REQUIRE(plan.has_value());
      if (plan) visit(*plan);
    }
  }
}

/// How many rows have no pair, and whether each row and column has one.
struct Coverage {
  std::vector<bool> rows, columns;

  explicit Coverage(const SamplePattern& sample)
      : rows(static_cast<std::size_t>(sample.pattern.rows())),
        columns(static_cast<std::size_t>(sample.pattern.columns())) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < columns.size(); ++j) {
        if (!sample.contains(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j))) continue;
        rows[i] = true;
        columns[j] = true;
      }
    }
  }
};

template <class T>
bool row_equals(const Tensor<T>& tensor, std::int64_t token, T value) {
  bool equal = true;
  for_each_index(tensor.shape(),
                 [&](auto b, auto h, auto t, auto f) { equal = equal && (t != token || tensor(b, h, t, f) == value); });
  return equal;
}

}  // namespace

TEST_CASE("every feasible schedule equals the reference: patterns x fast memory x types x heads x strides x features") {
  std::size_t turn = 0;
  std::size_t recompute = 0;
  Workspace workspace;
  for (const Tokens tokens : kSizes) {
    const std::int64_t n_q = tokens.n_q, n_k = tokens.n_k;
    for (const SamplePattern& sample : named_sample_patterns(n_q, n_k)) {
      ++turn;  // so that a pattern's first schedule meets other levels than the last pattern's
      for (const std::int64_t words : kFastMemories) {
        for (const PlanOptions& options : all_schedules(words)) {
          const Dims dims = kDims[turn / 2 % kDims.size()];
          const Heads heads = kHeads[turn % kHeads.size()];
          const InputLayouts& layouts = kInputs[turn % kInputs.size()];
          const Layout outputs = kOutputLayouts[turn / 3 % kOutputLayouts.size()];
          INFO(sample.name, ", ", n_q, " x ", n_k, ", ", describe(options), ", d ", dims.d, ", d_v ", dims.d_v,
               ", heads ", heads.query, " / ", heads.key_value, ", turn ", turn);
          const auto plan = feasible_plan(sample.pattern,
                                          {.head_dim = dims.d,
                                           .value_dim = dims.d_v,
                                           .query_heads = heads.query,
                                           .key_value_heads = heads.key_value,
                                           .batch = heads.batch},
                                          options);
          if (options.schedule == Schedule::materialize) REQUIRE(plan.has_value());
          if (plan && options.schedule == Schedule::recompute) ++recompute;
          if (plan && turn % 2 == 0) check_plan<float>(*plan, layouts, outputs, turn, workspace);
          if (plan && turn % 2 == 1) check_plan<double>(*plan, layouts, outputs, turn, workspace);
          ++turn;
        }
      }
    }
  }
  CHECK(recompute > 500);
}

TEST_CASE_TEMPLATE("every schedule takes strided inputs and outputs when features pass in chunks", T, float, double) {
  Workspace workspace;
  for (const Pattern& pattern : {full(70), window(70, 9, 4), random_pairs(70, 70, 3, 2)}) {
    for (const PlanOptions& options : all_schedules(64)) {
      const auto plan = feasible_plan(pattern, {.head_dim = 70, .value_dim = 90}, options);
      CHECK(plan.has_value() == (options.schedule == Schedule::materialize));
      if (!plan) continue;
      INFO(pattern.describe(), ", ", describe(options));
      for (const Layout layout : {Layout::feature_stride, Layout::reversed}) {
        check_plan<T>(*plan, {layout, layout, layout, layout, layout}, layout, 3, workspace);
      }
    }
  }
}

TEST_CASE_TEMPLATE("each batch entry and head has its own pattern, in every schedule", T, float, double) {
  const std::vector<Pattern> kinds{causal(40), window(40, 5, 5), full(40) - full(40),   random_pairs(40, 40, 3, 1),
                                   full(40),   causal(40),       leading_tokens(40, 1), window(40, 0, 0)};
  const Problem problem{.head_dim = 6, .value_dim = 4, .query_heads = 4, .key_value_heads = 2, .batch = 2};
  Workspace workspace;
  for (const PatternGrid& grid : {PatternGrid(kinds, 2, 4), PatternGrid({kinds[0], kinds[1], kinds[2], kinds[3]}, 1, 4),
                                  PatternGrid({kinds[3], kinds[4]}, 2, 1)}) {
    over_schedules(grid, problem, [&](const Plan& plan) { check_plan<T>(plan, {}, Layout::contiguous, 4, workspace); });
  }
}

TEST_CASE_TEMPLATE("every schedule has the same bits on 1, 2, 3 and 7 threads", T, float, double) {
  const Problem problem{.head_dim = 7, .value_dim = 12, .query_heads = 2, .key_value_heads = 1};
  for (const Pattern& pattern : {full(45, 35), random_pairs(45, 35, 4, 8), window(45, 35, 12, 3)}) {
    INFO(pattern.describe());
    over_schedules(pattern, problem, [](const Plan& plan) {
      const Inputs<T> inputs = normal_inputs<T>(plan, 5);
      const Results<T> expected = on_threads(1, [&] { return run(plan, inputs); });
      for (const int threads : {2, 3, 7}) {
        CAPTURE(threads);
        CHECK(same_bits(on_threads(threads, [&] { return run(plan, inputs); }), expected));
      }
    });
  }
}

TEST_CASE_TEMPLATE("what a used workspace holds changes no bit of any schedule, on several threads", T, float, double) {
  // Leave buffers of one plan's sizes behind for the next plan.
  const Plan other = make_plan(full(30), {.head_dim = 5}, {.schedule = Schedule::materialize});
  const Inputs<T> other_inputs = normal_inputs<T>(other, 6);
  const OutputTensors<T> other_outputs(other, Layout::contiguous);
  over_schedules(random_pairs(90, 90, 30, 2), {.head_dim = 5}, [&](const Plan& plan) {
    const Inputs<T> inputs = normal_inputs<T>(plan, 7);
    const Results<T> expected = run(plan, inputs);
    Workspace workspace;
    forward(other, TensorView<const T>(other_inputs.query), TensorView<const T>(other_inputs.key),
            TensorView<const T>(other_inputs.value), AttentionView<T>{other_outputs.output, other_outputs.lse},
            workspace);
    OutputTensors<T> outputs(plan, Layout::contiguous);
    on_threads(4, [&] { run_into(plan, inputs, outputs, workspace); });
    CHECK(same_bits(outputs.output.view(), expected.attention.output.view()));
    CHECK(same_bits(outputs.query.view(), expected.gradients.query.view()));
    CHECK(same_bits(outputs.key.view(), expected.gradients.key.view()));
    CHECK(same_bits(outputs.value.view(), expected.gradients.value.view()));
  });
}

TEST_CASE_TEMPLATE("NaN and infinity in tokens that a row does not attend to never reach it, in any schedule", T, float,
                   double) {
  const Problem problem{.head_dim = 5, .value_dim = 3, .query_heads = 2, .key_value_heads = 1};
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (const Tokens tokens : {Tokens{21, 21}, Tokens{13, 35}}) {
    const std::int64_t n_q = tokens.n_q, n_k = tokens.n_k;
    for (const SamplePattern& sample : named_sample_patterns(n_q, n_k)) {
      CAPTURE(sample.name);
      // A third of the keys and a third of the rows are poisoned. A row is clean when neither it nor any key of its is;
      // a key when only clean rows attend to it.
      std::vector<bool> clean_rows, clean_keys(static_cast<std::size_t>(n_k), true);
      for (std::int64_t i = 0; i < n_q; ++i) {
        bool clean = i % 3 != 1;
        for (std::int64_t j = 0; j < n_k; j += 3) clean = clean && !sample.contains(i, j);
        clean_rows.push_back(clean);
        for (std::int64_t j = 0; j < n_k; ++j) {
          if (!clean && sample.contains(i, j)) clean_keys[static_cast<std::size_t>(j)] = false;
        }
      }
      const auto poison = [&](const LaidOut<T>& tensor, std::int64_t first) {
        for_each_index(tensor.view().shape(), [&](auto b, auto h, auto t, auto f) {
          if (t % 3 == first) tensor(b, h, t, f) = t % 2 == 0 ? kNan : kInfinity;
        });
      };
      over_schedules(sample.pattern, problem, [&](const Plan& plan) {
        const Inputs<T> inputs = normal_inputs<T>(plan, 8);
        const ReferenceResult expected = reference_of(plan, inputs);
        poison(inputs.key, 0);
        poison(inputs.value, 0);
        poison(inputs.query, 1);
        poison(inputs.grad_output, 1);
        const Results<T> results = run(plan, inputs);
        bool same = true;
        const auto compare = [&](const Tensor<T>& found, const Tensor<double>& reference,
                                 const std::vector<bool>& clean) {
          for_each_index(found.shape(), [&](auto b, auto h, auto t, auto f) {
            if (!clean[static_cast<std::size_t>(t)]) return;
            const double x = reference(b, h, t, f), y = static_cast<double>(found(b, h, t, f));
            same = same && (x == y || std::abs(x - y) <= 10 * kTolerance<T>);
          });
        };
        compare(results.attention.output, expected.output, clean_rows);
        compare(results.attention.lse, expected.lse, clean_rows);
        compare(results.gradients.query, expected.grad_query, clean_rows);
        compare(results.gradients.key, expected.grad_key, clean_keys);
        compare(results.gradients.value, expected.grad_value, clean_keys);
        CHECK(same);
      });
    }
  }
}

TEST_CASE_TEMPLATE("rows and keys without a pair are zero exactly, in every schedule", T, float, double) {
  int empty_rows = 0;
  for (const SamplePattern& sample : named_sample_patterns(26, 26)) {
    const Coverage coverage(sample);
    CAPTURE(sample.name);
    over_schedules(sample.pattern, {.head_dim = 4, .value_dim = 6}, [&](const Plan& plan) {
      const Results<T> results = run(plan, normal_inputs<T>(plan, 9));
      for (std::int64_t i = 0; i < 26; ++i) {
        if (!coverage.rows[static_cast<std::size_t>(i)]) {
          ++empty_rows;
          CHECK(row_equals(results.attention.output, i, T{0}));
          CHECK(row_equals(results.attention.lse, i, -std::numeric_limits<T>::infinity()));
          CHECK(row_equals(results.gradients.query, i, T{0}));
        }
        if (!coverage.columns[static_cast<std::size_t>(i)]) {
          CHECK(row_equals(results.gradients.key, i, T{0}));
          CHECK(row_equals(results.gradients.value, i, T{0}));
        }
      }
    });
  }
  CHECK(empty_rows > 100);
}

TEST_CASE_TEMPLATE("problems without queries or keys run in every schedule", T, float, double) {
  for (const Tokens tokens : {Tokens{0, 0}, Tokens{0, 7}, Tokens{7, 0}}) {
    CAPTURE(tokens.n_q);
    CAPTURE(tokens.n_k);
    over_schedules(full(tokens.n_q, tokens.n_k), {.head_dim = 3, .query_heads = 2, .key_value_heads = 1},
                   [&](const Plan& plan) {
                     const Results<T> results = run(plan, normal_inputs<T>(plan, 10));
                     CHECK(all_equal(results.attention.output.view(), T{0}));
                     CHECK(all_equal(results.attention.lse.view(), -std::numeric_limits<T>::infinity()));
                     CHECK(all_equal(results.gradients.query.view(), T{0}));
                     CHECK(all_equal(results.gradients.key.view(), T{0}));
                     CHECK(all_equal(results.gradients.value.view(), T{0}));
                   });
  }
}

TEST_CASE_TEMPLATE("scores beyond the range of exp do no harm in any schedule", T, float, double) {
  const Pattern pattern = window(24, 6, 6);
  over_schedules(pattern, {.head_dim = 3}, [&](const Plan& plan) {
    const Inputs<T> inputs = normal_inputs<T>(plan, 11);
    for_each_index(query_shape(plan),
                   [&](auto b, auto h, auto t, auto f) { inputs.query(b, h, t, f) *= t % 2 == 0 ? T(1e4) : T(-1e4); });
    const Results<T> results = run(plan, inputs);
    bool finite = true;
    for (const T x : results.attention.output.values()) finite = finite && std::isfinite(x);
    for (const T x : results.attention.lse.values()) finite = finite && std::isfinite(x);
    for (const T x : results.gradients.key.values()) finite = finite && std::isfinite(x);
    CHECK(finite);
    CHECK(max_relative_error(results.attention.lse, reference_of(plan, inputs).lse) < kTolerance<T>);
  });
}
