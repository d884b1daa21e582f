#include "cobble/score_terms.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cobble/reference.hpp"
#include "support/error_of.hpp"
#include "support/hand_cases.hpp"

// The terms of a score in the reference, by hand: d = 1 and scale = 1 throughout. Their gradients by finite
// differences: finite_difference_test.cpp.

using namespace cobble;
using namespace cobble::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const double kLn2 = std::log(2.0);
const double kLn3 = std::log(3.0);

/// The values of a bias, and the terms that hold it.
struct Bias {
  Bias(CsrPattern pattern, Numbers numbers) : structure(from_csr(std::move(pattern))), values(std::move(numbers)) {}
  ScoreTerms<double> terms() const {
    ScoreTerms<double> terms;
    terms.bias = {structure, {values.data(), {1, 1, 1, static_cast<std::int64_t>(values.size())}}};
    return terms;
  }
  Pattern structure;
  Numbers values;
};

}  // namespace

TEST_CASE("softcap bends scores, and its slope goes into the gradients of query and key") {
  // c = 2, q = 1, k = (0, ln 3): x / c = (0, ln 3 / 2), tanh = (0, (3 - 1) / (3 + 1)) = (0, 1/2), s = (0, 1).
  // p = (1, e) / (1 + e). v = (0, 1): o = p_1, do = 1: ds = (-p_0 p_1, p_0 p_1). Slopes (1, 3/4).
  // dq = ds_1 * 3/4 * ln 3; dk = (-p_0 p_1, 3/4 p_0 p_1); dv = p.
  const Numbers query{1}, key{0, kLn3}, value{0, 1}, grad_output{1};
  ReferenceProblem<double> capped = problem(full(1, 2), query, key, value, grad_output);
  capped.terms.softcap = 2;
  const ReferenceResult result = reference_attention(capped);
  const double e = std::exp(1.0), p = e / (1 + e), q = 1 / (1 + e);
  check_equal(result.output, {p});
  check_equal(result.lse, {std::log(1 + e)});
  check_equal(result.grad_query, {0.75 * p * q * kLn3});
  check_equal(result.grad_key, {-p * q, 0.75 * p * q});
  check_equal(result.grad_value, {q, p});
  check_equal(result.grad_bias, {});
  check_equal(result.grad_sinks, {});
}

TEST_CASE("softcap keeps infinite scores finite") {
  // s = (c, -c) = (ln 2, -ln 2): p = (4/5, 1/5).
  const Numbers query{kInfinity}, key{1, -1}, value{5, 10}, grad_output{0};
  ReferenceProblem<double> capped = problem(full(1, 2), query, key, value, grad_output);
  capped.terms.softcap = kLn2;
  check_equal(reference_attention(capped).output, {6});
}

TEST_CASE("a bias is added where it is stored and is 0 elsewhere") {
  // q = 0, keys 0..2; pairs (0,0), (0,1), (1,1), (1,2) of a band. Stored: (0,1) = ln 3, (1,0) outside the pattern.
  // Row 0: s = (0, ln 3), p = (1/4, 3/4), o = 4/4 + 8 * 3/4 = 7, do = 2: ds = (-1.5, 1.5).
  // Row 1: s = (0, 0), o = 10, do = 0: no gradient.
  const Numbers query{0, 0}, key{1, 2, 3}, value{4, 8, 12}, grad_output{2, 0};
  const Pattern band = window(2, 3, 1, 0);  // query i stands at key i + 1
  const Bias bias({2, 3, {0, 1, 2}, {1, 0}}, {kLn3, kNan});
  ReferenceProblem<double> biased = problem(band, query, key, value, grad_output);
  biased.terms = bias.terms();
  const ReferenceResult result = reference_attention(biased);
  check_equal(result.output, {7, 10});
  check_equal(result.lse, {std::log(4), kLn2});
  check_equal(result.grad_query, {-1.5 * 1 + 1.5 * 2, 0});
  check_equal(result.grad_value, {0.5, 1.5, 0});
  check_equal(result.grad_bias, {1.5, 0});
}

TEST_CASE("a bias comes after the softcap") {
  // softcap(ln 3) with c = ln 3 would bend the bias, too, if it came before: s = (0, ln 3), p = (1/4, 3/4).
  const Numbers query{0}, key{1, 1}, value{4, 8}, grad_output{0};
  const Bias bias({1, 2, {0, 1}, {1}}, {kLn3});
  ReferenceProblem<double> both = problem(full(1, 2), query, key, value, grad_output);
  both.terms = bias.terms();
  both.terms.softcap = kLn3;
  check_equal(reference_attention(both).output, {7});
}

