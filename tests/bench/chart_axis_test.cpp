#include "chart_axis.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

using namespace cobble::program;

namespace {

std::string labels(const Axis& axis) {
  std::string text;
  for (const AxisTick& tick : axis.ticks()) {
    if (!tick.label.empty())
      text += (text.empty() ? "" : " ") + tick.label + (tick.exponent.empty() ? "" : "^") + tick.exponent;
  }
  return text;
}

}  // namespace

TEST_CASE("a linear axis of what is not negative begins at 0 when asked to") {
  const Axis axis(AxisScale::linear, {0.4, 0.95}, 0.5, 0, true);
  CHECK(axis.share(0) == 0);
  CHECK(axis.share(0.95) == doctest::Approx(1));
  CHECK(labels(axis) == "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9");
}

TEST_CASE("whole numbers have no labels between them") {
  CHECK(labels(Axis(AxisScale::linear, {1, 2}, 0, 0)) == "1 2");
}

TEST_CASE("logarithmic axes are labelled by powers, or by numbers") {
  CHECK(labels(Axis(AxisScale::powers_of_2, {8, 32}, 0, 0)) == "2^3 2^4 2^5");
  CHECK(labels(Axis(AxisScale::powers_of_10, {1, 1000}, 0, 0)) == "10^0 10^1 10^2 10^3");
  CHECK(labels(Axis(AxisScale::numbers, {1, 20}, 0, 0.01)) == "1 2 5 10 20");
  CHECK(Axis(AxisScale::powers_of_2, {8, 32}, 0, 0).share(16) == doctest::Approx(0.5));
}

TEST_CASE("what an axis cannot hold does not stretch it") {
  const double infinity = std::numeric_limits<double>::infinity();
  const Axis axis(AxisScale::powers_of_10, {0, -3, infinity, std::nan(""), 10, 100}, 0, 0);
  CHECK(axis.share(10) == 0);
  CHECK(axis.share(100) == 1);
  CHECK_FALSE(axis.holds(0));
  CHECK(Axis(AxisScale::linear, {}, 0, 0).holds(0));
}
