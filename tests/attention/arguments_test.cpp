#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/error.hpp"
#include "cobble/plan.hpp"
#include "support/attention_inputs.hpp"

// Arguments that do not fit the plan are named before anything is computed; outputs may lie in memory as they like but
// not on one another.

using namespace cobble;
using namespace cobble::test;

namespace {

void check_error(const std::function<void()>& call, ErrorCode code, const std::string& message) {
  try {
    call();
    FAIL_CHECK("no error, expected: " << message);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK(std::string(error.what()) == message);
  }
}

/// A problem of 2 batch entries, 4 / 2 heads, 3 queries, 5 keys, d = 6, d_v = 7, with all that the calls take.
struct Arguments {
  Plan plan =
      make_plan(full(3, 5), {.head_dim = 6, .value_dim = 7, .query_heads = 4, .key_value_heads = 2, .batch = 2});
  Inputs<float> inputs = normal_inputs<float>(plan, 1);
  Attention<float> attention = run_forward(plan, inputs);
  Gradients<float> kept_gradients = run_backward(plan, inputs, attention);
  Workspace workspace;

  TensorView<const float> query = inputs.query, key = inputs.key, value = inputs.value;
  TensorView<const float> grad_output = inputs.grad_output, grad_lse = inputs.grad_lse;
  AttentionView<float> result = attention.view();
  GradientsView<float> gradients = kept_gradients.view();

  ScoreTerms<float> terms;

  void forward() { cobble::forward(plan, query, key, value, result, workspace, terms); }
  void backward() {
    cobble::backward(plan, query, key, value, AttentionView<const float>{result.output, result.lse}, grad_output,
                     gradients, workspace, BackwardOptions<float>{.grad_lse = grad_lse, .terms = terms});
  }
};

std::vector<float> other_memory(4000);

TensorView<float> other(const TensorShape& shape) { return {other_memory.data(), shape}; }

}  // namespace

TEST_CASE("arguments of the plan's shapes are accepted") {
  Arguments a;
  a.forward();
  a.backward();
}

TEST_CASE("every argument of another shape is named, with both shapes") {
  Arguments a;
  const auto forward = [&a] { a.forward(); };
  const auto backward = [&a] { a.backward(); };
  const auto check_both = [&](const std::string& message) {
    check_error(forward, ErrorCode::shape_mismatch, message);
    check_error(backward, ErrorCode::shape_mismatch, message);
  };
  SUBCASE("query: tokens") {
    a.query = other({2, 4, 5, 6});
    check_both("query is 2 x 4 x 5 x 6, expected 2 x 4 x 3 x 6 (batch x query heads x query tokens x head_dim)");
  }
  SUBCASE("query: batch") {
    a.query = other({1, 4, 3, 6});
    check_both("query is 1 x 4 x 3 x 6, expected 2 x 4 x 3 x 6 (batch x query heads x query tokens x head_dim)");
  }
  SUBCASE("key: heads are not expanded to those of query") {
    a.key = other({2, 4, 5, 6});
    check_both("key is 2 x 4 x 5 x 6, expected 2 x 2 x 5 x 6 (batch x key/value heads x key tokens x head_dim)");
  }
  SUBCASE("value: features") {
    a.value = other({2, 2, 5, 6});
    check_both("value is 2 x 2 x 5 x 6, expected 2 x 2 x 5 x 7 (batch x key/value heads x key tokens x value_dim)");
  }
  SUBCASE("output") {
    a.result.output = other({2, 4, 3, 6});
    check_both(
        "result.output is 2 x 4 x 3 x 6, expected 2 x 4 x 3 x 7 (batch x query heads x query tokens x value_dim)");
  }
  SUBCASE("lse") {
    a.result.lse = other({2, 4, 3, 2});
    check_both("result.lse is 2 x 4 x 3 x 2, expected 2 x 4 x 3 x 1 (batch x query heads x query tokens x 1)");
  }
  SUBCASE("grad_output") {
    a.grad_output = other({2, 4, 3, 6});
    check_error(
        backward, ErrorCode::shape_mismatch,
        "grad_output is 2 x 4 x 3 x 6, expected 2 x 4 x 3 x 7 (batch x query heads x query tokens x value_dim)");
  }
  SUBCASE("grad_lse") {
    a.grad_lse = other({2, 4, 1, 1});
    check_error(backward, ErrorCode::shape_mismatch,
                "grad_lse is 2 x 4 x 1 x 1, expected 2 x 4 x 3 x 1 (batch x query heads x query tokens x 1)");
  }
  SUBCASE("gradient of query") {
    a.gradients.query = other({2, 4, 3, 7});
    check_error(
        backward, ErrorCode::shape_mismatch,
        "gradients.query is 2 x 4 x 3 x 7, expected 2 x 4 x 3 x 6 (batch x query heads x query tokens x head_dim)");
  }
  SUBCASE("gradient of key") {
    a.gradients.key = other({2, 4, 5, 6});
    check_error(
        backward, ErrorCode::shape_mismatch,
        "gradients.key is 2 x 4 x 5 x 6, expected 2 x 2 x 5 x 6 (batch x key/value heads x key tokens x head_dim)");
  }
  SUBCASE("gradient of value") {
    a.gradients.value = other({2, 2, 3, 7});
    check_error(
        backward, ErrorCode::shape_mismatch,
        "gradients.value is 2 x 2 x 3 x 7, expected 2 x 2 x 5 x 7 (batch x key/value heads x key tokens x value_dim)");
  }
}

