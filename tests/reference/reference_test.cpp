#include "cobble/reference.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cobble/error.hpp"
#include "cobble/half.hpp"
#include "cobble/pattern.hpp"
#include "support/hand_cases.hpp"

// Cases small enough to be checked by hand. In all of them d = 1 and scale = 1 unless said otherwise, so that a score
// is the product of two numbers. Gradients by finite differences: finite_difference_test.cpp.

using namespace cobble;
using namespace cobble::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Row 0 attends to keys 0 and 1, row 1 to none, row 2 to key 1. Nobody attends to key 2.
Pattern pattern_with_empty_row() {
  CsrPattern csr;
  csr.rows = 3;
  csr.columns = 3;
  csr.row_offsets = {0, 2, 2, 3};
  csr.column_indices = {0, 1, 1};
  return from_csr(csr);
}

template <class F>
void check_error(F f, ErrorCode code, const char* message) {
  try {
    f();
    FAIL_CHECK("no error, expected: " << message);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK(std::string(error.what()) == message);
  }
}

}  // namespace

TEST_CASE("a single pair copies its value and has no gradient through the score") {
  // s = 2 * 5 = 10, p = 1. dv = do; ds = p (do v - do o) = 0.
  const Numbers query{2}, key{5}, value{7}, grad_output{3};
  const ReferenceResult result = reference_attention(problem(full(1), query, key, value, grad_output));
  check_equal(result.output, {7});
  check_equal(result.lse, {10});
  check_equal(result.grad_query, {0});
  check_equal(result.grad_key, {0});
  check_equal(result.grad_value, {3});
}

TEST_CASE("equal scores give the mean of the values") {
  // q = 0: all scores 0, p = 1/3, o = (3 + 6 + 9) / 3 = 6, lse = ln 3.
  // do = 1: delta = 6, dp = v, ds = 1/3 (3 - 6, 6 - 6, 9 - 6) = (-1, 0, 1), dq = -1 * 1 + 1 * 4 = 3.
  // dk = sum of ds q = 0. dv = 1/3 from each of the two rows.
  const Numbers query{0, 0}, key{1, 2, 4}, value{3, 6, 9}, grad_output{1, 1};
  const ReferenceResult result = reference_attention(problem(full(2, 3), query, key, value, grad_output));
  check_equal(result.output, {6, 6});
  check_equal(result.lse, {std::log(3), std::log(3)});
  check_equal(result.grad_query, {3, 3});
  check_equal(result.grad_key, {0, 0, 0});
  check_equal(result.grad_value, {2.0 / 3, 2.0 / 3, 2.0 / 3});
}

TEST_CASE("two pairs weigh one to three") {
  // s = (0, ln 3), lse = ln 4, p = (1/4, 3/4), o = 4/4 + 8 * 3/4 = 7.
  // do = 2: delta = 14, dp = (8, 16), ds = (1/4 * -6, 3/4 * 2) = (-1.5, 1.5).
  // dq = 0 * -1.5 + 1 * 1.5 = 1.5; dk = ds ln 3; dv = 2 p.
  const Numbers query{std::log(3)}, key{0, 1}, value{4, 8}, grad_output{2};
  ReferenceProblem<double> two_pairs = problem(full(1, 2), query, key, value, grad_output);
  const ReferenceResult result = reference_attention(two_pairs);
  check_equal(result.output, {7});
  check_equal(result.lse, {std::log(4)});
  check_equal(result.grad_query, {1.5});
  check_equal(result.grad_key, {-1.5 * std::log(3), 1.5 * std::log(3)});
  check_equal(result.grad_value, {0.5, 1.5});

  SUBCASE("the gradient of lse adds p dlse to ds") {
    // dlse = 4: delta = 14 - 4 = 10, ds = (1/4 * -2, 3/4 * 6) = (-0.5, 4.5).
    const Numbers grad_lse{4};
    two_pairs.grad_lse = tensor(grad_lse);
    const ReferenceResult with_lse = reference_attention(two_pairs);
    check_equal(with_lse.grad_query, {4.5});
    check_equal(with_lse.grad_key, {-0.5 * std::log(3), 4.5 * std::log(3)});
    check_equal(with_lse.grad_value, {0.5, 1.5});
  }
  SUBCASE("without grad_output there are no gradients") {
    two_pairs.grad_output = {};
    const ReferenceResult forward_only = reference_attention(two_pairs);
    check_equal(forward_only.output, {7});
    check_equal(forward_only.grad_query, {});
    check_equal(forward_only.grad_key, {});
    check_equal(forward_only.grad_value, {});
  }
}