TEST_CASE("a bias of minus infinity removes its pair, whatever the tokens hold") {
  // Row 0 keeps key 0 only; row 1 keeps none: an empty row, whose grad_output may hold anything.
  const Numbers query{1, 1}, key{5, kNan}, value{7, kInfinity}, grad_output{3, kNan};
  const Bias bias({2, 2, {0, 1, 3}, {1, 0, 1}}, {-kInfinity, -kInfinity, -kInfinity});
  ReferenceProblem<double> removed = problem(full(2), query, key, value, grad_output);
  removed.terms = bias.terms();
  const ReferenceResult result = reference_attention(removed);
  check_equal(result.output, {7, 0});
  check_equal(result.lse, {5, -kInfinity});
  check_equal(result.grad_query, {0, 0});
  check_equal(result.grad_key, {0, 0});
  check_equal(result.grad_value, {3, 0});
  check_equal(result.grad_bias, {0, 0, 0});
}

TEST_CASE("a NaN in the bias of a pair reaches its row and no other") {
  const Numbers query{1, 1}, key{1, 1}, value{4, 6}, grad_output{1, 1};
  const Bias bias({2, 2, {0, 1, 1}, {0}}, {kNan});
  ReferenceProblem<double> biased = problem(full(2), query, key, value, grad_output);
  biased.terms = bias.terms();
  const ReferenceResult result = reference_attention(biased);
  CHECK(std::isnan(result.output.values()[0]));
  CHECK(result.output.values()[1] == 5);
}

TEST_CASE("blocks store a bias block by block") {
  // One block of 2 x 2 at columns 2 and 3, the last one outside of the matrix. q = 0, so s is the bias:
  // row 0: (0, 0, ln 2), row 1: (0, 0, ln 6).
  const Numbers query{0, 0}, key{1, 1, 1}, value{0, 0, 8}, grad_output{0, 0};
  BsrPattern blocks;
  blocks.rows = 2;
  blocks.columns = 3;
  blocks.block_rows = blocks.block_columns = 2;
  blocks.block_row_offsets = {0, 1};
  blocks.block_column_indices = {1};
  const Numbers values{kLn2, kNan, std::log(6.0), kNan};
  ReferenceProblem<double> biased = problem(full(2, 3), query, key, value, grad_output);
  biased.terms.bias = {from_bsr(blocks), {values.data(), {1, 1, 1, 4}}};
  check_equal(reference_attention(biased).output, {4, 6});
}

TEST_CASE("ALiBi falls off on both sides of a query's position") {
  // q = 0, slope ln 2: s = -ln 2 * distance. Queries 0 and 1 of 2 x 3 stand at keys 1 and 2.
  // Row 0: weights (1/2, 1, 1/2), row 1: (1/4, 1/2, 1). o = <weights, v> / sum.
  const Numbers query{0, 0}, key{1, 1, 1}, value{4, 8, 16}, grad_output{0, 0};
  const Numbers slopes{kLn2};
  ReferenceProblem<double> sloped = problem(full(2, 3), query, key, value, grad_output);
  sloped.terms.alibi_slopes = slopes;
  const ReferenceResult result = reference_attention(sloped);
  check_equal(result.output, {(2 + 8 + 8) / 2.0, (1 + 4 + 16) / 1.75});
  check_equal(result.lse, {std::log(2), std::log(1.75)});
}

TEST_CASE("a sink takes its share and gives nothing") {
  // s = (0, 0), sink = ln 2: p = (1/4, 1/4), p_sink = 1/2, o = (4 + 8) / 4 = 3, lse = ln 4.
  // do = 4: delta = 12, dp = (16, 32), ds = (1/4 * 4, 1/4 * 20) = (1, 5), dsink = -1/2 * 12 = -6: the sum of all is 0.
  const Numbers query{0}, key{1, 2}, value{4, 8}, grad_output{4};
  const Numbers sinks{kLn2};
  ReferenceProblem<double> sunk = problem(full(1, 2), query, key, value, grad_output);
  sunk.terms.sinks = sinks;
  const ReferenceResult result = reference_attention(sunk);
  check_equal(result.output, {3});
  check_equal(result.lse, {std::log(4)});
  check_equal(result.grad_query, {1 * 1 + 5 * 2});
  check_equal(result.grad_value, {1, 1});
  check_equal(result.grad_sinks, {-6});

  SUBCASE("the gradient of lse adds p_sink dlse") {
    const Numbers grad_lse{2};
    sunk.grad_lse = tensor(grad_lse);
    check_equal(reference_attention(sunk).grad_sinks, {-5});
  }
}

