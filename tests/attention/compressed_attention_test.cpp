#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cobble/compressed_attention.hpp"
#include "core/checked.hpp"
#include "plan/plan_data.hpp"
#include "support/attention_inputs.hpp"
#include "support/error_of.hpp"
#include "support/sample_patterns.hpp"
#include "support/shuffled.hpp"
#include "support/sparse.hpp"
#include "support/threads.hpp"

// forward and backward with Q, K and V in all storages, against the reference on the same tensors in full.

using namespace cobble;
using namespace cobble::test;

namespace {

/// Few entries are multiplied one by one or block by block, many in full panels.
enum class Density { few, some, many };
constexpr std::array kDensities{Density::few, Density::some, Density::many};

template <class T>
Features<T> compressed(const TensorView<const T>& tensor, FeatureStorage storage, Density density) {
  const bool few = density == Density::few;
  const bool some = density == Density::some;
  switch (storage) {
    case FeatureStorage::csr: return compress_threshold<T>(tensor, few ? T(1.3) : some ? T(1) : T(0.5));
    case FeatureStorage::bsr:
      return some ? compress_top_k_blocks<T>(tensor, 1, 5, 4)
                  : compress_top_k_blocks<T>(tensor, few ? 1 : 3, 3, few ? 2 : 5);
    case FeatureStorage::dense: break;
  }
  return converted<T>(tensor);
}

template <class T>
Tensor<T> in_full(const Features<T>& features) {
  if (const auto* dense = std::get_if<Tensor<T>>(&features)) return converted<T>(dense->view());
  if (const auto* csr = std::get_if<CsrTensor<T>>(&features)) return to_dense(*csr);
  return to_dense(std::get<BsrTensor<T>>(features));
}

/// 1 where a compressed tensor stores something.
template <class Compressed>
auto stored_places(Compressed tensor) {
  for (std::int64_t b = 0; b < tensor.shape().batch; ++b) {
    for (std::int64_t h = 0; h < tensor.shape().heads; ++h) {
      for (auto& value : tensor.values(b, h)) value = 1;
    }
  }
  return to_dense(tensor);
}

template <class T>
Tensor<T> stored_places(const Features<T>& features) {
  if (const auto* csr = std::get_if<CsrTensor<T>>(&features)) return stored_places(*csr);
  return stored_places(std::get<BsrTensor<T>>(features));
}

/// Of the first batch entry and head; where a tensor is dense, any entry of it.
template <class T>
void set_stored_entry(Features<T>& features, std::size_t place, T value) {
  if (auto* dense = std::get_if<Tensor<T>>(&features)) {
    dense->values()[place] = value;
  } else if (auto* csr = std::get_if<CsrTensor<T>>(&features)) {
    csr->values(0, 0)[place] = value;
  } else {
    std::get<BsrTensor<T>>(features).values(0, 0)[place] = value;
  }
}

bool has_empty_row(const Tensor<double>& lse) {
  const auto values = lse.values();
  return std::any_of(values.begin(), values.end(),
                     [](double value) { return value == -std::numeric_limits<double>::infinity(); });
}

template <class T>
struct CompressedInputs {
  Features<T> query;
  Features<T> key;
  Features<T> value;
  LaidOut<T> grad_output;
  LaidOut<T> grad_lse;
};

struct Storages {
  FeatureStorage query;
  FeatureStorage key;
  FeatureStorage value;
};

std::vector<Storages> all_storages() {
  std::vector<Storages> all;
  for (const auto q : {FeatureStorage::dense, FeatureStorage::csr, FeatureStorage::bsr}) {
    for (const auto k : {FeatureStorage::dense, FeatureStorage::csr, FeatureStorage::bsr}) {
      for (const auto v : {FeatureStorage::dense, FeatureStorage::csr, FeatureStorage::bsr}) all.push_back({q, k, v});
    }
  }
  return all;
}

template <class T>
CompressedInputs<T> compressed_inputs(const Plan& plan, const Storages& storages, Density density) {
  Inputs<T> inputs = normal_inputs<T>(plan, 11);
  return {compressed<T>(inputs.query, storages.query, density), compressed<T>(inputs.key, storages.key, density),
          compressed<T>(inputs.value, storages.value, density), std::move(inputs.grad_output),
          std::move(inputs.grad_lse)};
}

template <class T>
struct CompressedResults {
  Attention<T> attention;
  FeatureGradients<T> gradients;
};

template <class T>
CompressedResults<T> run(const Plan& plan, const CompressedInputs<T>& inputs,
                         GradientStorage storage = GradientStorage::as_input, const ScoreTerms<T>& terms = {}) {
  CompressedResults<T> results;
  results.attention = forward<T>(plan, inputs.query, inputs.key, inputs.value, terms);
  results.gradients = backward<T>(plan, inputs.query, inputs.key, inputs.value, results.attention, inputs.grad_output,
                                  {.grad_lse = inputs.grad_lse, .terms = terms}, storage);
  return results;
}

template <class T>
ReferenceResult reference_of(const Plan& plan, const CompressedInputs<T>& inputs, const ScoreTerms<T>& terms = {}) {
  const Tensor<T> query = in_full(inputs.query);
  const Tensor<T> key = in_full(inputs.key);
  const Tensor<T> value = in_full(inputs.value);
  return reference_attention(ReferenceProblem<T>{plan.patterns(), query, key, value, inputs.grad_output,
                                                 inputs.grad_lse, plan.problem().scale, terms});
}

/// The reference's gradient where the input stores something, if the gradient has its storage.
template <class T>
void check_gradient(const Features<T>& gradient, const Features<T>& input, Tensor<double> expected, double tolerance) {
  if (gradient.index() != 0) {
    REQUIRE(gradient.index() == input.index());
    const Tensor<T> places = stored_places(input);
    for_each_index(expected.shape(), [&](auto b, auto h, auto t, auto f) {
      if (places(b, h, t, f) == T{0}) expected(b, h, t, f) = 0;
    });
  }
  CHECK(max_relative_error(in_full(gradient).view(), expected.view()) < tolerance);
}

template <class T>
void check_close(const CompressedResults<T>& results, const CompressedInputs<T>& inputs,
                 const ReferenceResult& reference, double tolerance = kTolerance<T>) {
  CHECK(max_relative_error(results.attention.output.view(), reference.output.view()) < tolerance);
  CHECK(max_relative_error(results.attention.lse.view(), reference.lse.view()) < tolerance);
  check_gradient(results.gradients.query, inputs.query, converted<double>(reference.grad_query.view()), tolerance);
  check_gradient(results.gradients.key, inputs.key, converted<double>(reference.grad_key.view()), tolerance);
  check_gradient(results.gradients.value, inputs.value, converted<double>(reference.grad_value.view()), tolerance);
}

template <class T>
bool same_bits(const Features<T>& a, const Features<T>& b) {
  return test::same_bits(in_full(a), in_full(b));
}
template <class T>
bool same_bits(const CompressedResults<T>& a, const CompressedResults<T>& b) {
  return test::same_bits(a.attention, b.attention) && same_bits(a.gradients.query, b.gradients.query) &&
         same_bits(a.gradients.key, b.gradients.key) && same_bits(a.gradients.value, b.gradients.value);
}

struct Sample {
  std::string name;
  Plan plan;
};

/// Tiles that are full, have intervals, bits, lists of pairs; all schedules; panels that cut blocks of tokens.
std::vector<Sample> samples() {
  const Problem problem{.head_dim = 24, .value_dim = 17, .query_heads = 2, .key_value_heads = 1};
  return {
      {"causal", make_plan(causal(37), {.head_dim = 24, .value_dim = 17, .query_heads = 2, .batch = 2})},
      {"window", make_plan(window(53, 9, 2), problem, {.row_panel = 16, .column_panel = 16})},
      {"random", make_plan(random_pairs(45, 70, 3, 5), problem)},
      {"half of all", make_plan(random_pairs(40, 40, 20, 5), problem, {.row_panel = 16, .column_panel = 40})},
      {"documents, two passes", make_plan(documents(std::vector<std::int64_t>{7, 1, 20, 12}), problem,
                                          {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::two})},
      {"materialized, small memory",
       make_plan(window(40, 12, 5), problem, {.schedule = Schedule::materialize, .fast_memory_bytes = 1500})},
      {"recompute, small memory",
       make_plan(causal(40), problem, {.schedule = Schedule::recompute, .fast_memory_bytes = 1500})},
  };
}

constexpr Storages kAllCsr{FeatureStorage::csr, FeatureStorage::csr, FeatureStorage::csr};
constexpr Storages kAllBsr{FeatureStorage::bsr, FeatureStorage::bsr, FeatureStorage::bsr};
constexpr Storages kDenseKey{FeatureStorage::csr, FeatureStorage::dense, FeatureStorage::bsr};
constexpr Storages kMixed{FeatureStorage::csr, FeatureStorage::bsr, FeatureStorage::csr};

}  // namespace