TEST_CASE("the scale is one over the root of d by default and multiplies the gradients of query and key") {
  // d = 4: scale = 1/2. <q, k> = (0, 2 ln 3), s = (0, ln 3): ds = (-1.5, 1.5) as with two pairs above.
  // dq = 1/2 * 1.5 * k_1 = 0.75 k_1; dk_j = 1/2 ds_j q.
  const double two_ln_3 = 2 * std::log(3);
  const Numbers query{two_ln_3, 0, 1, 0}, key{0, 5, 0, 0, 1, 0, 0, 8}, value{4, 8}, grad_output{2};
  const ReferenceResult result = reference_attention(ReferenceProblem<double>{
      full(1, 2), tensor(query, 4), tensor(key, 4), tensor(value), tensor(grad_output), {}, {}});
  check_equal(result.output, {7});
  // ds_0 reaches dq through the second feature of k_0: 1/2 * -1.5 * 5.
  check_equal(result.grad_query, {0.75, -3.75, 0, 6});
  check_equal(result.grad_key, {-0.75 * two_ln_3, 0, -0.75, 0, 0.75 * two_ln_3, 0, 0.75, 0});
  check_equal(result.grad_value, {0.5, 1.5});
}

TEST_CASE("a causal pattern averages what came before") {
  // q = 0: row i is the mean of v_0 .. v_i. do = 60: dv_j = 60 (1/(j+1) + ... + 1/5).
  const Numbers query{0, 0, 0, 0, 0}, key{1, 2, 3, 4, 5}, value{0, 12, 24, 36, 48}, grad_output{60, 60, 60, 60, 60};
  const ReferenceResult result = reference_attention(problem(causal(5), query, key, value, grad_output));
  check_equal(result.output, {0, 6, 12, 18, 24});
  check_equal(result.lse, {0, std::log(2), std::log(3), std::log(4), std::log(5)});
  check_equal(result.grad_value, {137, 77, 47, 27, 12});
  check_equal(result.grad_key, {0, 0, 0, 0, 0});
}

TEST_CASE("values may have another number of features than queries") {
  // p = 1/2 each. o = (2, 30). do = (1, 1): delta = 32, dp = (21, 43), ds = (-5.5, 5.5), dq = 5.5 (k_1 - k_0) = 11.
  const Numbers query{0}, key{1, 3}, value{1, 20, 3, 40}, grad_output{1, 1};
  const ReferenceResult result = reference_attention(ReferenceProblem<double>{
      full(1, 2), tensor(query), tensor(key), tensor(value, 2), tensor(grad_output, 2), {}, 1.0});
  check_equal(result.output, {2, 30});
  check_equal(result.grad_query, {11});
  check_equal(result.grad_value, {0.5, 0.5, 0.5, 0.5});
}

TEST_CASE("query heads share a key head and add up its gradients") {
  // Two query heads, one key head, one query, two keys. Head 0 has s = (0, ln 3) and ds = (-1.5, 1.5), as with two
  // pairs above; head 1 has s = (0, 0), o = 6, do = 1, delta = 6, dp = (4, 8), ds = (-1, 1).
  const Numbers query{std::log(3), 0}, key{0, 1}, value{4, 8}, grad_output{2, 1};
  const TensorShape per_query_head{1, 2, 1, 1};
  const ReferenceResult result = reference_attention(ReferenceProblem<double>{full(1, 2),
                                                                              {query.data(), per_query_head},
                                                                              tensor(key),
                                                                              tensor(value),
                                                                              {grad_output.data(), per_query_head},
                                                                              {},
                                                                              1.0});
  check_equal(result.output, {7, 6});
  check_equal(result.grad_query, {1.5, 1});
  check_equal(result.grad_key, {-1.5 * std::log(3) - 1 * 0, 1.5 * std::log(3) + 1 * 0});
  check_equal(result.grad_value, {0.5 + 0.5, 1.5 + 0.5});
}