TEST_CASE("a row without pairs has its sink as lse, and passes the gradient of lse on to it") {
  const Numbers query{kNan, 1}, key{2}, value{5}, grad_output{kNan, 1}, grad_lse{3, 0};
  const Numbers sinks{2};
  ReferenceProblem<double> sunk = problem(causal(2, 1), query, key, value, grad_output);  // row 0 is empty
  sunk.grad_lse = tensor(grad_lse);
  sunk.terms.sinks = sinks;
  const ReferenceResult result = reference_attention(sunk);
  // Row 1: p = p_sink = 1/2, o = 2.5, do = 1: dsink = -1/2 * 2.5.
  check_equal(result.output, {0, 2.5});
  check_equal(result.lse, {2, 2 + kLn2});
  check_equal(result.grad_query, {0, 2.5});  // ds = 1/2 (5 - 2.5), k = 2
  check_equal(result.grad_sinks, {3 - 1.25});
}

TEST_CASE("a sink of minus infinity changes nothing") {
  const Numbers query{0, 0}, key{1}, value{4}, grad_output{1, 1}, sinks{-kInfinity};
  ReferenceProblem<double> sunk = problem(causal(2, 1), query, key, value, grad_output);
  sunk.terms.sinks = sinks;
  const ReferenceResult result = reference_attention(sunk);
  check_equal(result.output, {0, 4});
  check_equal(result.lse, {-kInfinity, 0});
  check_equal(result.grad_sinks, {0});
}

TEST_CASE("each query head has its own slope and sink") {
  // Two query heads over one key head, one query at key 1 of 2. Head 0: s = (0, 0) and no sink to speak of; head 1:
  // slope ln 3, s = (-ln 3, 0), sink 0: p = (1/7, 3/7, 3/7).
  const Numbers query{0, 0}, key{1, 1}, value{2, 4}, grad_output{1, 7};
  const TensorShape per_query_head{1, 2, 1, 1};
  ReferenceProblem<double> headed{
      full(1, 2), {query.data(), per_query_head}, tensor(key), tensor(value), {grad_output.data(), per_query_head}, {},
      1.0};
  const Numbers slopes{0, kLn3}, sinks{-kInfinity, 0};
  headed.terms.alibi_slopes = slopes;
  headed.terms.sinks = sinks;
  const ReferenceResult result = reference_attention(headed);
  check_equal(result.output, {3, 2});
  check_equal(result.lse, {kLn2, std::log(7.0 / 3)});
  check_equal(result.grad_sinks, {0, -6});
}

TEST_CASE("a sample has the gradients of its rows' biases, and none of sinks") {
  const Numbers query{1, 2, 3}, key{1, 2, 3}, value{4, 7, 9}, grad_output{1, 2, 3}, sinks{0};
  const Bias bias({3, 3, {0, 1, 3, 5}, {0, 0, 1, 1, 2}}, {0.1, 0.2, 0.3, 0.4, 0.5});
  ReferenceProblem<double> biased = problem(causal(3), query, key, value, grad_output);
  biased.terms = bias.terms();
  biased.terms.sinks = sinks;
  const ReferenceResult all = reference_attention(biased);
  const ReferenceResult some = reference_attention(biased, ReferenceSample{{1}, {0, 1, 2}});
  check_equal(some.grad_bias, {0, all.grad_bias.values()[1], all.grad_bias.values()[2], 0, 0});
  check_equal(some.grad_sinks, {});
}

TEST_CASE("terms that do not fit the problem are named") {
  const Numbers two{1, 2}, three{1, 2, 3};
  const Bias bias({2, 3, {0, 1, 2}, {1, 0}}, {0, 0});
  ReferenceProblem<double> wrong = problem(full(2, 3), two, three, three, two);
  const auto run = [&wrong] { reference_attention(wrong); };
  wrong.terms = bias.terms();
  CHECK(error_of(run) == "no error");
  wrong.terms.softcap = -1;
  CHECK(error_of(run) == "invalid_argument: softcap = -1.000000, expected a positive finite number, or 0 for none");
  wrong.terms.softcap = 0;
  wrong.terms.sinks = two;
  CHECK(error_of(run) == "shape_mismatch: sinks has 2 entries, expected one for each of 1 query heads");
}
