#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/tile_kernels.hpp"
#include "support/isas.hpp"
#include "support/random.hpp"

// The exponential, by exp_shifted.

using namespace cobble;
using namespace cobble::test;
using kernels::tile_kernels;

namespace {

template <class T>
std::vector<T> exponentials(std::vector<T> x) {
  tile_kernels<T>().exp_shifted(std::ssize(x), T{0}, x.data());
  return x;
}

/// Where exp(x) is the smallest normal number, and where it is still finite.
template <class T>
const T kLowest = static_cast<T>(std::log(static_cast<long double>(std::numeric_limits<T>::min())));
template <class T>
const T kHighest = std::nextafter(static_cast<T>(std::log(static_cast<long double>(std::numeric_limits<T>::max()))),
                                  T{0});

template <class T>
void check_within(const std::vector<T>& x, long double limit) {
  const std::vector<T> y = exponentials(x);
  long double worst = 0;
  T where = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double error = ulps(y[i], std::exp(static_cast<long double>(x[i])));
    if (error > worst || std::isnan(error)) {
      worst = error;
      where = x[i];
    }
  }
  CAPTURE(where);
  CHECK(worst <= limit);
}

}  // namespace

TEST_CASE_TEMPLATE("exp is within 2 ulp from end to end of its range", T, float, double) {
  constexpr std::int64_t kCount = 40000;
  Random random(1);
  std::vector<T> x;
  // From where results may count as 0: twice the smallest normal number and a little.
  const T low = kLowest<T> + T{1}, high = kHighest<T>;
  for (std::int64_t i = 0; i <= kCount; ++i) {
    x.push_back(std::min(high, low + (high - low) * static_cast<T>(static_cast<double>(i) / kCount)));
    x.push_back(low + (high - low) * static_cast<T>(random.uniform()));
    x.push_back(static_cast<T>(-8 * random.uniform()));
  }
  // Halfway between two multiples of log 2, where the reduced argument is largest.
  for (int k = std::is_same_v<T, float> ? -124 : -1020; k < std::numeric_limits<T>::max_exponent - 1; ++k) {
    const T middle = static_cast<T>((static_cast<long double>(k) + 0.5L) * std::log(2.0L));
    for (const T end : {T{-1}, T{1}}) x.push_back(std::nextafter(middle, end * high));
    x.push_back(middle);
  }
  for (int exponent = -60; exponent < 6; ++exponent) {
    for (const T sign : {T{-1}, T{1}}) x.push_back(sign * std::ldexp(T(1.3), exponent));
  }
  on_every_isa([&] { check_within(x, 2); });
}

TEST_CASE_TEMPLATE("exp meets its ends: 0, 1, infinity, and NaN stays NaN", T, float, double) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  on_every_isa([&] {
    // Whole vectors of one kind, and each kind in every lane and as a tail.
    for (std::size_t n = 1; n <= 35; ++n) {
      for (std::size_t at = 0; at < n; ++at) {
        const auto value_of = [&](T x) {
          std::vector<T> all(n, T{0});
          all[at] = x;
          const std::vector<T> y = exponentials(all);
          for (std::size_t i = 0; i < n; ++i) {
            if (i != at && y[i] != 1) return T{-1};
          }
          return y[at];
        };
        CAPTURE(n);
        CAPTURE(at);
        CHECK(value_of(T{0}) == 1);
        CHECK(value_of(-T{0}) == 1);
        for (const T x : {-kInfinity, std::numeric_limits<T>::lowest(), kLowest<T> - T(0.01)}) {
          CHECK(value_of(x) == 0);
          CHECK(!std::signbit(value_of(x)));
        }
        for (const T x : {kInfinity, std::numeric_limits<T>::max(), kHighest<T> + T(0.01)}) {
          CHECK(value_of(x) == kInfinity);
        }
        CHECK(std::isnan(value_of(kNan)));
        CHECK(std::isnan(value_of(-kNan)));
      }
    }
  });
}

TEST_CASE_TEMPLATE("exp is 0 or right where results become small, and nothing between", T, float, double) {
  std::vector<T> x;
  for (T at = kLowest<T> - T{2}; at < kLowest<T> + T{2}; at += T(0.001)) x.push_back(at);
  on_every_isa([&] {
    const std::vector<T> y = exponentials(x);
    bool right = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double exact = std::exp(static_cast<long double>(x[i]));
      right = right && (ulps(y[i], exact) <= 2 || (y[i] == 0 && exact < 2.2L * std::numeric_limits<T>::min()));
    }
    CHECK(right);
  });
}

TEST_CASE_TEMPLATE("exp_shifted subtracts first", T, float, double) {
  on_every_isa([&] {
    std::vector<T> x = {T{1000}, T{999}, -std::numeric_limits<T>::infinity()};
    tile_kernels<T>().exp_shifted(3, T{1000}, x.data());
    CHECK(x[0] == 1);
    CHECK(ulps(x[1], std::exp(-1.0L)) <= 2);
    CHECK(x[2] == 0);
  });
}