TEST_CASE("each batch entry and head uses its own pattern") {
  // Batch 0: head 0 attends to key 0, head 1 to key 1. Batch 1: head 0 to nothing, head 1 to both (equal scores).
  const auto only = [](std::vector<std::int32_t> keys) {
    CsrPattern csr;
    csr.rows = 1;
    csr.columns = 2;
    csr.row_offsets = {0, static_cast<std::int64_t>(keys.size())};
    csr.column_indices = std::move(keys);
    return from_csr(csr);
  };
  const PatternGrid grid({only({0}), only({1}), only({}), only({0, 1})}, 2, 2);
  const Numbers query{0, 0, 0, 0}, key{0, 0, 0, 0, 0, 0, 0, 0}, value{1, 2, 3, 4, 5, 6, 7, 9};
  const TensorShape per_key{2, 2, 2, 1};
  const ReferenceResult result = reference_attention(ReferenceProblem<double>{
      grid, {query.data(), {2, 2, 1, 1}}, {key.data(), per_key}, {value.data(), per_key}, {}, {}, {}});
  check_equal(result.output, {1, 4, 0, 8});
  check_equal(result.lse, {0, 0, -kInfinity, std::log(2)});
}

TEST_CASE("an empty row gives zeros and touches nothing, whatever its tokens hold") {
  // Row 0: equal scores, o = 5, do = 1: delta = 5, dp = (4, 6), ds = (-0.5, 0.5), dq = 0.5 (k_1 - k_0) = 0.5.
  // Row 2: one pair. dv_1 = 1/2 * 1 + 1 * 10.
  const Numbers query{0, kNan, 0}, key{1, 2, kNan}, value{4, 6, kInfinity}, grad_output{1, kNan, 10};
  const Numbers grad_lse{0, kNan, 0};
  ReferenceProblem<double> with_empty_row = problem(pattern_with_empty_row(), query, key, value, grad_output);
  with_empty_row.grad_lse = tensor(grad_lse);
  const ReferenceResult result = reference_attention(with_empty_row);
  check_equal(result.output, {5, 0, 6});
  check_equal(result.lse, {std::log(2), -kInfinity, 0});
  check_equal(result.grad_query, {0.5, 0, 0});
  check_equal(result.grad_key, {0, 0, 0});
  check_equal(result.grad_value, {0.5, 10.5, 0});
}

TEST_CASE("a row whose scores are all minus infinity counts as empty") {
  // Row 0: s = -inf * 1, -inf * 2. Row 1: s = 0.
  const Numbers query{-kInfinity, 0}, key{1, 2}, value{4, 6}, grad_output{kNan, 1};
  const ReferenceResult result = reference_attention(problem(full(2), query, key, value, grad_output));
  check_equal(result.output, {0, 5});
  check_equal(result.lse, {-kInfinity, std::log(2)});
  check_equal(result.grad_query, {0, 0.5});
  check_equal(result.grad_value, {0.5, 0.5});
}

TEST_CASE("scores of 1e30 neither overflow nor become NaN") {
  const Numbers query{1e15, -1e15}, key{1e15, 0}, value{4, 6}, grad_output{1, 1};
  const ReferenceResult result = reference_attention(problem(full(2), query, key, value, grad_output));
  check_equal(result.output, {4, 6});
  check_equal(result.lse, {1e30, 0});
  check_equal(result.grad_query, {0, 0});
  check_equal(result.grad_value, {1, 1});
}

TEST_CASE("equal scores of 1e30 share the weight, though ln 2 is lost in their lse") {
  const Numbers query{1e15}, key{1e15, 1e15}, value{4, 6}, grad_output{2};
  const ReferenceResult result = reference_attention(problem(full(1, 2), query, key, value, grad_output));
  check_equal(result.output, {5});
  check_equal(result.lse, {1e30});
  check_equal(result.grad_value, {1, 1});
}

