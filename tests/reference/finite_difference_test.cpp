#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "cobble/pattern.hpp"
#include "cobble/reference.hpp"
#include "support/tensors.hpp"

// The reference's gradients against central differences of its own forward.

using namespace cobble;
using namespace cobble::test;

namespace {

struct Case {
  PatternGrid patterns;
  std::int64_t batch = 1;
  std::int64_t query_heads = 1;
  std::int64_t key_heads = 1;
  std::int64_t head_dim = 3;
  std::int64_t value_dim = 3;
  std::optional<double> scale = {};
  double softcap = 0;
  std::optional<Pattern> bias = {};  ///< the structure of a bias
  std::int64_t bias_batch = 1;
  std::int64_t bias_heads = 1;
  bool alibi = false;
  bool sinks = false;
};

/// Blocks of 2 x 2 over 7 x 3: those of the last row and of the last column are ragged.
BsrPattern ragged_blocks() {
  BsrPattern blocks;
  blocks.rows = 7;
  blocks.columns = 3;
  blocks.block_rows = blocks.block_columns = 2;
  blocks.block_row_offsets = {0, 1, 1, 3, 5};
  blocks.block_column_indices = {0, 0, 1, 0, 1};
  return blocks;
}

/// L = <grad_output, output> + <grad_lse, lse>, where a row with lse -infinity adds nothing.
double loss(const ReferenceProblem<double>& problem) {
  ReferenceProblem<double> forward_only = problem;
  forward_only.grad_output = forward_only.grad_lse = {};
  const ReferenceResult result = reference_attention(forward_only);
  double sum = 0;
  for_each_index(result.output.shape(), [&](auto b, auto h, auto t, auto f) {
    sum += problem.grad_output(b, h, t, f) * result.output(b, h, t, f);
  });
  for_each_index(result.lse.shape(), [&](auto b, auto h, auto t, auto f) {
    if (std::isfinite(result.lse(b, h, t, f))) sum += problem.grad_lse(b, h, t, f) * result.lse(b, h, t, f);
  });
  return sum;
}

void check_gradient(const ReferenceProblem<double>& problem, const TensorView<double>& input,
                    const Tensor<double>& gradient, const char* name) {
  constexpr double kStep = 1e-5;  // truncation about step^2, rounding about 1e-15 / step
  CAPTURE(name);
  REQUIRE(gradient.shape() == input.shape());
  double largest_difference = 0;
  for_each_index(input.shape(), [&](auto b, auto h, auto t, auto f) {
    const double kept = input(b, h, t, f);
    input(b, h, t, f) = kept + kStep;
    const double above = loss(problem);
    input(b, h, t, f) = kept - kStep;
    const double below = loss(problem);
    input(b, h, t, f) = kept;
    largest_difference = std::max(largest_difference, std::abs((above - below) / (2 * kStep) - gradient(b, h, t, f)));
  });
  CHECK(largest_difference < 1e-8);
}

void check_all_gradients(const Case& c, std::uint64_t seed) {
  CAPTURE(seed);
  CAPTURE(c.patterns.patterns().front().describe());
  Random random(seed);
  const std::int64_t n_q = c.patterns.rows(), n_k = c.patterns.columns();
  const auto query = normal_tensor<double>({c.batch, c.query_heads, n_q, c.head_dim}, random);
  const auto key = normal_tensor<double>({c.batch, c.key_heads, n_k, c.head_dim}, random);
  const auto value = normal_tensor<double>({c.batch, c.key_heads, n_k, c.value_dim}, random);
  const auto grad_output = normal_tensor<double>({c.batch, c.query_heads, n_q, c.value_dim}, random);
  const auto grad_lse = normal_tensor<double>({c.batch, c.query_heads, n_q, 1}, random);
  ReferenceProblem<double> problem{c.patterns, query, key, value, grad_output, grad_lse, c.scale};
  LaidOut<double> bias, sinks;
  std::vector<double> slopes;
  problem.terms.softcap = c.softcap;
  if (c.bias) {
    bias = normal_tensor<double>({c.bias_batch, c.bias_heads, 1, bias_values(*c.bias)}, random);
    problem.terms.bias = {*c.bias, bias};
  }
  if (c.alibi) {
    for (std::int64_t head = 0; head < c.query_heads; ++head) slopes.push_back(random.uniform());
    problem.terms.alibi_slopes = slopes;
  }
  if (c.sinks) {
    sinks = normal_tensor<double>({1, c.query_heads, 1, 1}, random);
    problem.terms.sinks = sinks.memory();
  }
  const ReferenceResult result = reference_attention(problem);
  check_gradient(problem, query, result.grad_query, "query");
  check_gradient(problem, key, result.grad_key, "key");
  check_gradient(problem, value, result.grad_value, "value");
  if (c.bias) check_gradient(problem, bias, result.grad_bias, "bias");
  if (c.sinks) check_gradient(problem, sinks, result.grad_sinks, "sinks");
}

}  // namespace

TEST_CASE("reference gradients equal finite differences for every kind of pattern") {
  std::uint64_t seed = 1;
  for (const Pattern& pattern :
       {full(5), causal(5), window(6, 1, 1), random_pairs(6, 6, 2, 3), causal(6) - window(6, 0, 0),
        documents(std::vector<std::int64_t>{2, 0, 3}), !causal(5)}) {
    check_all_gradients({pattern}, seed++);
  }
}

TEST_CASE("reference gradients equal finite differences for rectangular patterns") {
  check_all_gradients({full(2, 5)}, 11);
  check_all_gradients({causal(3, 7)}, 12);
  check_all_gradients({causal(7, 3)}, 13);  // the first four rows are empty
}

