#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/plan.hpp"
#include "support/attention_inputs.hpp"
#include "support/sample_patterns.hpp"

// Tokens outside a row's pairs never touch that row. Report 16 of users of other libraries: NaN or infinity in
// masked-out keys or values leaks in (pytorch 101967), skipped tiles read uninitialised memory (openvino 33814).

using namespace cobble;
using namespace cobble::test;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
void poison_token(const LaidOut<T>& tensor, std::int64_t token, double poison) {
  const TensorShape& shape = tensor.view().shape();
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    for (std::int64_t f = 0; f < shape.features; ++f) tensor(0, head, token, f) = static_cast<T>(poison);
  }
}

/// Equal but for rounding: a tile that holds a NaN is computed pair by pair, so its sums may run in another order.
template <class T>
bool same_token(const Tensor<T>& a, const Tensor<T>& b, std::int64_t token) {
  constexpr double kRounding = std::is_same_v<T, float> ? 1e-5 : 1e-13;
  bool same = true;
  for (std::int64_t head = 0; head < a.shape().heads; ++head) {
    for (std::int64_t f = 0; f < a.shape().features; ++f) {
      const auto x = static_cast<double>(a(0, head, token, f));
      const auto y = static_cast<double>(b(0, head, token, f));
      same = same && (x == y || std::abs(x - y) <= kRounding * std::max(1.0, std::abs(y)));
    }
  }
  return same;
}

/// The tokens whose results may differ from the clean run.
struct Touched {
  std::vector<bool> outputs;
  std::vector<bool> grad_queries;
  std::vector<bool> grad_keys;
};

/// Keys that share a row with a touched one are touched: ds of the row depends on all of its scores.
Touched touched_by_rows(const std::vector<bool>& rows, bool outputs, std::int64_t n_k, const PairPredicate& contains) {
  Touched touched{outputs ? rows : std::vector<bool>(rows.size(), false), rows,
                  std::vector<bool>(static_cast<std::size_t>(n_k), false)};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::int64_t j = 0; rows[i] && j < n_k; ++j) {
      if (contains(static_cast<std::int64_t>(i), j)) touched.grad_keys[static_cast<std::size_t>(j)] = true;
    }
  }
  return touched;
}

template <class T>
void check_untouched(const Results<T>& poisoned, const Results<T>& clean, const Touched& touched) {
  bool same = true;
  for (std::size_t i = 0; i < touched.outputs.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    if (!touched.outputs[i]) {
      same = same && same_token(poisoned.attention.output, clean.attention.output, row) &&
             same_token(poisoned.attention.lse, clean.attention.lse, row);
    }
    if (!touched.grad_queries[i]) same = same && same_token(poisoned.gradients.query, clean.gradients.query, row);
  }
  for (std::size_t j = 0; j < touched.grad_keys.size(); ++j) {
    if (touched.grad_keys[j]) continue;
    const auto key = static_cast<std::int64_t>(j);
    same = same && same_token(poisoned.gradients.key, clean.gradients.key, key) &&
           same_token(poisoned.gradients.value, clean.gradients.value, key);
  }
  CHECK(same);
}

enum class Place { query, key, value, grad_output };

/// Puts `poison` into one token of one tensor, every token in turn, and compares with a clean run.
template <class T>
void poison_each_token(const SamplePattern& sample, const Plan& plan, Place place, double poison) {
  const std::int64_t n_q = sample.pattern.rows(), n_k = sample.pattern.columns();
  const Results<T> clean = run(plan, normal_inputs<T>(plan, 5));
  const bool of_rows = place == Place::query || place == Place::grad_output;
  for (std::int64_t token = 0; token < (of_rows ? n_q : n_k); ++token) {
    CAPTURE(token);
    const Inputs<T> inputs = normal_inputs<T>(plan, 5);
    poison_token(place == Place::query   ? inputs.query
                 : place == Place::key   ? inputs.key
                 : place == Place::value ? inputs.value
                                         : inputs.grad_output,
                 token, poison);
    std::vector<bool> rows(static_cast<std::size_t>(n_q));
    for (std::int64_t i = 0; i < n_q; ++i) {
      const bool attends = of_rows ? true : sample.contains(i, token);
      bool empty = true;
      for (std::int64_t j = 0; j < n_k; ++j) empty = empty && !sample.contains(i, j);
      rows[static_cast<std::size_t>(i)] = attends && !empty && (!of_rows || i == token);
    }
    check_untouched(run(plan, inputs), clean, touched_by_rows(rows, place != Place::grad_output, n_k, sample.contains));
  }
}