TEST_CASE("a NaN inside the pattern reaches its row and no other") {
  const Numbers query{1, 1}, key{1, kNan}, value{4, 6};
  const ReferenceResult result =
      reference_attention(ReferenceProblem<double>{causal(2), tensor(query), tensor(key), tensor(value), {}, {}, 1.0});
  CHECK(result.output.values()[0] == 4);
  CHECK(std::isnan(result.output.values()[1]));
  CHECK(std::isnan(result.lse.values()[1]));
}

TEST_CASE("tensors may be broadcast, strided and reversed") {
  // Keys 1, 2, 4 stored backwards; values 3, 6, 9 at every second place; one query 0 for both rows; do = 1 for both.
  const Numbers query{0}, key{4, 2, 1}, value{3, -1, 6, -1, 9}, grad_output{1};
  const TensorShape two{1, 1, 2, 1}, three{1, 1, 3, 1};
  const ReferenceResult result = reference_attention(ReferenceProblem<double>{full(2, 3),
                                                                              {query.data(), two, {0, 0, 0, 0}},
                                                                              {key.data() + 2, three, {0, 0, -1, 1}},
                                                                              {value.data(), three, {0, 0, 2, 1}},
                                                                              {grad_output.data(), two, {0, 0, 0, 0}},
                                                                              {},
                                                                              1.0});
  check_equal(result.output, {6, 6});
  check_equal(result.grad_query, {3, 3});
  check_equal(result.grad_value, {2.0 / 3, 2.0 / 3, 2.0 / 3});
}

TEST_CASE("float inputs are computed in double") {
  // s = (1, 2^-24). Sums in float would be off by 1e-8, six decades more than is allowed here.
  const std::vector<float> query{1}, key{0x1.0p24F, 1}, value{1, 3};
  const ReferenceResult result = reference_attention(
      ReferenceProblem<float>{full(1, 2), {query, 1, 1}, {key, 2, 1}, {value, 2, 1}, {}, {}, 0x1.0p-24});
  const double p = 1 / (1 + std::exp(0x1.0p-24 - 1));
  check_equal(result.output, {p + 3 * (1 - p)});
}

TEST_CASE_TEMPLATE("halves are computed in double", T, bfloat16, float16) {
  // Two pairs that weigh one to three, with ln 3 rounded to T: o = (4 + 8 w) / (1 + w) with w = exp(q), and a sink and
  // a bias of T as well.
  const std::vector<T> query{T(1.0986)}, key{T(0), T(1)}, value{T(4), T(8)}, sinks{T(0.3)}, bias{T(0.7)};
  ReferenceProblem<T> halves{full(1, 2), {query, 1, 1}, {key, 2, 1}, {value, 2, 1}, {}, {}, 1.0};
  const double w = std::exp(static_cast<double>(query[0]));
  check_equal(reference_attention(halves).output, {(4 + 8 * w) / (1 + w)});
  halves.terms.sinks = sinks;
  halves.terms.bias = {from_csr({1, 2, {0, 1}, {0}}), {bias.data(), {1, 1, 1, 1}}};
  const double b = std::exp(static_cast<double>(bias[0])), s = std::exp(static_cast<double>(sinks[0]));
  check_equal(reference_attention(halves).output, {(4 * b + 8 * w) / (b + w + s)});
}

TEST_CASE("a problem of no tokens, heads or batch entries has empty results") {
  const TensorView<const double> none({}, 0, 1);
  const Numbers three{1, 2, 3};
  SUBCASE("no queries: nobody attends to the keys") {
    const ReferenceResult result =
        reference_attention(ReferenceProblem<double>{full(0, 3), none, tensor(three), tensor(three), none, {}, {}});
    check_equal(result.output, {});
    check_equal(result.grad_key, {0, 0, 0});
  }
  SUBCASE("no keys: all rows are empty") {
    const ReferenceResult result =
        reference_attention(ReferenceProblem<double>{full(3, 0), tensor(three), none, none, tensor(three), {}, {}});
    check_equal(result.output, {0, 0, 0});
    check_equal(result.lse, {-kInfinity, -kInfinity, -kInfinity});
    check_equal(result.grad_query, {0, 0, 0});
  }
  SUBCASE("no heads") {
    const TensorView<const double> no_heads(nullptr, {1, 0, 3, 1});
    const ReferenceResult result =
        reference_attention(ReferenceProblem<double>{full(3), no_heads, no_heads, no_heads, no_heads, {}, {}});
    CHECK(result.output.shape() == TensorShape{1, 0, 3, 1});
  }
  SUBCASE("no batch") {
    const TensorView<const double> no_batch(nullptr, {0, 1, 3, 1});
    const ReferenceResult result =
        reference_attention(ReferenceProblem<double>{full(3), no_batch, no_batch, no_batch, no_batch, {}, {}});
    CHECK(result.output.shape() == TensorShape{0, 1, 3, 1});
  }
}

