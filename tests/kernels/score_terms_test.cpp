#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/tile_kernels.hpp"
#include "support/isas.hpp"

// The terms of scores, on every instruction set that this machine has.

using namespace cobble;
using namespace cobble::test;
using kernels::tile_kernels;

TEST_CASE_TEMPLATE("softcap and its slope are exact to a few units in the last place", T, float, double) {
  on_every_isa([] {
    std::vector<T> x;
    for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<T>(i) / T{1000});
    for (int exponent = -30; exponent < 10; ++exponent) x.push_back(std::ldexp(T(1.25), exponent));
    std::vector<T> capped = x, slope(x.size());
    tile_kernels<T>().soft_cap(std::ssize(x), T{1}, capped.data(), slope.data());
    long double worst = 0, worst_slope = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double exact = std::tanh(static_cast<long double>(x[i]));
      worst = std::max(worst, ulps(capped[i], exact));
      worst_slope = std::max(worst_slope, std::abs(static_cast<long double>(slope[i]) - (1 - exact * exact)));
    }
    CHECK(worst <= 4);
    CHECK(worst_slope <= 8 * std::numeric_limits<T>::epsilon());
  });
}

TEST_CASE_TEMPLATE("softcap scales, meets its ends and keeps NaN, for any number of elements", T, float, double) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  on_every_isa([] {
    for (std::int64_t n = 0; n <= 37; ++n) {
      const T numbers[] = {T{0}, kInfinity, -kInfinity, std::numeric_limits<T>::quiet_NaN(), T{3}};
      std::vector<T> x(static_cast<std::size_t>(n) + 1);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = numbers[i % 5];
      std::vector<T> slope(x.size(), T{7});
      const T beyond = x.back();
      tile_kernels<T>().soft_cap(n, T{5}, x.data(), slope.data());
      const T expected[] = {T{0}, T{5}, T{-5}, T{0}, T{5} * std::tanh(T(0.6))};
      const T expected_slope[] = {T{1}, T{0}, T{0}, T{0}, T{1} - std::tanh(T(0.6)) * std::tanh(T(0.6))};
      for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        if (i % 5 == 3) {
          CHECK(std::isnan(x[i]));
          CHECK(std::isnan(slope[i]));
        } else {
          CHECK(static_cast<double>(x[i]) == doctest::Approx(static_cast<double>(expected[i % 5])).epsilon(1e-6));
          CHECK(static_cast<double>(slope[i]) ==
                doctest::Approx(static_cast<double>(expected_slope[i % 5])).epsilon(1e-6));
        }
      }
      CHECK((x.back() == beyond || std::isnan(beyond)));
      CHECK(slope.back() == T{7});
    }
  });
}

TEST_CASE_TEMPLATE("distances, biases and factors are applied element by element, and to no other", T, float, double) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  on_every_isa([] {
    for (std::int64_t n = 0; n <= 37; ++n) {
      const auto size = static_cast<std::size_t>(n);
      std::vector<T> x(size + 1, T{10}), bias(size), factor(size), product(size + 1, T{3});
      for (std::size_t i = 0; i < size; ++i) {
        bias[i] = static_cast<T>(i);
        factor[i] = static_cast<T>(i) / T{2};
      }
      tile_kernels<T>().subtract_distances(n, T(0.5), -5, x.data());
      bool right = true;
      for (std::size_t i = 0; i < size; ++i) right = right && x[i] == T{10} - T(0.5) * std::abs(static_cast<T>(i) - 5);
      tile_kernels<T>().add_bias(n, bias.data(), x.data());
      for (std::size_t i = 0; i < size; ++i) {
        right = right && x[i] == T{10} - T(0.5) * std::abs(static_cast<T>(i) - 5) + static_cast<T>(i);
      }
      tile_kernels<T>().multiply_by(n, factor.data(), product.data());
      for (std::size_t i = 0; i < size; ++i) right = right && product[i] == T{3} * factor[i];
      CAPTURE(n);
      CHECK(right);
      CHECK(x.back() == T{10});
      CHECK(product.back() == T{3});
    }
    T x[] = {T{1}, kNan, kInfinity, T{2}};
    const T bias[] = {-kInfinity, -kInfinity, -kInfinity, kNan};
    tile_kernels<T>().add_bias(4, bias, x);
    for (int i = 0; i < 3; ++i) CHECK(x[i] == -kInfinity);
    CHECK(std::isnan(x[3]));
  });
}
