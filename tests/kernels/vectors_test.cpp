#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/tile_kernels.hpp"
#include "support/isas.hpp"
#include "support/matrices.hpp"
#include "support/random.hpp"

// Loops over contiguous elements, for every length of tail. Vectors are as long as their elements, so that a sanitizer
// sees what is read or written beyond.

using namespace cobble;
using namespace cobble::test;
using kernels::tile_kernels;

namespace {

template <class T>
std::vector<T> normal_vector(std::int64_t n, Random& random) {
  std::vector<T> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(static_cast<T>(random.normal()));
  return x;
}

}  // namespace

TEST_CASE_TEMPLATE("dot, axpy and scale are those of plain loops, for any number of elements", T, float, double) {
  on_every_isa([] {
    Random random(1);
    for (std::int64_t n = 0; n <= 70; ++n) {
      CAPTURE(n);
      const std::vector<T> x = normal_vector<T>(n, random), y = normal_vector<T>(n, random);
      double sum = 0, magnitude = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double term = static_cast<double>(x[i]) * static_cast<double>(y[i]);
        sum += term;
        magnitude += std::abs(term);
      }
      CHECK(is_sum(tile_kernels<T>().dot(n, x.data(), y.data()), sum, magnitude, n));
      std::vector<T> added = y, scaled = y;
      tile_kernels<T>().axpy(n, T(0.3), x.data(), added.data());
      tile_kernels<T>().scale(n, T(0.3), scaled.data());
      bool right = true;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double term = static_cast<double>(T(0.3)) * static_cast<double>(x[i]);
        const auto before = static_cast<double>(y[i]);
        right = right && is_sum(added[i], before + term, std::abs(before) + std::abs(term), 1);
        right = right && scaled[i] == T(0.3) * y[i];
      }
      CHECK(right);
    }
  });
}

TEST_CASE_TEMPLATE("exp_shifted and all_finite see every element, and no other", T, float, double) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  on_every_isa([&] {
    Random random(2);
    for (std::int64_t n = 0; n <= 37; ++n) {
      CAPTURE(n);
      const std::vector<T> x = normal_vector<T>(n, random);
      std::vector<T> y = x;
      tile_kernels<T>().exp_shifted(n, T{1}, y.data());
      bool right = true;
      for (std::size_t i = 0; i < x.size(); ++i) {
        right = right && ulps(y[i], std::exp(static_cast<long double>(x[i] - T{1}))) <= 2;
      }
      CHECK(right);
      CHECK(tile_kernels<T>().all_finite(n, x.data()));
      for (std::size_t at = 0; at < x.size(); ++at) {
        for (const T bad : {kInfinity, -kInfinity, kNan}) {
          std::vector<T> other = x;
          other[at] = bad;
          right = right && !tile_kernels<T>().all_finite(n, other.data());
        }
        std::vector<T> large = x;
        large[at] = std::numeric_limits<T>::max();
        right = right && tile_kernels<T>().all_finite(n, large.data());
      }
      CHECK(right);
    }
  });
}
