#include "chart_axis.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace cobble::program {

Axis::Axis(AxisScale scale, const std::vector<double>& values, double room_before, double room_after, bool from_zero)
    : scale_(scale) {
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (const double value : values) {
    if (!holds(value)) continue;
    whole_ = whole_ && value == std::round(value);
    least = std::min(least, transform(value));
    most = std::max(most, transform(value));
  }
  if (least > most) {  // nothing to show
    least = 0;
    most = 1;
  }
  if (scale == AxisScale::linear) {
    if (from_zero && least >= 0) {
      least = 0;
      room_before = 0;
    }
    const double step = most > least ? (most - least) / 10 : std::max(std::abs(most), 1.0) / 2;
    room_before *= step;
    room_after *= step;
  }
  begin_ = least - room_before;
  end_ = most + room_after;
}

bool Axis::holds(double value) const { return std::isfinite(value) && (scale_ == AxisScale::linear || value > 0); }

double Axis::transform(double value) const {
  if (scale_ == AxisScale::linear) return value;
  return scale_ == AxisScale::powers_of_2 ? std::log2(value) : std::log10(value);
}

void Axis::require_two_powers() {
  if (std::ceil(begin_) + 1 <= end_) return;
  begin_ = std::floor(begin_);
  end_ = begin_ + 2;
}

std::vector<AxisTick> Axis::ticks() const {
  switch (scale_) {
    case AxisScale::powers_of_2: return powers_of_2();
    case AxisScale::linear: return even_steps();
    case AxisScale::powers_of_10:
    case AxisScale::numbers: return decades();
  }
  return {};
}

std::vector<AxisTick> Axis::powers_of_2() const {
  constexpr int kMostLabels = 12;
  const int first = static_cast<int>(std::ceil(begin_));
  const int last = static_cast<int>(std::floor(end_));
  const int step = (last - first) / kMostLabels + 1;
  std::vector<AxisTick> ticks;
  for (int exponent = first; exponent <= last; ++exponent) {
    const bool labelled = exponent % step == 0;
    ticks.push_back({share_of(exponent), labelled ? "2" : "", labelled ? std::to_string(exponent) : "", labelled});
  }
  return ticks;
}

std::vector<AxisTick> Axis::decades() const {
  constexpr double kManyDecades = 3.5;  // then 2 and 5 would crowd
  const bool powers = scale_ == AxisScale::powers_of_10;
  std::vector<AxisTick> ticks;
  for (int decade = static_cast<int>(std::floor(begin_)); decade <= end_; ++decade) {
    const double power = std::pow(10, decade);
    if (inside(decade)) {
      ticks.push_back(
          {share_of(decade), powers ? "10" : fmt::format("{:g}", power), powers ? std::to_string(decade) : "", true});
    }
    for (int digit = 2; digit <= 9; ++digit) {
      const double exponent = decade + std::log10(digit);
      if (!inside(exponent)) continue;
      const bool labelled = !powers && (digit == 2 || digit == 5) && end_ - begin_ < kManyDecades;
      ticks.push_back({share_of(exponent), labelled ? fmt::format("{:g}", digit * power) : "", "", false});
    }
  }
  return ticks;
}

std::vector<AxisTick> Axis::even_steps() const {
  constexpr double kMostSteps = 10;
  const double magnitude = std::pow(10, std::floor(std::log10((end_ - begin_) / kMostSteps)));
  double step = magnitude;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * magnitude;
    if ((end_ - begin_) / step <= kMostSteps) break;
  }
  if (whole_) step = std::max(step, 1.0);
  std::vector<AxisTick> ticks;
  for (double number = std::ceil(begin_ / step); number * step <= end_ * (1 + 1e-12); ++number) {
    ticks.push_back({share_of(number * step), fmt::format("{:g}", number * step), "", true});
  }
  return ticks;
}

}  // namespace cobble::program