TEST_CASE("an argument without data is named") {
  Arguments a;
  SUBCASE("input") {
    a.key = {nullptr, {2, 2, 5, 6}};
    check_error([&a] { a.forward(); }, ErrorCode::invalid_argument, "key has no data");
  }
  SUBCASE("output") {
    a.result.lse = {nullptr, {2, 4, 3, 1}};
    check_error([&a] { a.forward(); }, ErrorCode::invalid_argument, "result.lse has no data");
  }
  SUBCASE("gradient") {
    a.gradients.value = {nullptr, {2, 2, 5, 7}};
    check_error([&a] { a.backward(); }, ErrorCode::invalid_argument, "gradients.value has no data");
  }
}

TEST_CASE("strides that leave 64 bits are named") {
  Arguments a;
  for (const std::int64_t stride : {std::int64_t{1} << 62, std::int64_t{1} << 61, -(std::int64_t{1} << 62)}) {
    a.query = {other_memory.data(), {2, 4, 3, 6}, {0, 0, stride, 1}};
    check_error([&a] { a.forward(); }, ErrorCode::overflow, "query reaches over more bytes than 64 bits can count");
  }
}

TEST_CASE("an output that overlaps itself is rejected") {
  Arguments a;
  SUBCASE("a broadcast axis") {
    a.result.output = {other_memory.data(), {2, 4, 3, 7}, {84, 0, 7, 1}};
    check_error([&a] { a.forward(); }, ErrorCode::invalid_argument,
                "result.output overlaps itself: a stride of 0 along an axis of 4 must exceed 0");
  }
  SUBCASE("tokens closer than their features") {
    a.gradients.query = {other_memory.data(), {2, 4, 3, 6}, {80, 20, 5, 1}};
    check_error([&a] { a.backward(); }, ErrorCode::invalid_argument,
                "gradients.query overlaps itself: a stride of 5 along an axis of 3 must exceed 5");
  }
  SUBCASE("all of a gradient in one place") {
    a.gradients.key = {other_memory.data(), {2, 2, 5, 6}, {0, 0, 0, 0}};
    CHECK_THROWS_AS(a.backward(), Error);
  }
}

TEST_CASE("a broadcast axis of one element is no overlap") {
  const Plan plan = make_plan(full(3), {.head_dim = 2});
  const Inputs<float> inputs = normal_inputs<float>(plan, 2);
  std::vector<float> output(6), lse(3);
  Workspace workspace;
  forward(plan, TensorView<const float>(inputs.query), TensorView<const float>(inputs.key),
          TensorView<const float>(inputs.value),
          AttentionView<float>{{output.data(), {1, 1, 3, 2}, {0, 0, 2, 1}}, {lse.data(), {1, 1, 3, 1}, {0, 0, 1, 0}}},
          workspace);
  CHECK(same_bits(TensorView<float>(output.data(), {1, 1, 3, 2}), run_forward(plan, inputs).output.view()));
}

