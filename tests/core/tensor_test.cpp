#include "cobble/tensor.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "support/error_of.hpp"

using namespace cobble;
using cobble::test::error_of;

TEST_CASE("a tensor's elements lie in C order") {
  Tensor<float> tensor(TensorShape{2, 3, 4, 5});
  std::iota(tensor.values().begin(), tensor.values().end(), 0.0F);
  const TensorView<const float> view = tensor;
  CHECK(view.strides() == TensorStrides{60, 20, 5, 1});
  float expected = 0;
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 3; ++h) {
      for (std::int64_t t = 0; t < 4; ++t) {
        for (std::int64_t f = 0; f < 5; ++f, ++expected) {
          REQUIRE(tensor(b, h, t, f) == expected);
          REQUIRE(view(b, h, t, f) == expected);
          REQUIRE(view.row(b, h, t)[f] == expected);
        }
      }
    }
  }
}

TEST_CASE("strides may be zero, negative or permuted") {
  const std::vector<double> data{0, 1, 2, 3, 4, 5};
  const TensorShape shape{1, 2, 3, 2};
  const TensorView<const double> broadcast(data.data(), shape, {0, 0, 2, 1});
  CHECK(broadcast(0, 1, 2, 1) == 5);
  const TensorView<const double> reversed(data.data() + 4, shape, {0, 0, -2, 1});
  CHECK(reversed(0, 0, 0, 1) == 5);
  CHECK(reversed(0, 1, 2, 0) == 0);
  const TensorView<const double> transposed(data.data(), TensorShape{1, 1, 2, 3}, {0, 0, 1, 2});
  CHECK(transposed(0, 0, 1, 2) == 5);
  CHECK(transposed(0, 0, 1, 0) == 1);
}

TEST_CASE("a span makes a tensor of one batch and head when its size fits") {
  std::vector<float> data(6);
  const TensorView<float> view(std::span<float>(data), 3, 2);
  CHECK(view.shape() == TensorShape{1, 1, 3, 2});
  view(0, 0, 2, 1) = 9;
  CHECK(data[5] == 9);
  CHECK(error_of([&] { TensorView<float>(std::span<float>(data), 4, 2); }) ==
        "shape_mismatch: the array holds 6 elements, expected 4 x 2 = 8");
}

TEST_CASE("views of mutable elements convert to constant ones and not back") {
  static_assert(std::is_convertible_v<TensorView<float>, TensorView<const float>>);
  static_assert(!std::is_convertible_v<TensorView<const float>, TensorView<float>>);
  static_assert(!std::is_convertible_v<TensorView<float>, TensorView<const double>>);
  Tensor<float> tensor(TensorShape{1, 1, 1, 1});
  tensor(0, 0, 0, 0) = 3;
  const TensorView<const float> view = tensor.view();
  CHECK(view(0, 0, 0, 0) == 3);
}

TEST_CASE("a shape with an axis of 0 is empty, whatever the other axes") {
  CHECK(TensorShape{0, 1, 1, 1}.size() == 0);
  CHECK(TensorShape{std::int64_t{1} << 40, std::int64_t{1} << 40, 0, 1}.size() == 0);
  CHECK(contiguous_strides({2, 3, 0, 5}) == TensorStrides{0, 0, 0, 1});
  CHECK(Tensor<float>(TensorShape{2, 3, 0, 5}).values().empty());
}

TEST_CASE("a shape that is negative or does not fit is an error") {
  CHECK(error_of([] {
          static_cast<void>(TensorShape{1, -2, 3, 4}.size());
        }) == "invalid_argument: tensor axis heads = -2 is negative");
  CHECK(error_of([] {
          Tensor<float>(TensorShape{1, 1, std::int64_t{1} << 40, std::int64_t{1} << 40});
        }) == "overflow: tensor size does not fit 64 bits");
}
