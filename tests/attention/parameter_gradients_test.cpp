#include "cobble/parameter_gradients.hpp"

#include <doctest/doctest.h>
#include <oneapi/tbb/task_arena.h>

#include <cmath>
#include <string>
#include <vector>

#include "cobble/error.hpp"
#include "cobble/pattern.hpp"
#include "cobble/pebble.hpp"
#include "support/error_of.hpp"
#include "support/random.hpp"

using namespace cobble;

namespace {

constexpr std::int64_t kQueryHeads = 4;
constexpr std::int64_t kKeyValueHeads = 2;
constexpr std::int64_t kHeadDim = 6;
constexpr std::int64_t kValueDim = 5;

struct Setting {
  const char* pattern;
  Schedule schedule;
  TileSizes tile_sizes;
  std::int64_t fast_memory_words;
};

Plan parameter_plan(const Setting& setting) {
  PlanOptions options;
  options.parameter_gradients = true;
  options.schedule = setting.schedule;
  options.tile_sizes = setting.tile_sizes;
  options.element_bytes = sizeof(double);
  options.fast_memory_bytes = setting.fast_memory_words * options.element_bytes;
  return make_plan(
      parse_pattern(setting.pattern),
      {.head_dim = kHeadDim, .value_dim = kValueDim, .query_heads = kQueryHeads, .key_value_heads = kKeyValueHeads},
      options);
}

/// A1, A2, A3, X, Y and the target E.
struct Tensors {
  Tensor<double> query_input, key, value_input, score_weights, value_weights, target;

  explicit Tensors(const Plan& plan, std::uint64_t seed = 1) {
    const std::int64_t n_q = plan.patterns().rows();
    const std::int64_t n_k = plan.patterns().columns();
    query_input = Tensor<double>({1, kQueryHeads, n_q, kHeadDim});
    key = Tensor<double>({1, kKeyValueHeads, n_k, kHeadDim});
    value_input = Tensor<double>({1, kKeyValueHeads, n_k, kHeadDim});
    score_weights = Tensor<double>({1, kQueryHeads, kHeadDim, kHeadDim});
    value_weights = Tensor<double>({1, kKeyValueHeads, kHeadDim, kValueDim});
    target = Tensor<double>({1, kQueryHeads, n_q, kValueDim});
    test::Random random(seed);
    for (Tensor<double>* tensor : {&query_input, &key, &value_input, &score_weights, &value_weights, &target}) {
      for (double& element : tensor->values()) element = random.normal();
    }
  }

  ParameterInputs<double> inputs() const { return {query_input, key, value_input, score_weights, value_weights}; }
};

/// dO = O - E; the loss is half its square.
Tensor<double> residual(const Plan& plan, const Tensors& tensors) {
  Attention<double> result = parameter_forward(plan, tensors.inputs());
  for (std::size_t i = 0; i < tensors.target.values().size(); ++i) {
    result.output.values()[i] -= tensors.target.values()[i];
  }
  return std::move(result.output);
}

double loss(const Plan& plan, const Tensors& tensors) {
  const Tensor<double> difference = residual(plan, tensors);
  double sum = 0;
  for (const double element : difference.values()) sum += element * element;
  return sum / 2;
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const char* pattern : {"causal(37)", "window(40x33,5,2)", "random(33,4)"}) {
    for (const Schedule schedule : {Schedule::recompute, Schedule::materialize}) {
      for (const TileSizes sizes : {TileSizes::hardware, TileSizes::model}) {
        for (const std::int64_t words : {256, 1 << 16}) all.push_back({pattern, schedule, sizes, words});
      }
    }
  }
  all.push_back({"causal(37)", Schedule::materialize, TileSizes::model, 64});
  return all;
}

}  // namespace

TEST_CASE("gradients of the weights equal finite differences of the loss") {
  for (const Setting& setting : settings()) {
    const Plan plan = parameter_plan(setting);
    Tensors tensors(plan);
    const ParameterGradients<double> gradients = parameter_gradients(plan, tensors.inputs(), residual(plan, tensors));
    const std::string schedule(to_string(setting.schedule));
    const std::string pattern = setting.pattern;
    CAPTURE(pattern);
    CAPTURE(schedule);
    CAPTURE(setting.fast_memory_words);
    const auto check = [&](Tensor<double>& weights, const Tensor<double>& gradient) {
      constexpr double kStep = 1e-5;
      for (std::size_t i = 0; i < weights.values().size(); i += 7) {
        double& weight = weights.values()[i];
        const double before = weight;
        weight = before + kStep;
        const double above = loss(plan, tensors);
        weight = before - kStep;
        const double below = loss(plan, tensors);
        weight = before;
        const double difference = (above - below) / (2 * kStep);
        CHECK(gradient.values()[i] == doctest::Approx(difference).epsilon(1e-6).scale(1));
      }
    };
    check(tensors.score_weights, gradients.score_weights);
    check(tensors.value_weights, gradients.value_weights);
  }
}