TEST_CASE("an output that shares memory with an input or another output is rejected") {
  Arguments a;
  SUBCASE("output in place of value") {
    Tensor<float> shared({2, 4, 5, 7});
    a.value = {shared.data(), {2, 2, 5, 7}};
    a.result.output = {shared.data(), {2, 4, 3, 7}};
    check_error([&a] { a.forward(); }, ErrorCode::invalid_argument, "result.output shares memory with value");
  }
  SUBCASE("gradient in place of its tensor") {
    a.gradients.query = {const_cast<float*>(a.query.data()), a.query.shape()};
    check_error([&a] { a.backward(); }, ErrorCode::invalid_argument, "gradients.query shares memory with query");
  }
  SUBCASE("two gradients in one place") {
    a.gradients.key = other({2, 2, 5, 6});
    a.gradients.value = {other_memory.data() + 100, {2, 2, 5, 7}};
    check_error([&a] { a.backward(); }, ErrorCode::invalid_argument,
                "gradients.key shares memory with gradients.value");
  }
}

TEST_CASE("terms that do not fit, and gradients of terms that are not there, are named") {
  Arguments a;
  const auto forward = [&a] { a.forward(); };
  const auto backward = [&a] { a.backward(); };
  // A bias of three values on the 3 x 5 pairs, one for each of the four heads.
  std::vector<float> bias(12), grad_bias(24), sinks(4), grad_sinks(4);
  a.terms.bias = {from_csr({3, 5, {0, 1, 2, 3}, {0, 2, 4}}), {bias.data(), {1, 4, 1, 3}}};
  a.terms.sinks = sinks;
  a.gradients.bias = {grad_bias.data(), {1, 4, 1, 3}};
  a.gradients.sinks = grad_sinks;
  SUBCASE("what fits is accepted") {
    forward();
    backward();
  }
  SUBCASE("a term") {
    a.terms.softcap = -1;
    const std::string message = "softcap = -1.000000, expected a positive finite number, or 0 for none";
    check_error(forward, ErrorCode::invalid_argument, message);
    check_error(backward, ErrorCode::invalid_argument, message);
  }
  SUBCASE("strides of a bias") {
    a.terms.bias.values = {bias.data(), {1, 4, 1, 3}, {0, std::int64_t{1} << 61, 0, 1}};
    check_error(forward, ErrorCode::overflow, "bias.values reaches over more bytes than 64 bits can count");
  }
  SUBCASE("the shape of the gradient of a bias") {
    a.gradients.bias = {grad_bias.data(), {2, 4, 1, 3}};
    check_error(backward, ErrorCode::shape_mismatch,
                "gradients.bias is 2 x 4 x 1 x 3, expected 1 x 4 x 1 x 3 (that of terms.bias.values)");
  }
  SUBCASE("gaps in the gradient of a bias") {
    a.gradients.bias = {grad_bias.data(), {1, 4, 1, 3}, {24, 6, 6, 2}};
    check_error(backward, ErrorCode::invalid_argument,
                "gradients.bias has a stride of 2 between the values of a matrix, expected 1");
  }
  SUBCASE("the gradient of a bias for two heads in one place") {
    a.gradients.bias = {grad_bias.data(), {1, 4, 1, 3}, {0, 0, 0, 1}};
    check_error(backward, ErrorCode::invalid_argument,
                "gradients.bias overlaps itself: a stride of 0 along an axis of 4 must exceed 0");
  }
  SUBCASE("the gradient of no bias") {
    a.terms.bias = {};
    check_error(backward, ErrorCode::invalid_argument, "gradients.bias is given, but terms has no bias");
  }
  SUBCASE("the gradient of no sinks") {
    a.terms.sinks = {};
    check_error(backward, ErrorCode::invalid_argument, "gradients.sinks is given, but terms has no sinks");
  }
  SUBCASE("the number of gradients of sinks") {
    a.gradients.sinks = a.gradients.sinks.first(2);
    check_error(backward, ErrorCode::shape_mismatch,
                "gradients.sinks has 2 entries, expected one for each of 4 query heads");
  }
  SUBCASE("gradients in place of their terms") {
    a.gradients.bias = {bias.data(), {1, 4, 1, 3}};
    check_error(backward, ErrorCode::invalid_argument, "gradients.bias shares memory with bias.values");
    a.gradients.bias = {grad_bias.data(), {1, 4, 1, 3}};
    a.gradients.sinks = sinks;
    check_error(backward, ErrorCode::invalid_argument, "gradients.sinks shares memory with sinks");
  }
  SUBCASE("an output in place of a term") {
    a.terms.sinks = {a.result.lse.data(), 4};
    check_error(forward, ErrorCode::invalid_argument, "result.lse shares memory with sinks");
  }
}

