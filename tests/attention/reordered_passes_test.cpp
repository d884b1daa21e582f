#include "attention/reordered_passes.hpp"

#include <doctest/doctest.h>

#include "support/attention_inputs.hpp"
#include "support/error_of.hpp"
#include "support/random.hpp"
#include "support/shuffled.hpp"

using namespace cobble;
using namespace cobble::test;

namespace {

/// Blocks whose rows and columns have been shuffled.
Pattern shuffled_blocks() {
  Random random(7);
  return shuffled(random_blocks(512, 64, 2, 5), random);
}

}  // namespace

TEST_CASE_TEMPLATE("a plan that reorders tokens gives the results of one that does not", T, float, double) {
  const Problem problem = {.head_dim = 9, .value_dim = 5, .query_heads = 4, .key_value_heads = 2, .batch = 2};
  for (const ReorderMethod method : {ReorderMethod::similarity, ReorderMethod::amd, ReorderMethod::automatic}) {
    const Plan plan = make_plan(shuffled_blocks(), problem, {.element_bytes = sizeof(T), .reorder = method});
    if (method != ReorderMethod::automatic) {
      REQUIRE(plan.reordering() != nullptr);
      CHECK(plan.reordering()->method == method);
    }
    CHECK(plan.patterns().patterns().front().pairs() == shuffled_blocks().pairs());
    const Inputs<T> inputs = normal_inputs<T>(plan, 3);
    check_close(run(plan, inputs), reference_of(plan, inputs));
  }
}

TEST_CASE("similarity fills the tiles of shuffled blocks again, and the plan moves less") {
  const Plan before = make_plan(shuffled_blocks(), {.head_dim = 64});
  const Plan after = make_plan(shuffled_blocks(), {.head_dim = 64}, {.reorder = ReorderMethod::similarity});
  const auto words = [](const Plan& plan) {
    for (const PlanCandidate& candidate : plan.candidates()) {
      if (candidate.chosen) return candidate.forward_words + candidate.backward_words;
    }
    return std::int64_t{0};
  };
  CHECK(2 * words(after) < words(before));
}

TEST_CASE("automatic keeps the caller's order where another gains nothing") {
  const Plan plan = make_plan(causal(300), {.head_dim = 16}, {.reorder = ReorderMethod::automatic});
  CHECK(plan.reordering() == nullptr);
}

TEST_CASE("automatic reorders where the saving that is predicted beats the time of copying, and nowhere else") {
  Random random(8);
  const PlanCandidate none;
  const auto chosen = [&](const Plan& plan) {
    for (const PlanCandidate& candidate : plan.candidates()) {
      if (candidate.chosen) return candidate;
    }
    return none;
  };
  int reordered = 0;
  int kept = 0;
  for (const double bytes_per_second : {3e8, 3e10}) {
    for (const Pattern& pattern : {shuffled_blocks(), shuffled(random_blocks(1024, 16, 4, 2), random),
                                   shuffled(documents(std::vector<std::int64_t>(20, 50)), random, 0.3),
                                   shuffled(window(600, 20, 20), random), random_pairs(512, 512, 30, 3)}) {
      const ReorderMethod method = reorder(pattern).method;
      if (method == ReorderMethod::identity) continue;
      for (const std::int64_t d : {16, 64}) {
        const Problem problem{.head_dim = d, .query_heads = 2};
        PlanOptions options{.threads = 2, .cost_model = {.bytes_per_second = bytes_per_second}};
        const double before = chosen(make_plan(pattern, problem, options)).seconds;
        options.reorder = method;
        const double after = chosen(make_plan(pattern, problem, options)).seconds;
        options.reorder = ReorderMethod::automatic;
        const Plan plan = make_plan(pattern, problem, options);
        // q, o, dO, dq and o again: 4 d + 4 d_v words of each query, 3 d + 3 d_v of each key, read and written, twice
        // for rows at random places; on two threads.
        const double words = 2 * static_cast<double>((8 * pattern.rows() + 6 * pattern.columns()) * d);
        const double copying = 4 * words * 4 / bytes_per_second / 2;
        CAPTURE(pattern.describe());
        CAPTURE(d);
        CAPTURE(before);
        CAPTURE(after);
        CAPTURE(copying);
        CHECK((plan.reordering() != nullptr) == (before - after > copying));
        CHECK(chosen(plan).seconds == (plan.reordering() != nullptr ? after : before));
        plan.reordering() != nullptr ? ++reordered : ++kept;
      }
    }
  }
  CHECK(reordered > 2);
  CHECK(kept > 2);
}

TEST_CASE("reordering keeps to one pattern, to passes without weights, and to terms without positions") {
  const PatternGrid two({causal(8), full(8)}, 1, 2);
  CHECK(error_of([&] {
          make_plan(two, {.query_heads = 2}, {.reorder = ReorderMethod::amd});
        }).starts_with("unsupported: reorder"));
  CHECK(error_of([&] {
          make_plan(causal(8), {}, {.parameter_gradients = true, .reorder = ReorderMethod::amd});
        }).starts_with("unsupported: reorder"));
  const Plan plan = make_plan(causal(8), {.head_dim = 4}, {.reorder = ReorderMethod::amd});
  const Inputs<float> inputs = normal_inputs<float>(plan, 4);
  const std::vector<double> slopes = {0.5};
  ScoreTerms<float> terms;
  terms.alibi_slopes = slopes;
  CHECK(error_of([&] {
          forward(plan, inputs.query.view(), inputs.key.view(), inputs.value.view(), terms);
        }).starts_with("unsupported: terms"));
  terms.alibi_slopes = {};
  terms.softcap = 5;
  CHECK(forward(plan, inputs.query.view(), inputs.key.view(), inputs.value.view(), terms).output.shape().tokens == 8);
}