TEST_CASE_TEMPLATE("any storage of Q, K and V gives what the reference gives for the tensors in full", T, float,
                   double) {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    for (const Storages& storages : all_storages()) {
      CAPTURE(static_cast<int>(storages.query));
      CAPTURE(static_cast<int>(storages.key));
      CAPTURE(static_cast<int>(storages.value));
      for (const Density density : kDensities) {
        CAPTURE(static_cast<int>(density));
        const auto inputs = compressed_inputs<T>(sample.plan, storages, density);
        const ReferenceResult reference = reference_of(sample.plan, inputs);
        check_close(run(sample.plan, inputs), inputs, reference);
        check_close(run(sample.plan, inputs, GradientStorage::dense), inputs, reference);
      }
    }
  }
}

TEST_CASE_TEMPLATE("any storage of Q, K and V works with every kind of pattern", T, float, double) {
  const Problem problem{.head_dim = 17, .value_dim = 13, .query_heads = 2, .key_value_heads = 1};
  const std::vector<PlanOptions> all_options = {
      {},
      {.row_panel = 16, .column_panel = 16},
      {.schedule = Schedule::materialize},
      {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::two},
      {.schedule = Schedule::materialize, .fast_memory_bytes = 1200},
  };
  std::size_t turn = 0;
  for (const Size size : {Size{45, 45}, {21, 67}}) {
    CAPTURE(to_string(size));
    for (const SamplePattern& sample : named_sample_patterns(size.rows, size.columns)) {
      CAPTURE(sample.name);
      for (const Storages& storages : all_storages()) {
        CAPTURE(static_cast<int>(storages.query));
        CAPTURE(static_cast<int>(storages.key));
        CAPTURE(static_cast<int>(storages.value));
        const std::size_t option = ++turn % all_options.size();
        CAPTURE(option);
        const Plan plan = make_plan(sample.pattern, problem, all_options[option]);
        for (const Density density : kDensities) {
          CAPTURE(static_cast<int>(density));
          const auto inputs = compressed_inputs<T>(plan, storages, density);
          check_close(run(plan, inputs), inputs, reference_of(plan, inputs));
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("blocks of any shape work, and panels may cut them", T, float, double) {
  const Problem problem{.head_dim = 48, .value_dim = 32, .query_heads = 2, .key_value_heads = 1};
  const std::vector<Sample> plans = {
      {"window", make_plan(window(90, 30, 5), problem, {.row_panel = 16, .column_panel = 24})},
      {"causal", make_plan(causal(100), problem)},
      {"two passes",
       make_plan(causal(70), problem, {.schedule = Schedule::recompute, .backward_passes = BackwardPasses::two})},
      {"materialized",
       make_plan(window(70, 20, 20), problem, {.schedule = Schedule::materialize, .fast_memory_bytes = 3000})},
      {"several slices", make_plan(full(760), problem)},
  };
  for (const Sample& sample : plans) {
    CAPTURE(sample.name);
    for (const Size block : {Size{16, 16}, {5, 16}, {7, 32}, {16, 4}, {1, 16}, {24, 48}, {9, 3}, {2, 7}}) {
      CAPTURE(to_string(block));
      for (const std::int64_t share : {4, 2, 1}) {
        CAPTURE(share);
        Inputs<T> dense = normal_inputs<T>(sample.plan, 12);
        const auto blocks = [&](const LaidOut<T>& tensor) {
          const std::int64_t block_columns = divide_up(tensor.view().shape().features, std::int64_t{block.columns});
          return compress_top_k_blocks<T>(tensor, divide_up(block_columns, share), block.rows, block.columns);
        };
        const CompressedInputs<T> inputs{blocks(dense.query), blocks(dense.key), blocks(dense.value),
                                         std::move(dense.grad_output), std::move(dense.grad_lse)};
        check_close(run(sample.plan, inputs), inputs, reference_of(sample.plan, inputs));
      }
    }
  }
}

TEST_CASE("every candidate of sparse patterns takes any storage") {
  const Problem problem{.head_dim = 24, .value_dim = 17, .query_heads = 2, .key_value_heads = 1};
  int gathering = 0;
  for (const Pattern& pattern : {random_pairs(300, 260, 5, 1), power_law_graph(280, 12, 2),
                                 random_pairs(200, 200, 60, 3), random_blocks(256, 16, 3, 4)}) {
    CAPTURE(pattern.describe());
    for (std::int64_t index = 0; index < std::ssize(make_plan(pattern, problem).candidates()); ++index) {
      const Plan plan = make_plan(pattern, problem, {.candidate = index});
      CAPTURE(plan.candidates()[static_cast<std::size_t>(index)].name);
      gathering += plan.data().gathers ? 1 : 0;
      for (const Storages& storages : {kAllCsr, kAllBsr, kMixed, kDenseKey}) {
        CAPTURE(static_cast<int>(storages.key));
        for (const Density density : kDensities) {
          const auto inputs = compressed_inputs<float>(plan, storages, density);
          check_close(run(plan, inputs), inputs, reference_of(plan, inputs));
        }
      }
    }
  }
  CHECK(gathering > 0);
}

TEST_CASE_TEMPLATE("any storage works in a plan that reorders tokens", T, float, double) {
  Random random(9);
  const Problem problem{.head_dim = 24, .value_dim = 17, .query_heads = 2, .key_value_heads = 1, .batch = 2};
  const Pattern square = shuffled(random_blocks(150, 16, 2, 5), random);
  for (const Pattern& pattern : {square, random_pairs(70, 130, 6, 3)}) {
    CAPTURE(pattern.describe());
    const Plan plan = make_plan(pattern, problem, {.element_bytes = sizeof(T), .reorder = ReorderMethod::similarity});
    REQUIRE(plan.reordering() != nullptr);
    for (const Storages& storages : all_storages()) {
      CAPTURE(static_cast<int>(storages.query));
      CAPTURE(static_cast<int>(storages.key));
      CAPTURE(static_cast<int>(storages.value));
      for (const Density density : kDensities) {
        const auto inputs = compressed_inputs<T>(plan, storages, density);
        const ReferenceResult reference = reference_of(plan, inputs);
        check_close(run(plan, inputs), inputs, reference);
        check_close(run(plan, inputs, GradientStorage::dense), inputs, reference);
      }
    }
  }
}

TEST_CASE("terms that depend on positions are refused where tokens are reordered, others work") {
  const Plan plan =
      make_plan(random_pairs(60, 60, 6, 3), {.head_dim = 24, .value_dim = 17}, {.reorder = ReorderMethod::similarity});
  const auto inputs = compressed_inputs<double>(plan, kMixed, Density::some);
  const std::vector<double> slopes(1, 0.5);
  const ScoreTerms<double> alibi{.alibi_slopes = slopes};
  const Attention<double> result = forward<double>(plan, inputs.query, inputs.key, inputs.value);
  CHECK(error_of([&] {
          forward<double>(plan, inputs.query, inputs.key, inputs.value, alibi);
        }).starts_with("unsupported: terms have a bias or ALiBi slopes"));
  CHECK(error_of([&] {
          backward<double>(plan, inputs.query, inputs.key, inputs.value, result, inputs.grad_output, {.terms = alibi});
        }).starts_with("unsupported: terms have a bias or ALiBi slopes"));
  const std::vector<double> sinks(1, 0.3);
  const ScoreTerms<double> terms{.softcap = 2.0, .sinks = sinks};
  const auto results = run(plan, inputs, GradientStorage::as_input, terms);
  const ReferenceResult reference = reference_of(plan, inputs, terms);
  check_close(results, inputs, reference);
  CHECK(max_relative_error(results.gradients.sinks.view(), reference.grad_sinks.view()) < 1e-12);
}

TEST_CASE("terms of scores work with compressed inputs") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    const auto inputs = compressed_inputs<double>(sample.plan, kMixed, Density::few);
    const std::vector<double> slopes(2, 0.1);
    const std::vector<double> sinks(2, 0.3);
    const ScoreTerms<double> terms{.softcap = 2.0, .alibi_slopes = slopes, .sinks = sinks};
    const auto results = run(sample.plan, inputs, GradientStorage::as_input, terms);
    const ReferenceResult reference = reference_of(sample.plan, inputs, terms);
    check_close(results, inputs, reference);
    CHECK(max_relative_error(results.gradients.sinks.view(), reference.grad_sinks.view()) < 1e-12);
  }
}

TEST_CASE("gradients of stored entries are finite differences") {
  const Plan plan = make_plan(causal(6), {.head_dim = 8, .value_dim = 6});
  const auto inputs = compressed_inputs<double>(plan, kAllCsr, Density::few);
  const auto loss = [&](const CompressedInputs<double>& at) {
    const Attention<double> result = forward<double>(plan, at.query, at.key, at.value);
    double sum = 0;
    for_each_index(result.output.shape(), [&](auto b, auto h, auto t, auto f) {
      sum += result.output(b, h, t, f) * inputs.grad_output(b, h, t, f);
    });
    return sum;
  };
  const Attention<double> attention = forward<double>(plan, inputs.query, inputs.key, inputs.value);
  const auto gradients = backward<double>(plan, inputs.query, inputs.key, inputs.value, attention, inputs.grad_output);
  const auto check = [&](Features<double> CompressedInputs<double>::*member, const Features<double>& gradient) {
    auto moved = compressed_inputs<double>(plan, kAllCsr, Density::few);
    auto& tensor = std::get<CsrTensor<double>>(moved.*member);
    REQUIRE(tensor.nnz() > 0);
    for (std::size_t k = 0; k < tensor.values(0, 0).size(); ++k) {
      constexpr double kStep = 1e-6;
      double& value = tensor.values(0, 0)[k];
      const double before = value;
      value = before + kStep;
      const double above = loss(moved);
      value = before - kStep;
      const double below = loss(moved);
      value = before;
      CHECK(std::get<CsrTensor<double>>(gradient).at(0, 0).values[k] ==
            doctest::Approx((above - below) / (2 * kStep)).epsilon(1e-6));
    }
  };
  check(&CompressedInputs<double>::query, gradients.query);
  check(&CompressedInputs<double>::key, gradients.key);
  check(&CompressedInputs<double>::value, gradients.value);
}

TEST_CASE("compressed inputs give the same bits for 1, 2 and 5 threads") {
  std::vector<Sample> all = samples();
  all.push_back({"several slices", make_plan(full(760), {.head_dim = 24, .value_dim = 17}, {.threads = 4})});
  REQUIRE(all.back().plan.data().most_slots() > 0);
  for (const Sample& sample : all) {
    CAPTURE(sample.name);
    for (const Density density : kDensities) {
      const auto inputs = compressed_inputs<float>(sample.plan, kMixed, density);
      const auto expected = on_threads(1, [&] { return run(sample.plan, inputs); });
      check_close(expected, inputs, reference_of(sample.plan, inputs));
      for (const int threads : {2, 5}) {
        CHECK(same_bits(on_threads(threads, [&] { return run(sample.plan, inputs); }), expected));
      }
    }
  }
}

TEST_CASE("NaN and infinity in stored entries reach what IEEE arithmetic says, and nothing outside their pairs") {
  int reached = 0;
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    for (const Storages& storages : {kAllCsr, kAllBsr, kMixed, kDenseKey}) {
      CAPTURE(static_cast<int>(storages.key));
      for (const Density density : kDensities) {
        CAPTURE(static_cast<int>(density));
        for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
          CAPTURE(bad);
          for (Features<double> CompressedInputs<double>::*member :
               {&CompressedInputs<double>::query, &CompressedInputs<double>::key, &CompressedInputs<double>::value}) {
            auto inputs = compressed_inputs<double>(sample.plan, storages, density);
            set_stored_entry(inputs.*member, 20, bad);
            const auto results = run(sample.plan, inputs);
            const ReferenceResult reference = reference_of(sample.plan, inputs);
            // Scores of -infinity alone make an empty row of one, and 0 times infinity of the other.
            if (has_empty_row(reference.lse)) continue;
            const auto check_same_places = [&](const Tensor<double>& actual, const Tensor<double>& expected,
                                               const Tensor<double>* places) {
              std::int64_t differing = 0;
              for_each_index(expected.shape(), [&](auto b, auto h, auto t, auto f) {
                if (places != nullptr && (*places)(b, h, t, f) == 0) return;
                const bool finite = std::isfinite(expected(b, h, t, f));
                differing += finite != std::isfinite(actual(b, h, t, f)) ? 1 : 0;
                reached += finite ? 0 : 1;
              });
              CHECK(differing == 0);
            };
            const auto check_gradient_places = [&](const Features<double>& gradient, const Features<double>& input,
                                                   const Tensor<double>& expected) {
              if (gradient.index() == 0) return check_same_places(in_full(gradient), expected, nullptr);
              const Tensor<double> places = stored_places(input);
              check_same_places(in_full(gradient), expected, &places);
            };
            check_same_places(results.attention.output, reference.output, nullptr);
            check_gradient_places(results.gradients.query, inputs.query, reference.grad_query);
            check_gradient_places(results.gradients.key, inputs.key, reference.grad_key);
            check_gradient_places(results.gradients.value, inputs.value, reference.grad_value);
          }
        }
      }
    }
  }
  CHECK(reached > 10000);
}

TEST_CASE("tokens without entries, and tensors without any, score 0") {
  const Plan plan = make_plan(causal(20), {.head_dim = 8});
  Inputs<float> dense = normal_inputs<float>(plan, 3);
  const auto none = [](const LaidOut<float>& tensor) { return compress_threshold<float>(tensor, 1e9F); };
  const CompressedInputs<float> inputs{none(dense.query), none(dense.key), none(dense.value),
                                       std::move(dense.grad_output), std::move(dense.grad_lse)};
  check_close(run(plan, inputs), inputs, reference_of(plan, inputs));
}

TEST_CASE("entries of a token are counted for the plan") {
  const Plan plan = make_plan(causal(20), {.head_dim = 24, .value_dim = 17, .query_heads = 2, .batch = 3});
  const auto inputs = compressed_inputs<float>(plan, kDenseKey, Density::some);
  const Problem problem = with_entries<float>(plan.problem(), inputs.query, inputs.key, inputs.value);
  const FeaturesView<float> query = inputs.query;
  CHECK(problem.query_entries == doctest::Approx(static_cast<double>(query.nnz()) / (3 * 2 * 20)));
  CHECK(problem.key_entries == 0);
  CHECK(problem.value_entries == 4);  // one block of 4 features
  const Plan counted = make_plan(causal(20), problem);
  check_close(run(counted, inputs), inputs, reference_of(counted, inputs));
}

TEST_CASE("panels in full and entry by entry give the reference's results") {
  const Problem problem{.head_dim = 24, .value_dim = 17, .query_entries = 3, .key_entries = 3, .value_entries = 3};
  const Pattern pattern = window(90, 30, 5);
  const auto count = std::ssize(make_plan(pattern, problem).candidates());
  int whole = 0;
  for (std::int64_t index = 0; index < count; ++index) {
    const Plan plan = make_plan(pattern, problem, {.candidate = index});
    CAPTURE(plan.candidates()[static_cast<std::size_t>(index)].name);
    whole += plan.data().whole_panels ? 1 : 0;
    for (const Storages& storages : {kAllCsr, kAllBsr}) {
      const auto inputs = compressed_inputs<double>(plan, storages, Density::few);
      check_close(run(plan, inputs), inputs, reference_of(plan, inputs));
    }
  }
  CHECK(whole > 0);
  CHECK(whole < count);
}

TEST_CASE("compressed tensors of the wrong shape are named, in forward and backward") {
  const Problem problem{.head_dim = 22, .value_dim = 16, .query_heads = 2, .key_value_heads = 1, .batch = 2};
  const Plan plan = make_plan(window(20, 25, 4, 2), problem);
  for (const Storages& storages : {kAllCsr, kAllBsr}) {
    const auto inputs = compressed_inputs<float>(plan, storages, Density::many);
    const Attention<float> result = forward<float>(plan, inputs.query, inputs.key, inputs.value);
    const auto check_error = [&](const Features<float>& query, const Features<float>& key, const Features<float>& value,
                                 const std::string& message) {
      CHECK(error_of([&] { forward<float>(plan, query, key, value); }) == message);
      CHECK(error_of([&] { backward<float>(plan, query, key, value, result, inputs.grad_output); }) == message);
    };
    const auto of_shape = [&](const TensorShape& shape) {
      return compressed<float>(Tensor<float>(shape).view(), storages.query, Density::many);
    };
    const std::string query_axes = ", expected 2 x 2 x 20 x 22 (batch x query heads x query tokens x head_dim)";
    check_error(of_shape({1, 2, 20, 22}), inputs.key, inputs.value,
                "shape_mismatch: query is 1 x 2 x 20 x 22" + query_axes);
    check_error(of_shape({2, 1, 20, 22}), inputs.key, inputs.value,
                "shape_mismatch: query is 2 x 1 x 20 x 22" + query_axes);
    check_error(of_shape({2, 2, 21, 22}), inputs.key, inputs.value,
                "shape_mismatch: query is 2 x 2 x 21 x 22" + query_axes);
    check_error(of_shape({2, 2, 20, 23}), inputs.key, inputs.value,
                "shape_mismatch: query is 2 x 2 x 20 x 23" + query_axes);
    check_error(inputs.query, of_shape({2, 1, 20, 22}), inputs.value,
                "shape_mismatch: key is 2 x 1 x 20 x 22, expected 2 x 1 x 25 x 22 (batch x key/value heads x key "
                "tokens x head_dim)");
    check_error(inputs.query, inputs.key, of_shape({2, 1, 25, 22}),
                "shape_mismatch: value is 2 x 1 x 25 x 22, expected 2 x 1 x 25 x 16 (batch x key/value heads x key "
                "tokens x value_dim)");
  }
}

TEST_CASE("results must not share memory with the entries of an input, nor go where there are no entries") {
  const Plan plan = make_plan(causal(20), {.head_dim = 12});
  auto inputs = compressed_inputs<float>(plan, kDenseKey, Density::many);
  const Attention<float> result = forward<float>(plan, inputs.query, inputs.key, inputs.value);
  Workspace workspace;
  Tensor<float> grad_query(query_shape(plan));
  Tensor<float> grad_key(key_shape(plan));
  Tensor<float> grad_value(value_shape(plan));
  const auto error_with = [&](const FeatureGradientView<float>& query, const FeatureGradientView<float>& key,
                              const FeatureGradientView<float>& value) {
    return error_of([&] {
      backward<float>(plan, inputs.query, inputs.key, inputs.value, result, inputs.grad_output, {query, key, value},
                      workspace);
    });
  };
  using Values = std::vector<std::span<float>>;
  CHECK(error_with(grad_query.view(), grad_key.view(), grad_value.view()) == "no error");
  const std::string shared =
      error_with(Values{std::get<CsrTensor<float>>(inputs.query).values(0, 0)}, grad_key.view(), grad_value.view());
  CHECK(shared.starts_with("invalid_argument: "));
  CHECK(shared.find("gradients.query") != std::string::npos);
  std::vector<float> values(std::get<BsrTensor<float>>(inputs.value).at(0, 0).values.size());
  CHECK(error_with(Values{std::span(values)}, grad_key.view(), Values{std::span(values)})
            .starts_with("shape_mismatch: gradients.query has "));
  CHECK(error_with(grad_query.view(), Values{std::span(values)}, grad_value.view()) ==
        "invalid_argument: gradients.key has values of a compressed input, which is dense");
}

TEST_CASE("arguments that do not fit are named") {
  const Plan plan = make_plan(causal(20), {.head_dim = 24, .value_dim = 17});
  const auto inputs = compressed_inputs<float>(plan, kMixed, Density::few);
  const Attention<float> result = forward<float>(plan, inputs.query, inputs.key, inputs.value);
  CHECK(error_of([&] { forward<float>(plan, inputs.query, inputs.value, inputs.value); }) ==
        "shape_mismatch: key is 1 x 1 x 20 x 17, expected 1 x 1 x 20 x 24 (batch x key/value heads x key tokens x "
        "head_dim)");
  Workspace workspace;
  const auto backward_into = [&](const FeatureGradientView<float>& query) {
    Tensor<float> grad_key(key_shape(plan));
    Tensor<float> grad_value(value_shape(plan));
    backward<float>(plan, inputs.query, inputs.key, inputs.value, result, inputs.grad_output,
                    {query, grad_key.view(), grad_value.view()}, workspace);
  };
  std::vector<float> values(3);
  CHECK(error_of([&] { backward_into(std::vector<std::span<float>>{}); }) ==
        "shape_mismatch: gradients.query has values of 0 matrices, expected 1");
  const std::size_t entries = std::get<CsrTensor<float>>(inputs.query).at(0, 0).values.size();
  CHECK(error_of([&] { backward_into(std::vector<std::span<float>>{values}); }) ==
        "shape_mismatch: gradients.query has 3 values of matrix 0, expected " + std::to_string(entries));
}