TEST_CASE("gradients of the weights follow from those of queries and values") {
  const Setting setting = {"window(700,20,3)", Schedule::automatic, TileSizes::hardware, 1 << 14};
  const Plan plan = parameter_plan(setting);
  const Tensors tensors(plan);
  const ParameterInputs<double> inputs = tensors.inputs();
  const Tensor<double>& grad_output = tensors.target;
  const ParameterGradients<double> gradients = parameter_gradients(plan, inputs, grad_output);

  // The same by the products written out, around a plan for dQ and dV.
  const auto product = [](const Tensor<double>& a, const Tensor<double>& b, bool transpose_a) {
    const TensorShape left = a.shape();
    const std::int64_t rows = transpose_a ? left.features : left.tokens;
    const std::int64_t inner = transpose_a ? left.tokens : left.features;
    Tensor<double> c({left.batch, left.heads, rows, b.shape().features});
    for (double& element : c.values()) element = 0;
    for (std::int64_t h = 0; h < left.heads; ++h) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t k = 0; k < inner; ++k) {
          const double factor = transpose_a ? a(0, h, k, i) : a(0, h, i, k);
          for (std::int64_t j = 0; j < b.shape().features; ++j) c(0, h, i, j) += factor * b(0, h, k, j);
        }
      }
    }
    return c;
  };
  const Tensor<double> query = product(tensors.query_input, tensors.score_weights, false);
  const Tensor<double> value = product(tensors.value_input, tensors.value_weights, false);
  const Plan plain = make_plan(
      parse_pattern(setting.pattern),
      {.head_dim = kHeadDim, .value_dim = kValueDim, .query_heads = kQueryHeads, .key_value_heads = kKeyValueHeads});
  const Attention<double> result = forward(plain, query, tensors.key, value);
  const Gradients<double> plain_gradients = backward(plain, query, tensors.key, value, result, grad_output);
  const Tensor<double> score_weights = product(tensors.query_input, plain_gradients.query, true);
  const Tensor<double> value_weights = product(tensors.value_input, plain_gradients.value, true);
  const auto check = [](const Tensor<double>& actual, const Tensor<double>& expected) {
    double largest = 0;
    for (const double element : expected.values()) largest = std::max(largest, std::abs(element));
    for (std::size_t i = 0; i < expected.values().size(); ++i) {
      CHECK(std::abs(actual.values()[i] - expected.values()[i]) < 1e-12 * largest);
    }
  };
  check(gradients.score_weights, score_weights);
  check(gradients.value_weights, value_weights);
}

TEST_CASE("descending along the gradients lowers the loss at every step") {
  const Plan plan = parameter_plan({"causal(60)", Schedule::automatic, TileSizes::hardware, 1 << 14});
  Tensors tensors(plan);
  double before = loss(plan, tensors);
  for (int step = 0; step < 20; ++step) {
    const ParameterGradients<double> gradients = parameter_gradients(plan, tensors.inputs(), residual(plan, tensors));
    const auto descend = [](Tensor<double>& weights, const Tensor<double>& gradient) {
      for (std::size_t i = 0; i < weights.values().size(); ++i) weights.values()[i] -= 2e-3 * gradient.values()[i];
    };
    descend(tensors.score_weights, gradients.score_weights);
    descend(tensors.value_weights, gradients.value_weights);
    const double after = loss(plan, tensors);
    CAPTURE(step);
    CHECK(after < before);
    before = after;
  }
}

TEST_CASE("gradients of the weights have the same bits for any number of threads") {
  for (const Schedule schedule : {Schedule::recompute, Schedule::materialize}) {
    const Plan plan = parameter_plan({"causal(900)", schedule, TileSizes::hardware, 1 << 12});
    const Tensors tensors(plan);
    const auto run = [&](int threads) {
      oneapi::tbb::task_arena arena(threads);
      return arena.execute([&] { return parameter_gradients(plan, tensors.inputs(), tensors.target); });
    };
    const ParameterGradients<double> one = run(1);
    for (const int threads : {2, 5}) {
      const ParameterGradients<double> many = run(threads);
      CHECK(std::equal(one.score_weights.values().begin(), one.score_weights.values().end(),
                       many.score_weights.values().begin()));
      CHECK(std::equal(one.value_weights.values().begin(), one.value_weights.values().end(),
                       many.value_weights.values().begin()));
    }
  }
}

TEST_CASE("the pebble machine counts what the planner predicted for parameter gradients") {
  for (const Setting& setting : settings()) {
    const Plan plan = parameter_plan(setting);
    const PebbleCount count = count_parameter_gradients(plan);
    for (const PlanCandidate& candidate : plan.candidates()) {
      if (candidate.chosen) CHECK(candidate.backward_words == count.counted());
    }
    CHECK(count.peak_resident <= plan.fast_memory_words());
  }
}

TEST_CASE("a plan serves the gradients that it was made for") {
  const Plan parameters = parameter_plan({"full(8)", Schedule::automatic, TileSizes::hardware, 1 << 12});
  const Plan plain = make_plan(
      full(8),
      {.head_dim = kHeadDim, .value_dim = kValueDim, .query_heads = kQueryHeads, .key_value_heads = kKeyValueHeads});
  const Tensors tensors(plain);
  CHECK_THROWS_WITH_AS(parameter_gradients(plain, tensors.inputs(), tensors.target),
                       "the plan was not made with PlanOptions::parameter_gradients", Error);
  CHECK_THROWS_WITH_AS(count_parameter_gradients(plain), "the plan was not made with PlanOptions::parameter_gradients",
                       Error);
  const Tensor<double> query({1, kQueryHeads, 8, kHeadDim});
  const Tensor<double> value({1, kKeyValueHeads, 8, kValueDim});
  const Attention<double> result = forward(plain, query, tensors.key, value);
  CHECK_THROWS_WITH_AS(backward(parameters, query, tensors.key, value, result, tensors.target),
                       "the plan was made for parameter gradients; use parameter_gradients()", Error);

  ParameterInputs<double> wrong = tensors.inputs();
  wrong.score_weights = tensors.query_input;
  CHECK_THROWS_WITH_AS(parameter_forward(parameters, wrong),
                       "score_weights is 1 x 4 x 8 x 6, expected 1 x 4 x 6 x 6 (batch x query heads x head_dim x "
                       "head_dim)",
                       Error);
}