TEST_CASE("shapes that do not fit are named") {
  const Numbers two{1, 2}, three{1, 2, 3}, six{1, 2, 3, 4, 5, 6};
  ReferenceProblem<double> wrong = problem(full(2, 3), two, three, three, two);
  const auto run = [&] { reference_attention(wrong); };
  run();
  SUBCASE("query") {
    wrong.query = tensor(three);
    check_error(run, ErrorCode::shape_mismatch, "query is 1 x 1 x 3 x 1, expected 1 x 1 x 2 x 1");
  }
  SUBCASE("key") {
    wrong.key = tensor(six, 2);
    check_error(run, ErrorCode::shape_mismatch, "key is 1 x 1 x 3 x 2, expected 1 x 1 x 3 x 1");
  }
  SUBCASE("value") {
    wrong.value = tensor(two);
    check_error(run, ErrorCode::shape_mismatch, "value is 1 x 1 x 2 x 1, expected 1 x 1 x 3 x 1");
  }
  SUBCASE("grad_output") {
    wrong.grad_output = tensor(three);
    check_error(run, ErrorCode::shape_mismatch, "grad_output is 1 x 1 x 3 x 1, expected 1 x 1 x 2 x 1");
  }
  SUBCASE("grad_lse") {
    wrong.grad_lse = tensor(three);
    check_error(run, ErrorCode::shape_mismatch, "grad_lse is 1 x 1 x 3 x 1, expected 1 x 1 x 2 x 1");
  }
  SUBCASE("grad_lse without grad_output") {
    wrong.grad_output = {};
    wrong.grad_lse = tensor(two);
    check_error(run, ErrorCode::invalid_argument, "grad_lse is given without grad_output");
  }
  SUBCASE("heads") {
    const TensorShape two_heads{1, 2, 3, 1};
    wrong.key = wrong.value = {six.data(), two_heads};
    check_error(run, ErrorCode::shape_mismatch, "query has 1 heads, expected a multiple of key's 2");
  }
  SUBCASE("features") {
    wrong.query = {nullptr, {1, 1, 2, 0}};
    check_error(run, ErrorCode::invalid_argument, "query has 0 and value has 1 features, expected at least 1");
  }
  SUBCASE("no data") {
    wrong.key = {nullptr, {1, 1, 3, 1}};
    check_error(run, ErrorCode::invalid_argument, "key has no data, expected 1 x 1 x 3 x 1");
  }
  SUBCASE("grid of patterns") {
    wrong.patterns = PatternGrid({full(2, 3), full(2, 3)}, 1, 2);
    check_error(run, ErrorCode::shape_mismatch, "patterns is a grid of 1 x 2, expected 1 or 1 x 1 or 1");
  }
  SUBCASE("scale") {
    wrong.scale = kNan;
    check_error(run, ErrorCode::invalid_argument, "scale = nan, expected a finite number");
  }
  SUBCASE("sample out of range") {
    check_error(
        [&] {
          reference_attention(wrong, ReferenceSample{{0, 2}, {}});
        },
        ErrorCode::invalid_argument, "query_tokens[1] = 2 is not in [0, 2)");
  }
  SUBCASE("sample not sorted") {
    check_error(
        [&] {
          reference_attention(wrong, ReferenceSample{{}, {1, 1}});
        },
        ErrorCode::invalid_argument, "key_tokens[1] = 1 is not above key_tokens[0] = 1");
  }
}
