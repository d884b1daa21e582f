#include "kernels/exponential.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using cobble::kernels::exponential;

namespace {

/// |x - exact| in units of x's last place.
template <class T>
long double ulps(T x, long double exact) {
  const T up = std::nextafter(std::abs(x), std::numeric_limits<T>::infinity());
  return std::abs(static_cast<long double>(x) - exact) / static_cast<long double>(up - std::abs(x));
}

template <class T>
long double worst_ulps(T low, T high, int steps) {
  long double worst = 0;
  for (int i = 0; i <= steps; ++i) {
    const T x = low + (high - low) * static_cast<T>(i) / static_cast<T>(steps);
    worst = std::max(worst, ulps(exponential(x), std::exp(static_cast<long double>(x))));
  }
  return worst;
}

}  // namespace

TEST_CASE("exponential stays within 2 ulp over the range of normal results") {
  CHECK(worst_ulps<float>(-87.0F, 88.0F, 200'000) <= 2);
  CHECK(worst_ulps<float>(-1.0F, 1.0F, 100'000) <= 2);
  CHECK(worst_ulps<double>(-708.0, 709.0, 200'000) <= 2);
  CHECK(worst_ulps<double>(-1.0, 1.0, 100'000) <= 2);
}

TEST_CASE_TEMPLATE("exponential meets the ends of its range", T, float, double) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  CHECK(exponential(T{0}) == T{1});
  CHECK(exponential(-kInfinity) == T{0});
  CHECK(exponential(kInfinity) == kInfinity);
  CHECK(exponential(T(-1e30)) == T{0});
  CHECK(exponential(T(1e30)) == kInfinity);
  CHECK(std::isnan(exponential(std::numeric_limits<T>::quiet_NaN())));
  const T subnormal = exponential(std::log(std::numeric_limits<T>::min()) - T{3});
  CHECK(subnormal > 0);
  CHECK(subnormal < std::numeric_limits<T>::min());
}