TEST_CASE("gradients may be interleaved in one array, as those of a packed projection are") {
  const Plan plan = make_plan(causal(20), {.head_dim = 3, .query_heads = 2});
  const Inputs<double> inputs = normal_inputs<double>(plan, 3);
  const Attention<double> attention = run_forward(plan, inputs);
  const Gradients<double> apart = run_backward(plan, inputs, attention);
  // tokens x {query, key, value} x heads x features
  std::vector<double> packed(20 * 3 * 2 * 3);
  const auto third = [&packed](std::int64_t index) {
    return TensorView<double>(packed.data() + index * 6, {1, 2, 20, 3}, {360, 3, 18, 1});
  };
  Workspace workspace;
  backward(plan, TensorView<const double>(inputs.query), TensorView<const double>(inputs.key),
           TensorView<const double>(inputs.value), attention.view(), TensorView<const double>(inputs.grad_output),
           GradientsView<double>{third(0), third(1), third(2)}, workspace, BackwardOptions<double>{inputs.grad_lse});
  CHECK(same_bits(third(0), apart.query.view()));
  CHECK(same_bits(third(1), apart.key.view()));
  CHECK(same_bits(third(2), apart.value.view()));
}

TEST_CASE_TEMPLATE("the twins write every element of strided outputs and nothing between them", T, float, double) {
  const Plan plan = make_plan(window(30, 5, 5) - window(30, 0, 0),
                              {.head_dim = 3, .value_dim = 4, .query_heads = 4, .key_value_heads = 2, .batch = 2});
  const Inputs<T> inputs = normal_inputs<T>(plan, 4);
  const Results<T> dense = run(plan, inputs);
  for (const Layout layout : kOutputLayouts) {
    CAPTURE(to_string(layout));
    // Memory starts as NaN: an element left out, or a gradient added to what was there, shows.
    const LaidOut<T> output(output_shape(plan), layout), lse(lse_shape(plan), layout);
    const LaidOut<T> query(query_shape(plan), layout), key(key_shape(plan), layout), value(value_shape(plan), layout);
    Workspace workspace;
    forward(plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key), TensorView<const T>(inputs.value),
            AttentionView<T>{output, lse}, workspace);
    backward(plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key),
             TensorView<const T>(inputs.value), AttentionView<const T>{output, lse},
             TensorView<const T>(inputs.grad_output), GradientsView<T>{query, key, value}, workspace,
             BackwardOptions<T>{inputs.grad_lse});
    CHECK(same_bits(output.view(), dense.attention.output.view()));
    CHECK(same_bits(lse.view(), dense.attention.lse.view()));
    CHECK(same_bits(query.view(), dense.gradients.query.view()));
    CHECK(same_bits(key.view(), dense.gradients.key.view()));
    CHECK(same_bits(value.view(), dense.gradients.value.view()));
    const auto written = [](const LaidOut<T>& tensor) {
      return std::count_if(tensor.memory().begin(), tensor.memory().end(), [](T x) { return !std::isnan(x); });
    };
    CHECK(written(output) == output.view().shape().size());
    CHECK(written(query) == query.view().shape().size());
    CHECK(written(key) == key.view().shape().size());
  }
}