template <class T>
void poison_all_patterns(std::int64_t n_q, std::int64_t n_k, const PlanOptions& options, std::int64_t d) {
  constexpr double kPoisons[] = {kNan, kInfinity, -kInfinity};
  int turn = 0;
  for (const SamplePattern& sample : named_sample_patterns(n_q, n_k)) {
    CAPTURE(sample.name);
    const Plan plan = make_plan(sample.pattern, {.head_dim = d, .query_heads = 2, .key_value_heads = 1}, options);
    for (const Place place : {Place::query, Place::key, Place::value, Place::grad_output}) {
      const double poison = kPoisons[turn++ % 3];
      CAPTURE(static_cast<int>(place));
      CAPTURE(poison);
      poison_each_token<T>(sample, plan, place, poison);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("report 16: NaN or infinity in a token touches only rows that attend to it, in tiles of 8 x 8", T,
                   float, double) {
  poison_all_patterns<T>(21, 21, {.row_panel = 8, .column_panel = 8}, 3);
}

TEST_CASE_TEMPLATE("report 16: NaN or infinity in a token touches only rows that attend to it, in one tile", T, float,
                   double) {
  poison_all_patterns<T>(13, 22, {}, 16);
}

TEST_CASE_TEMPLATE("report 16: tokens that take no part may hold anything, in tiles as the library cuts them", T, float,
                   double) {
  constexpr double kPoisons[] = {kNan, kInfinity, -kInfinity};
  for (const SamplePattern& sample : named_sample_patterns(140, 140)) {
    CAPTURE(sample.name);
    const Plan plan = make_plan(sample.pattern, {.head_dim = 5, .value_dim = 9});
    const Results<T> clean = run(plan, normal_inputs<T>(plan, 6));
    const Inputs<T> inputs = normal_inputs<T>(plan, 6);
    std::vector<bool> row_attends(140), key_attended(140);
    for (std::int64_t i = 0; i < 140; ++i) {
      for (std::int64_t j = 0; j < 140; ++j) {
        if (!sample.contains(i, j)) continue;
        row_attends[static_cast<std::size_t>(i)] = key_attended[static_cast<std::size_t>(j)] = true;
      }
    }
    for (std::int64_t token = 0; token < 140; ++token) {
      const double poison = kPoisons[token % 3];
      if (!row_attends[static_cast<std::size_t>(token)]) {
        poison_token(inputs.query, token, poison);
        poison_token(inputs.grad_output, token, poison);
        poison_token(inputs.grad_lse, token, poison);
      }
      if (!key_attended[static_cast<std::size_t>(token)]) {
        poison_token(inputs.key, token, poison);
        poison_token(inputs.value, token, poison);
      }
    }
    check_untouched(run(plan, inputs), clean, touched_by_rows(std::vector<bool>(140), true, 140, sample.contains));
  }
}

TEST_CASE_TEMPLATE("report 16: values of 1e30 outside the pattern change nothing", T, float, double) {
  // Finite, but their products overflow float.
  for (const SamplePattern& sample : named_sample_patterns(40, 40)) {
    CAPTURE(sample.name);
    const Plan plan = make_plan(sample.pattern, {.head_dim = 4}, {.row_panel = 16, .column_panel = 16});
    for (const Place place : {Place::key, Place::value}) {
      const Results<T> clean = run(plan, normal_inputs<T>(plan, 7));
      const Inputs<T> inputs = normal_inputs<T>(plan, 7);
      poison_token(place == Place::key ? inputs.key : inputs.value, 17, 1e30);
      std::vector<bool> rows(40);
      for (std::int64_t i = 0; i < 40; ++i) rows[static_cast<std::size_t>(i)] = sample.contains(i, 17);
      check_untouched(run(plan, inputs), clean, touched_by_rows(rows, true, 40, sample.contains));
    }
  }
}

TEST_CASE_TEMPLATE("a NaN inside the pattern is not swallowed", T, float, double) {
  for (const Schedule schedule : {Schedule::recompute, Schedule::materialize}) {
    CAPTURE(static_cast<int>(schedule));
    const Plan plan = make_plan(causal(70), {.head_dim = 8}, {.schedule = schedule});
    for (const Place place : {Place::query, Place::key, Place::value, Place::grad_output}) {
      CAPTURE(static_cast<int>(place));
      const Inputs<T> inputs = normal_inputs<T>(plan, 8);
      poison_token(place == Place::query   ? inputs.query
                   : place == Place::key   ? inputs.key
                   : place == Place::value ? inputs.value
                                           : inputs.grad_output,
                   30, kNan);
      const bool one_row = place == Place::query || place == Place::grad_output;
      const Results<T> results = run(plan, inputs);
      for (std::int64_t row = 0; row < 70; ++row) {
        CAPTURE(row);
        const bool reached = one_row ? row == 30 : row >= 30;
        CHECK(std::isnan(results.attention.output(0, 0, row, 0)) == (reached && place != Place::grad_output));
        CHECK(std::isnan(results.gradients.query(0, 0, row, 0)) == reached);
        // dK of all keys of a row that is reached, dV of those whose P or dO is.
        CHECK(std::isnan(results.gradients.key(0, 0, row, 0)) == (one_row ? row <= 30 : true));
        CHECK(std::isnan(results.gradients.value(0, 0, row, 0)) == (place == Place::value ? false
                                                                    : one_row             ? row <= 30
                                                                                          : true));
      }
    }
  }
}
