#include "check.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/half.hpp"
#include "problem_tensors.hpp"
#include "random.hpp"

using namespace cobble;
using namespace cobble::program;

namespace {

/// A problem, its results, and their check; results can be spoilt in between.
struct CheckedRun {
  explicit CheckedRun(const Pattern& checked_pattern, std::int64_t heads = 1, bool with_terms = false)
      : pattern(checked_pattern) {
    ProblemArguments arguments;
    arguments.heads = heads;
    arguments.head_dim = 8;
    tensors = make_problem_tensors<double>(pattern, arguments);
    PlanOptions options;
    options.element_bytes = sizeof(double);
    const Plan plan = make_plan(pattern, tensors.problem, options);
    BackwardOptions<double> backward_options;
    if (with_terms) {  // a bias on the pattern itself, for each head
      bias_and_sinks.resize(static_cast<std::size_t>(heads * (pattern.pairs() + 1)));
      fill_random(std::span(bias_and_sinks), 1, 99);
      const Pattern structure = from_csr(pattern.to_csr());
      terms.bias = {structure, {bias_and_sinks.data(), {1, heads, 1, pattern.pairs()}}};
      terms.sinks = std::span(bias_and_sinks).last(static_cast<std::size_t>(heads));
      backward_options.terms = terms;
      backward_options.bias_gradient = true;
    }
    result = forward(plan, tensors.query.view(), tensors.key.view(), tensors.value.view(), terms);
    gradients = backward(plan, tensors.query.view(), tensors.key.view(), tensors.value.view(), result,
                         tensors.grad_output.view(), backward_options);
  }

  CheckResult check() {
    return check_against_reference<double>({pattern,
                                            tensors.query.view(),
                                            tensors.key.view(),
                                            tensors.value.view(),
                                            tensors.grad_output.view(),
                                            {},
                                            {},
                                            terms},
                                           result, std::as_const(gradients).view(), 1);
  }

  Pattern pattern;
  ProblemTensors<double> tensors;
  Attention<double> result;
  Gradients<double> gradients;
  std::vector<double> bias_and_sinks;
  ScoreTerms<double> terms;
};

}  // namespace

TEST_CASE("a correct result passes, whole and sampled") {
  CheckedRun small(window(100, 9, 3), 2);
  const CheckResult all = small.check();
  CHECK(all.passed());
  CHECK(all.query_tokens == 100);
  CheckedRun large(window(5000, 9, 3));
  const CheckResult sampled = large.check();
  CHECK(sampled.passed());
  CHECK(sampled.query_tokens == 64);
  CHECK(sampled.key_tokens == 16);
}

TEST_CASE("one wrong number fails the check and is named") {
  const auto spoil = [](auto&& change) {
    CheckedRun run(window(100, 9, 3), 2);
    change(run);
    const CheckResult check = run.check();
    CHECK_FALSE(check.passed());
    return std::string(check.worst().name);
  };
  CHECK(spoil([](CheckedRun& run) { run.result.output(0, 1, 99, 7) += 1e-9; }) == "output");
  CHECK(spoil([](CheckedRun& run) { run.result.lse(0, 0, 50, 0) += 1e-9; }) == "lse");
  CHECK(spoil([](CheckedRun& run) { run.gradients.query(0, 1, 0, 0) += 1e-9; }) == "grad_query");
  CHECK(spoil([](CheckedRun& run) { run.gradients.key(0, 0, 3, 5) += 1e-9; }) == "grad_key");
  CHECK(spoil([](CheckedRun& run) { run.gradients.value(0, 1, 98, 2) = std::nan(""); }) == "grad_value");
}

TEST_CASE("the gradients of terms are checked, whole and sampled") {
  CheckedRun small(window(100, 9, 3), 2, true);
  CHECK(small.check().passed());
  CHECK(small.check().errors.size() == 7);
  small.gradients.bias(0, 1, 0, 700) += 1e-9;
  CHECK_FALSE(small.check().passed());
  CHECK(std::string(small.check().worst().name) == "grad_bias");
  CheckedRun large(window(5000, 9, 3), 2, true);
  CHECK(large.check().passed());
  large.gradients.sinks(0, 1, 0, 0) *= 1 + 1e-9;
  CHECK_FALSE(large.check().passed());
  CHECK(std::string(large.check().worst().name) == "grad_sinks");
  large.gradients.bias(0, 0, 0, 0) += 1e-3;  // the first row is always in the sample
  CHECK(std::string(large.check().worst().name) == "grad_bias");
}

TEST_CASE("what halves are allowed is a few times the rounding of their type") {
  CHECK(check_tolerance<bfloat16>() == doctest::Approx(2e-5 + 0x1p-6));
  CHECK(check_tolerance<float16>() == doctest::Approx(2e-5 + 0x1p-9));
}

TEST_CASE("the errors of an entry that is not finite are infinite, unless the reference says the same") {
  CheckedRun run(causal(20, 10));  // ten rows without a pair: lse -infinity
  CHECK(run.check().passed());
  run.result.lse(0, 0, 0, 0) = -1e300;
  CHECK(run.check().errors[1].relative == std::numeric_limits<double>::infinity());
}

TEST_CASE("gradients that cancel to 0 are not measured against their own rounding") {
  CheckedRun run(dilated(64, 0, 1));  // one pair a row: the score's gradient is 0
  CHECK(run.check().passed());
  run.gradients.query(0, 0, 5, 5) += 1e-6;
  CHECK_FALSE(run.check().passed());
}
