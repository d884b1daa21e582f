#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cobble/compressed.hpp"
#include "support/error_of.hpp"
#include "support/random.hpp"
#include "support/tensors.hpp"

namespace cobble {
namespace {

using test::error_of;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TensorView<const float> one_token(const std::vector<float>& features) {
  return {features.data(), {1, 1, 1, static_cast<std::int64_t>(features.size())}};
}

std::vector<std::int32_t> kept(const std::vector<float>& features, std::int64_t k) {
  return compress_top_k(one_token(features), k).at(0, 0).column_indices;
}

using Columns = std::vector<std::int32_t>;

TEST_CASE("top k keeps the largest absolute values, of equal ones the first") {
  CHECK(kept({1, -3, 2, 0.5F}, 2) == Columns{1, 2});
  CHECK(kept({2, 1, -2, 2}, 2) == Columns{0, 2});
  CHECK(kept({1, 1, 1, 1}, 3) == Columns{0, 1, 2});
  CHECK(kept({0, 0, 5, 0}, 3) == Columns{0, 1, 2});
  CHECK(kept({3, 2, 1}, 3) == Columns{0, 1, 2});
  CHECK(compress_top_k(one_token({1, -3, 2}), 1).at(0, 0).values == std::vector<float>{-3});
}

TEST_CASE("NaN is kept before infinity") {
  CHECK(kept({kInfinity, 7, kNaN, -kInfinity}, 1) == Columns{2});
  CHECK(kept({kInfinity, 7, kNaN, -kInfinity}, 2) == Columns{0, 2});
  CHECK(kept({1, kNaN, -kNaN, kNaN}, 2) == Columns{1, 2});
  CHECK(compress_threshold(one_token({1, kNaN, 9}), 5.0F).at(0, 0).column_indices == Columns{1, 2});
  CHECK(compress_top_k_blocks(one_token({9, 9, 0, kNaN}), 1, 1, 2).at(0, 0).block_column_indices == Columns{1});
}

TEST_CASE("the threshold itself is dropped, and zero keeps all but zeros") {
  CHECK(compress_threshold(one_token({2, -3, 1, -2}), 2.0F).at(0, 0).column_indices == Columns{1});
  CHECK(compress_threshold(one_token({0, -3, -0.0F, 1e-30F}), 0.0F).at(0, 0).column_indices == Columns{1, 3});
}

TEST_CASE("what is kept has its values and all else is 0, in any layout, for each batch entry and head") {
  const TensorShape shape{2, 3, 7, 10};
  for (const test::Layout layout : test::kInputLayouts) {
    CAPTURE(test::to_string(layout));
    test::Random random(6);
    const test::LaidOut<float> tensor = test::normal_tensor<float>(shape, random, layout);
    const TensorView<const float> view = tensor;
    const auto check = [&](const Tensor<float>& dense, std::int64_t expected_entries) {
      std::int64_t entries = 0;
      std::int64_t wrong = 0;
      test::for_each_index(shape, [&](auto b, auto h, auto t, auto f) {
        if (dense(b, h, t, f) == 0) return;
        ++entries;
        wrong += dense(b, h, t, f) == tensor(b, h, t, f) ? 0 : 1;
      });
      CHECK(wrong == 0);
      CHECK(entries == expected_entries);
    };
    const CsrTensor<float> top = compress_top_k(view, 3);
    CHECK(top.nnz() == 2 * 3 * 7 * 3);
    check(to_dense(top), top.nnz());
    check(to_dense(compress_threshold(view, 0.0F)), shape.size());
    // Blocks of 4 x 4: the last of each axis are ragged.
    const BsrTensor<float> blocks = compress_top_k_blocks(view, 2, 4, 4);
    CHECK(blocks.at(0, 0).block_column_indices.size() == 4);
    check(to_dense(blocks), blocks.nnz());
  }
}

TEST_CASE("top blocks have the largest sums of squares") {
  const std::vector<float> values{1, 1, 2, 0, 0, 3,   //
                                  1, 1, 2, 0, 0, -3,  //
                                  9, 0, 0, 0, 0, 0};
  const BsrTensor<float> blocks = compress_top_k_blocks(TensorView<const float>(values, 3, 6), 2, 2, 2);
  CHECK(blocks.at(0, 0).block_column_indices == Columns{1, 2, 0, 1});
  CHECK(blocks.at(0, 0).block_row_offsets == std::vector<std::int64_t>{0, 2, 4});
  CHECK(blocks.at(0, 0).values == std::vector<float>{2, 0, 2, 0, 0, 3, 0, -3, 9, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("the gradient of what was compressed goes through what was kept: finite differences") {
  // loss = <weights, to_dense(compress(x))>, whose gradient with respect to the kept values is the weights there.
  test::Random random(7);
  const TensorShape shape{1, 2, 3, 6};
  const test::LaidOut<double> x = test::normal_tensor<double>(shape, random);
  const test::LaidOut<double> weights = test::normal_tensor<double>(shape, random);
  const auto loss = [&] {
    const Tensor<double> compressed = to_dense(compress_top_k<double>(x.view(), 2));
    double sum = 0;
    test::for_each_index(shape,
                         [&](auto b, auto h, auto t, auto f) { sum += compressed(b, h, t, f) * weights(b, h, t, f); });
    return sum;
  };
  CsrTensor<double> gradient = compress_top_k<double>(x.view(), 2);
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    std::size_t entry = 0;
    for (std::int64_t token = 0; token < shape.tokens; ++token) {
      for (const std::int32_t feature : gradient.at(0, head).view().row(token)) {
        gradient.values(0, head)[entry++] = weights(0, head, token, feature);
      }
    }
  }
  const Tensor<double> grad_x = to_dense(gradient);
  constexpr double kStep = 1e-7;
  test::for_each_index(shape, [&](auto b, auto h, auto t, auto f) {
    const double before = x(b, h, t, f);
    x(b, h, t, f) = before + kStep;
    const double above = loss();
    x(b, h, t, f) = before - kStep;
    const double below = loss();
    x(b, h, t, f) = before;
    CHECK((above - below) / (2 * kStep) == doctest::Approx(grad_x(b, h, t, f)).epsilon(1e-6));
  });
}

TEST_CASE("counts and thresholds that make no sense are refused") {
  const std::vector<float> features{1, 2, 3};
  CHECK(error_of([&] { kept(features, 0); }) == "invalid_argument: k = 0, expected 1 to the number of features, 3");
  CHECK(error_of([&] { kept(features, 4); }) == "invalid_argument: k = 4, expected 1 to the number of features, 3");
  CHECK(error_of([&] { compress_threshold(one_token(features), -1.0F); }) ==
        "invalid_argument: threshold = -1.000000, expected at least 0");
  CHECK(error_of([&] { compress_threshold(one_token(features), kNaN); }) ==
        "invalid_argument: threshold = nan, expected at least 0");
  CHECK(error_of([&] { compress_top_k_blocks(one_token(features), 3, 1, 2); }) ==
        "invalid_argument: k = 3, expected 1 to the number of block columns, 2");
  CHECK(error_of([&] { compress_top_k_blocks(one_token(features), 1, 0, 2); }) ==
        "invalid_argument: blocks of 0 x 2, expected at least 1 x 1");
  const TensorView<const float> wide(nullptr, {1, 1, 0, std::int64_t{1} << 40});
  CHECK(error_of([&] { compress_top_k(wide, 1); }) ==
        "overflow: features = 1099511627776 does not fit the range [0, 2147483647]");
}

TEST_CASE("no tokens are no problem") {
  const TensorView<const float> none(nullptr, {2, 1, 0, 5});
  CHECK(compress_top_k(none, 5).shape() == TensorShape{2, 1, 0, 5});
  CHECK(compress_threshold(none, 1.0F).nnz() == 0);
  CHECK(compress_top_k_blocks(none, 1, 4, 4).nnz() == 0);
}

}  // namespace
}  // namespace cobble