TEST_CASE("reference gradients equal finite differences for other sizes of values") {
  check_all_gradients({.patterns = causal(4), .head_dim = 1, .value_dim = 5}, 21);
  check_all_gradients({.patterns = causal(4), .head_dim = 5, .value_dim = 1}, 22);
}

TEST_CASE("reference gradients equal finite differences for grouped query heads and batches") {
  check_all_gradients({.patterns = causal(4), .batch = 2, .query_heads = 4, .key_heads = 2, .head_dim = 2}, 31);
  check_all_gradients({.patterns = causal(4), .query_heads = 3, .key_heads = 1, .head_dim = 2}, 32);
  check_all_gradients({.patterns = PatternGrid({causal(3), full(3), window(3, 0, 0), !full(3)}, 2, 2),
                       .batch = 2,
                       .query_heads = 2,
                       .key_heads = 1},
                      33);
}

TEST_CASE("reference gradients equal finite differences for a given scale") {
  check_all_gradients({.patterns = causal(4), .scale = 1.7}, 41);
  check_all_gradients({.patterns = causal(4), .scale = -0.3}, 42);
  check_all_gradients({.patterns = causal(4), .scale = 0.0}, 43);
}

TEST_CASE("reference gradients equal finite differences for each term of a score") {
  check_all_gradients({.patterns = causal(5), .softcap = 1.5}, 61);
  check_all_gradients({.patterns = causal(5), .bias = random_pairs(5, 5, 3, 1)}, 62);
  check_all_gradients({.patterns = causal(3, 5), .alibi = true}, 63);
  check_all_gradients({.patterns = causal(5), .sinks = true}, 64);
}

TEST_CASE("reference gradients equal finite differences for all terms together") {
  // Rows 0 to 3 of the rectangle have no pair, but a sink; the ragged blocks have padding, whose gradient is 0.
  check_all_gradients({.patterns = causal(7, 3),
                       .batch = 2,
                       .query_heads = 4,
                       .key_heads = 2,
                       .softcap = 2,
                       .bias = from_bsr(ragged_blocks()),
                       .bias_batch = 2,
                       .bias_heads = 4,
                       .alibi = true,
                       .sinks = true},
                      71);
}

TEST_CASE("the gradient of a bias that is shared sums over those that share it") {
  for (const std::int64_t batch : {1, 2}) {
    for (const std::int64_t heads : {1, 2}) {
      check_all_gradients({.patterns = PatternGrid({causal(4), window(4, 1, 1)}, 1, 2),
                           .batch = 2,
                           .query_heads = 2,
                           .softcap = 3,
                           .bias = random_pairs(4, 4, 2, 5),
                           .bias_batch = batch,
                           .bias_heads = heads,
                           .sinks = true},
                          80 + static_cast<std::uint64_t>(2 * batch + heads));
    }
  }
}

TEST_CASE("a sample of tokens equals these rows of the full result") {
  Random random(51);
  const std::int64_t n_q = 40, n_k = 30;
  const PatternGrid patterns({random_pairs(n_q, n_k, 4, 1), causal(n_q, n_k)}, 1, 2);
  const auto query = normal_tensor<double>({2, 2, n_q, 4}, random);
  const auto key = normal_tensor<double>({2, 1, n_k, 4}, random);
  const auto value = normal_tensor<double>({2, 1, n_k, 3}, random);
  const auto grad_output = normal_tensor<double>({2, 2, n_q, 3}, random);
  const ReferenceProblem<double> problem{patterns, query, key, value, grad_output, {}, {}};
  const ReferenceResult all = reference_attention(problem);

  const auto check_rows = [](const Tensor<double>& sampled, const Tensor<double>& whole,
                             const std::vector<std::int64_t>& tokens) {
    REQUIRE(sampled.shape().tokens == static_cast<std::int64_t>(tokens.size()));
    bool same = true;
    for_each_index(sampled.shape(), [&](auto b, auto h, auto t, auto f) {
      same = same && equal_bits(sampled(b, h, t, f), whole(b, h, tokens[static_cast<std::size_t>(t)], f));
    });
    CHECK(same);
  };
  for (const ReferenceSample& sample :
       {ReferenceSample{{0, 7, 39}, {0, 29}}, ReferenceSample{{}, {3, 4, 5}}, ReferenceSample{{12, 13}, {}}}) {
    const ReferenceResult some = reference_attention(problem, sample);
    check_rows(some.output, all.output, sample.query_tokens);
    check_rows(some.lse, all.lse, sample.query_tokens);
    check_rows(some.grad_query, all.grad_query, sample.query_tokens);
    check_rows(some.grad_key, all.grad_key, sample.key_tokens);
    check_rows(some.grad_value, all.grad_value, sample.key_tokens);
  }
}

TEST_CASE("a sample computes only the rows that it needs") {
  // A predicate counts which rows are asked for.
  std::vector<int> asked(20, 0);
  const Pattern counted = from_predicate(20, 20, [&asked](std::int64_t row, std::int64_t column) {
    ++asked[static_cast<std::size_t>(row)];
    return row == column || column + 1 == row;
  });
  Random random(52);
  const auto tensor = normal_tensor<double>({1, 1, 20, 2}, random);
  const ReferenceProblem<double> problem{counted, tensor, tensor, tensor, tensor, {}, {}};
  reference_attention(problem, ReferenceSample{{3}, {10}});
  for (std::size_t row = 0; row < 20; ++row) {
    CAPTURE(row);
    // Rows 10 and 11 attend to key 10. One question about it for every other row, all columns for the rows needed.
    const bool needed = row == 3 || row == 10 || row == 11;
    CHECK((asked[row] >= 20) == needed);
  }
}
