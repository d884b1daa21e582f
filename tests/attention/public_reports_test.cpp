#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/error.hpp"
#include "cobble/plan.hpp"
#include "support/attention_inputs.hpp"
#include "support/plain_attention.hpp"

// What users of other libraries stumbled over, one test for each symptom, numbered as in docs of the peers. Report 13
// is determinism_test.cpp, report 16 masked_tokens_test.cpp; 18 (bfloat16) and the bias of 20 wait for their features.

using namespace cobble;
using namespace cobble::test;

namespace {

template <class T>
bool all_finite(const Tensor<T>& tensor) {
  return std::all_of(tensor.values().begin(), tensor.values().end(), [](T x) { return std::isfinite(x); });
}

template <class T>
void fill(const LaidOut<T>& tensor, T value) {
  for_each_index(tensor.view().shape(), [&](auto b, auto h, auto t, auto f) { tensor(b, h, t, f) = value; });
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

CsrPattern csr(std::int64_t columns, const std::vector<std::vector<std::int32_t>>& rows) {
  CsrPattern matrix;
  matrix.rows = static_cast<std::int64_t>(rows.size());
  matrix.columns = columns;
  for (const auto& row : rows) {
    matrix.column_indices.insert(matrix.column_indices.end(), row.begin(), row.end());
    matrix.row_offsets.push_back(static_cast<std::int64_t>(matrix.column_indices.size()));
  }
  return matrix;
}

/// Compares sampled tokens, where the whole reference would take too long.
template <class T>
void check_sample(const Plan& plan, std::uint64_t seed, const ReferenceSample& sample) {
  const Inputs<T> inputs = normal_inputs<T>(plan, seed);
  const Results<T> results = run(plan, inputs);
  const ReferenceResult reference =
      reference_attention(ReferenceProblem<T>{plan.patterns(), inputs.query, inputs.key, inputs.value,
                                              inputs.grad_output, inputs.grad_lse, plan.problem().scale},
                          sample);
  const auto check = [](const Tensor<T>& whole, const Tensor<double>& sampled,
                        const std::vector<std::int64_t>& tokens) {
    Tensor<T> picked(sampled.shape());
    for_each_index(sampled.shape(), [&](auto b, auto h, auto t, auto f) {
      picked(b, h, t, f) = whole(b, h, tokens[static_cast<std::size_t>(t)], f);
    });
    CHECK(max_relative_error(picked, sampled) < kTolerance<T>);
  };
  check(results.attention.output, reference.output, sample.query_tokens);
  check(results.attention.lse, reference.lse, sample.query_tokens);
  check(results.gradients.query, reference.grad_query, sample.query_tokens);
  check(results.gradients.key, reference.grad_key, sample.key_tokens);
  check(results.gradients.value, reference.grad_value, sample.key_tokens);
}

}  // namespace

TEST_CASE_TEMPLATE("report 1: there is a backward of sparse attention on the CPU", T, float, double) {
  check_against_reference<T>(make_plan(window(200, 30, 0) | leading_tokens(200, 4), {.head_dim = 32}), 1);
}

TEST_CASE_TEMPLATE("report 2: one fully masked row does not make NaN gradients for the whole batch", T, float, double) {
  // Batch entry 1 has an empty row 3 whose gradients are not zero but NaN; batch entries 0 and 2 are whole.
  const Pattern whole = full(6);
  const Pattern with_empty_row = whole - from_csr(csr(6, {{}, {}, {}, {0, 1, 2, 3, 4, 5}, {}, {}}));
  const Plan plan = make_plan(PatternGrid({whole, with_empty_row, whole}, 3, 1), {.head_dim = 4, .batch = 3});
  const Inputs<T> inputs = normal_inputs<T>(plan, 2);
  for (std::int64_t f = 0; f < 4; ++f) inputs.grad_output(1, 0, 3, f) = std::numeric_limits<T>::quiet_NaN();
  inputs.grad_lse(1, 0, 3, 0) = std::numeric_limits<T>::quiet_NaN();
  const Results<T> results = run(plan, inputs);
  CHECK(results.attention.lse(1, 0, 3, 0) == -std::numeric_limits<T>::infinity());
  for (std::int64_t f = 0; f < 4; ++f) {
    CHECK(results.attention.output(1, 0, 3, f) == 0);
    CHECK(results.gradients.query(1, 0, 3, f) == 0);
  }
  CHECK(all_finite(results.gradients.query));
  CHECK(all_finite(results.gradients.key));
  CHECK(all_finite(results.gradients.value));
  Results<T> copy = run(plan, inputs);
  check_close(copy.attention.view(), copy.gradients.view(), reference_of(plan, inputs));
}

TEST_CASE_TEMPLATE("report 3: a fully masked first tile does not poison its row", T, float, double) {
  // Rows 0 to 15 share tiles. Even rows have pairs only in the last tile, odd ones only in the first.
  const Pattern pattern = from_predicate(16, 64, [](auto i, auto j) { return i % 2 == 0 ? j >= 50 : j < 9; });
  const Plan plan = make_plan(pattern, {.head_dim = 1, .scale = 1.0}, {.row_panel = 16, .column_panel = 16});
  SUBCASE("ordinary scores") { check_against_reference<T>(plan, 3); }
  SUBCASE("scores of 1e30 and -1e30") {
    const Inputs<T> inputs = normal_inputs<T>(plan, 3);
    for (std::int64_t i = 0; i < 16; ++i) inputs.query(0, 0, i, 0) = static_cast<T>(i % 4 < 2 ? 1e15 : -1e15);
    for (std::int64_t j = 0; j < 64; ++j) inputs.key(0, 0, j, 0) = static_cast<T>(1e15 + 1e14 * static_cast<double>(j));
    const Results<T> results = run(plan, inputs);
    CHECK(all_finite(results.attention.lse));
    CHECK(all_finite(results.gradients.key));
    Results<T> copy = run(plan, inputs);
    // One key of each row takes all the weight: outputs and gradients of values are exact.
    const ReferenceResult reference = reference_of(plan, inputs);
    CHECK(max_relative_error(copy.attention.output, reference.output) < kTolerance<T>);
    CHECK(max_relative_error(copy.gradients.value, reference.grad_value) < kTolerance<T>);
  }
  SUBCASE("maxima that rise from tile to tile by 1e30") {
    const Plan whole = make_plan(full(5, 64), {.head_dim = 1, .scale = 1.0}, {.row_panel = 4, .column_panel = 8});
    const Inputs<T> inputs = normal_inputs<T>(whole, 3);
    for (std::int64_t i = 0; i < 5; ++i) inputs.query(0, 0, i, 0) = static_cast<T>(i % 2 == 0 ? 1e15 : -1e15);
    for (std::int64_t j = 0; j < 64; ++j) inputs.key(0, 0, j, 0) = static_cast<T>(1e15 * static_cast<double>(j - 20));
    const Results<T> results = run(whole, inputs);
    for (std::int64_t i = 0; i < 5; ++i) {
      CHECK(results.attention.output(0, 0, i, 0) == inputs.value(0, 0, i % 2 == 0 ? 63 : 0, 0));
    }
  }
}

TEST_CASE("report 4: gradients are exact for every head size, block size and pattern") {
  // The oracle is dense attention in double, row by row, independent of the reference.
  const std::vector<Pattern> patterns{causal(70), window(70, 20, 3), random_pairs(70, 70, 6, 1)};
  const std::vector<PlanOptions> options{{},
                                         {.schedule = Schedule::recompute, .row_panel = 16, .column_panel = 16},
                                         {.schedule = Schedule::recompute, .row_panel = 7, .column_panel = 33},
                                         {.schedule = Schedule::materialize}};
  for (const std::int64_t d :
       {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 80, 96, 127, 128, 129}) {
    CAPTURE(d);
    for (const Pattern& pattern : patterns) {
      const std::string name = pattern.describe();
      CAPTURE(name);
      const Plan sizes = make_plan(pattern, {.head_dim = d});
      Inputs<double> inputs = normal_inputs<double>(sizes, 4);
      fill(inputs.grad_lse, 0.0);
      const PlainAttention<double> dense =
          plain_attention<double>(pattern, inputs.query, inputs.key, inputs.value, inputs.grad_output);
      for (const PlanOptions& option : options) {
        CAPTURE(option.row_panel);
        const Results<double> results = run(make_plan(pattern, {.head_dim = d}, option), inputs);
        CHECK(max_relative_error(results.attention.output, dense.output) < 1e-12);
        CHECK(max_relative_error(results.gradients.query, dense.grad_query) < 1e-12);
        CHECK(max_relative_error(results.gradients.key, dense.grad_key) < 1e-12);
        CHECK(max_relative_error(results.gradients.value, dense.grad_value) < 1e-12);
      }
    }
  }
}

TEST_CASE_TEMPLATE("report 5: padding of -1 in top-k lists is skipped, other indices out of range are errors", T, float,
                   double) {
  // Row 1 is all padding. Padding stands before, between and after indices.
  const std::vector<std::int64_t> lists{3, -1, 0, -1, -1, -1, -1, 2, 2, 1, 4, -1};
  const Plan plan = make_plan(top_k_tokens(lists, 4, 3, 5), {.head_dim = 4});
  CHECK(plan.total_pairs() == 2 + 0 + 1 + 2);
  check_against_reference<T>(plan, 5);
  for (const std::int64_t outside : {std::int64_t{-2}, std::int64_t{5}, std::int64_t{1} << 40}) {
    std::vector<std::int64_t> wrong = lists;
    wrong[7] = outside;
    CHECK(error_of([&] { top_k_tokens(wrong, 4, 3, 5); }).find(std::to_string(outside)) != std::string::npos);
  }
}

TEST_CASE_TEMPLATE("report 6: gradients are right when many queries share a key", T, float, double) {
  SUBCASE("one key for all, by arithmetic") {
    check_against_reference<T>(make_plan(leading_tokens(700, 1) | window(700, 1, 0), {.head_dim = 8}), 6);
  }
  SUBCASE("three keys for all, stored") {
    std::vector<std::vector<std::int32_t>> rows(700);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = {5, 350, static_cast<std::int32_t>(i % 300 + 351)};
    check_against_reference<T>(
        make_plan(from_csr(csr(700, rows)), {.head_dim = 8, .query_heads = 4, .key_value_heads = 1}), 6);
  }
}

TEST_CASE_TEMPLATE("report 7: lse of an empty row is minus infinity, and backward takes it", T, float, double) {
  const T infinity = std::numeric_limits<T>::infinity();
  SUBCASE("a row without pairs") {
    const Plan plan = make_plan(causal(7, 3), {.head_dim = 2});  // rows 0 to 3 see no key
    const Inputs<T> inputs = normal_inputs<T>(plan, 7);
    const Results<T> results = run(plan, inputs);
    for (std::int64_t row = 0; row < 7; ++row) {
      CHECK((results.attention.lse(0, 0, row, 0) == -infinity) == (row < 4));
      CHECK((results.gradients.query(0, 0, row, 0) == 0) == (row < 4));
    }
    CHECK(all_finite(results.gradients.key));
  }
  SUBCASE("a row whose scores all overflow to minus infinity") {
    const T large = std::sqrt(std::numeric_limits<T>::max()) * 4;
    const Plan plan = make_plan(full(3), {.head_dim = 1, .scale = 1.0});
    const Inputs<T> inputs = normal_inputs<T>(plan, 7);
    fill(inputs.key, large);
    fill(inputs.query, T{0});
    inputs.query(0, 0, 1, 0) = -large;
    const Results<T> results = run(plan, inputs);
    CHECK(results.attention.lse(0, 0, 1, 0) == -infinity);
    CHECK(results.attention.output(0, 0, 1, 0) == 0);
    CHECK(results.gradients.query(0, 0, 1, 0) == 0);
    CHECK(results.attention.lse(0, 0, 0, 0) == doctest::Approx(std::log(3)));
    for (std::int64_t key = 0; key < 3; ++key) {
      CHECK(results.gradients.key(0, 0, key, 0) == 0);
      const T from_others = (inputs.grad_output(0, 0, 0, 0) + inputs.grad_output(0, 0, 2, 0)) / 3;
      CHECK(results.gradients.value(0, 0, key, 0) == doctest::Approx(from_others).epsilon(1e-5));
    }
  }
}

TEST_CASE("report 8: lse and its gradient let attention over parts of the keys be merged") {
  // o = sum of w o_part with w = exp(lse_part - lse). Its derivatives give each part's gradients of output and lse:
  // d o_part = w do, d lse_part = w (<do, o_part> - <do, o>). The parts' gradients then add up to those of the whole.
  const std::int64_t n = 50, d = 6;
  const Plan whole = make_plan(causal(n), {.head_dim = d});
  Inputs<double> inputs = normal_inputs<double>(whole, 8);
  fill(inputs.grad_lse, 0.0);
  const Results<double> expected = run(whole, inputs);

  Tensor<double> output({1, 1, n, d}), query({1, 1, n, d});
  for (double& x : output.values()) x = 0;
  for (double& x : query.values()) x = 0;
  for (const Pattern& part : {causal(n) & leading_tokens(n, 17), causal(n) - leading_tokens(n, 17)}) {
    const Plan plan = make_plan(part, {.head_dim = d});
    const Attention<double> attention = run_forward(plan, inputs);
    Inputs<double> part_inputs = normal_inputs<double>(whole, 8);
    for (std::int64_t i = 0; i < n; ++i) {
      const double w = std::exp(attention.lse(0, 0, i, 0) - expected.attention.lse(0, 0, i, 0));
      double difference = 0;
      for (std::int64_t f = 0; f < d; ++f) {
        const double grad = inputs.grad_output(0, 0, i, f);
        output(0, 0, i, f) += w * attention.output(0, 0, i, f);
        difference += grad * (attention.output(0, 0, i, f) - expected.attention.output(0, 0, i, f));
        part_inputs.grad_output(0, 0, i, f) = w * grad;
      }
      part_inputs.grad_lse(0, 0, i, 0) = w * difference;
    }
    const Gradients<double> gradients = run_backward(plan, part_inputs, attention);
    for (std::size_t i = 0; i < query.values().size(); ++i) query.values()[i] += gradients.query.values()[i];
  }
  CHECK(max_relative_error(output, expected.attention.output) < 1e-12);
  CHECK(max_relative_error(query, expected.gradients.query) < 1e-12);
}

TEST_CASE("report 9: lengths that are no multiple of a block have exact ragged tails") {
  for (const std::int64_t n_q : {1, 2, 15, 31, 33, 63, 65, 127, 129}) {
    for (const std::int64_t n_k : {1, 3, 17, 64, 65, 100, 129}) {
      CAPTURE(n_q);
      CAPTURE(n_k);
      check_against_reference<double>(make_plan(causal(n_q, n_k) | leading_tokens(n_q, n_k, 1), {.head_dim = 5}), 9);
      check_against_reference<float>(make_plan(full(n_q, n_k), {.head_dim = 5}), 9);
    }
  }
}

TEST_CASE("report 10: the plan of a million-token window takes memory by tiles, not by pairs") {
  const std::int64_t n = 1048576, left = 4096;
  const Plan plan = make_plan(window(n, left, 0), {.head_dim = 64}, {.row_panel = 64, .column_panel = 64});
  CHECK(plan.total_pairs() == n * (left + 1) - left * (left + 1) / 2);  // 4.3e9
  const std::int64_t row_panels = n / 64;
  CHECK(plan.tiles() == row_panels * (left / 64 + 1) - (left / 64) * (left / 64 + 1) / 2);
  CHECK(plan.memory_bytes() <= 40 * plan.tiles() + 16 * row_panels + 10000);  // 40 MB; the pairs would take 17 GB
}

TEST_CASE("report 11: masks of 100,000 tokens in compressed rows, and graphs") {
  const ReferenceSample sample{{0, 1, 777, 50000, 99999}, {2, 4096, 65535, 99990}};
  SUBCASE("top-k like lists") {
    const std::int64_t n = 100000;
    const Pattern pattern = random_pairs(n, n, 6, 11);
    check_sample<float>(make_plan(from_csr(pattern.to_csr()), {.head_dim = 8}, {.schedule = Schedule::recompute}), 11,
                        sample);
  }
  SUBCASE("a power-law graph") {
    check_sample<float>(make_plan(power_law_graph(100000, 4, 11), {.head_dim = 8}), 11, sample);
  }
}

TEST_CASE_TEMPLATE("report 12: blocks of any size, and masks for each head with other numbers of pairs", T, float,
                   double) {
  const auto in_blocks = [](std::int32_t block_rows, std::int32_t block_columns) {
    return from_bsr((window(90, 30, 4) | leading_tokens(90, 3)).to_bsr(block_rows, block_columns));
  };
  const PatternGrid grid(
      {in_blocks(1, 1), in_blocks(3, 50), in_blocks(128, 128), in_blocks(17, 2), random_blocks(90, 7, 2, 1), !full(90)},
      1, 6);
  check_against_reference<T>(make_plan(grid, {.head_dim = 8, .query_heads = 6, .key_value_heads = 2, .batch = 2}), 12);
}

TEST_CASE("report 14: more than 2^31 pairs and tensors longer than 2^31 elements") {
  SUBCASE("pairs are counted in 64 bits") {
    const Plan plan =
        make_plan(full(50000), {.head_dim = 64, .query_heads = 2}, {.row_panel = 512, .column_panel = 512});
    CHECK(plan.total_pairs() == 2 * std::int64_t{50000} * 50000);
    CHECK(full(50000).pairs(1, 49999) == std::int64_t{49998} * 50000);
    CHECK(causal(70000).pairs() == std::int64_t{70000} * 70001 / 2);
  }
  SUBCASE("offsets into tensors are computed in 64 bits") {
    // Addresses are reserved, memory is only taken for the few pages that are touched.
    const std::int64_t stride = std::int64_t{3} << 29, tokens = 4;  // the last token starts at element 4.8e9
    const auto bytes = static_cast<std::size_t>(stride * tokens) * sizeof(float);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    const Plan plan = make_plan(causal(tokens), {.head_dim = 3});
    const Inputs<float> inputs = normal_inputs<float>(plan, 14);
    const TensorShape shape{1, 1, tokens, 3};
    auto* start = static_cast<float*>(memory);
    const auto at = [&](std::int64_t offset) { return TensorView<float>(start + offset, shape, {0, 0, stride, 1}); };
    for_each_index(shape, [&](auto b, auto h, auto t, auto f) {
      at(0)(b, h, t, f) = inputs.key(b, h, t, f);
      at(8)(b, h, t, f) = inputs.value(b, h, t, f);
      at(16)(b, h, t, f) = inputs.query(b, h, t, f);
    });
    Results<float> expected = run(plan, inputs);
    Workspace workspace;
    forward(plan, TensorView<const float>(at(16)), TensorView<const float>(at(0)), TensorView<const float>(at(8)),
            AttentionView<float>{at(24), expected.attention.lse}, workspace);
    backward(plan, TensorView<const float>(at(16)), TensorView<const float>(at(0)), TensorView<const float>(at(8)),
             AttentionView<const float>{at(24), expected.attention.lse}, TensorView<const float>(inputs.grad_output),
             GradientsView<float>{at(32), at(40), at(48)}, workspace, BackwardOptions<float>{inputs.grad_lse});
    CHECK(same_bits(at(24), expected.attention.output.view()));
    CHECK(same_bits(at(32), expected.gradients.query.view()));
    CHECK(same_bits(at(40), expected.gradients.key.view()));
    CHECK(same_bits(at(48), expected.gradients.value.view()));
    munmap(memory, bytes);
  }
}

TEST_CASE_TEMPLATE("report 15: gradients of grouped query heads are those of expanded keys, summed", T, float, double) {
  const std::int64_t n = 60, query_heads = 6, key_heads = 2, d = 8;
  const Plan grouped = make_plan(causal(n), {.head_dim = d, .query_heads = query_heads, .key_value_heads = key_heads});
  const Plan expanded = make_plan(causal(n), {.head_dim = d, .query_heads = query_heads});
  const Inputs<T> inputs = normal_inputs<T>(grouped, 15);
  Inputs<T> wide = normal_inputs<T>(expanded, 16);
  for_each_index(key_shape(expanded), [&](auto b, auto h, auto t, auto f) {
    wide.key(b, h, t, f) = inputs.key(b, h / 3, t, f);
    wide.value(b, h, t, f) = inputs.value(b, h / 3, t, f);
    wide.query(b, h, t, f) = inputs.query(b, h, t, f);
    wide.grad_output(b, h, t, f) = inputs.grad_output(b, h, t, f);
  });
  for_each_index(lse_shape(expanded),
                 [&](auto b, auto h, auto t, auto f) { wide.grad_lse(b, h, t, f) = inputs.grad_lse(b, h, t, f); });
  const Results<T> of_groups = run(grouped, inputs);
  const Results<T> of_heads = run(expanded, wide);
  CHECK(same_bits(of_groups.attention, of_heads.attention));
  CHECK(same_bits(of_groups.gradients.query, of_heads.gradients.query));
  const auto summed = [&](const Tensor<T>& gradient) {
    Tensor<double> sum({1, key_heads, n, d});
    for (double& x : sum.values()) x = 0;
    for_each_index(gradient.shape(), [&](auto b, auto h, auto t, auto f) {
      sum(b, h / 3, t, f) += static_cast<double>(gradient(b, h, t, f));
    });
    return sum;
  };
  CHECK(max_relative_error(of_groups.gradients.key, summed(of_heads.gradients.key)) < kTolerance<T>);
  CHECK(max_relative_error(of_groups.gradients.value, summed(of_heads.gradients.value)) < kTolerance<T>);
}

TEST_CASE_TEMPLATE("report 17: a strided or expanded grad_output gives the gradients of its dense copy", T, float,
                   double) {
  const Plan plan = make_plan(causal(50), {.head_dim = 5, .value_dim = 7, .query_heads = 2, .batch = 2});
  Inputs<T> inputs = normal_inputs<T>(plan, 17);
  const Attention<T> attention = run_forward(plan, inputs);
  Random random(18);
  for (const Layout layout : kInputLayouts) {
    CAPTURE(to_string(layout));
    const LaidOut<T> strided = normal_tensor<T>(output_shape(plan), random, layout);
    const LaidOut<T> strided_lse = normal_tensor<T>(lse_shape(plan), random, layout);
    const auto gradients_with = [&](TensorView<const T> grad_output, TensorView<const T> grad_lse) {
      return backward(plan, TensorView<const T>(inputs.query), TensorView<const T>(inputs.key),
                      TensorView<const T>(inputs.value), attention.view(), grad_output, BackwardOptions<T>{grad_lse});
    };
    const Tensor<T> dense = converted<T>(strided.view()), dense_lse = converted<T>(strided_lse.view());
    CHECK(same_bits(gradients_with(strided, strided_lse), gradients_with(dense, dense_lse)));
  }
}

TEST_CASE("report 19: malformed compressed rows are rejected before anything is read through them") {
  const CsrPattern good = csr(4, {{0, 2}, {}, {1, 3}});
  const auto error_with = [&good](auto change) {
    CsrPattern bad = good;
    change(bad);
    return error_of([&bad] { from_csr(bad); });
  };
  CHECK(error_of([&good] { from_csr(good); }) == "no error");
  const auto expect = [](const std::string& message, const std::string& part) {
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
  };
  expect(error_with([](CsrPattern& m) { m.column_indices[1] = 4; }), "column_indices[1] = 4");
  expect(error_with([](CsrPattern& m) { m.column_indices[3] = -1; }), "column_indices[3] = -1");
  expect(error_with([](CsrPattern& m) { m.column_indices[1] = 0; }), "column_indices[1] = 0");
  expect(error_with([](CsrPattern& m) { m.row_offsets[1] = 1000000; }), "row_offsets[");
  expect(error_with([](CsrPattern& m) { m.row_offsets[1] = -5; }), "row_offsets[1] = -5");
  expect(error_with([](CsrPattern& m) { m.row_offsets[0] = 1; }), "row_offsets[0] = 1");
  expect(error_with([](CsrPattern& m) { m.row_offsets[3] = 5; }), "row_offsets[3] = 5");
  expect(error_with([](CsrPattern& m) { m.row_offsets.pop_back(); }), "row_offsets");
  expect(error_with([](CsrPattern& m) { m.rows = 1000000000; }), "row_offsets");
  expect(error_with([](CsrPattern& m) { m.columns = -1; }), "columns = -1");
}

TEST_CASE("report 20: a plan says which path runs and what it takes") {
  const Plan plan = make_plan(window(5000, 300, 0), {.head_dim = 64}, {.schedule = Schedule::recompute});
  CHECK(plan.schedule() == Schedule::recompute);
  CHECK(plan.row_panel() > 0);
  CHECK(plan.column_panel() > 0);
  CHECK(plan.tiles() > 0);
  CHECK(plan.fast_memory_words() > 0);
  CHECK(plan.split_point() == doctest::Approx(5000.0 * 64 * 5000 * 64 / static_cast<double>(plan.total_pairs())));
  CHECK(plan.workspace_bytes(2, 4) > 0);
  CHECK(plan.memory_bytes() > 0);
  const auto chosen = [](const PlanCandidate& candidate) { return candidate.chosen; };
  CHECK(std::count_if(plan.candidates().begin(), plan.candidates().end(), chosen) == 1);
  CHECK(plan.describe().find("recompute") != std::string::npos);
}
