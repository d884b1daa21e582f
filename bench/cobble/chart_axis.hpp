#pragma once

#include <string>
#include <vector>

// The axes of a chart: where a value stands, and what is labelled.

namespace cobble::program {

enum class AxisScale {
  powers_of_2,   ///< logarithmic
  powers_of_10,  ///< logarithmic
  numbers,       ///< logarithmic, labelled 1, 2, 5, 10 ...
  linear
};

struct AxisTick {
  double share = 0;   ///< of the axis' length
  std::string label;  ///< empty: a line only; of a power: its base
  std::string exponent = {};
  bool strong = true;
};

class Axis {
 public:
  /// Holds all values that can be drawn, with `room_before` and `room_after` around them in steps of the scale: a
  /// factor of 2, a factor of 10, or a tenth of the range. A linear axis `from_zero` begins there when no value is
  /// below it.
  Axis(AxisScale scale, const std::vector<double>& values, double room_before, double room_after,
       bool from_zero = false);

  /// Finite, and positive where the scale is logarithmic.
  bool holds(double value) const;
  /// 0 at the beginning, 1 at the end; beyond for what lies outside.
  double share(double value) const { return share_of(transform(value)); }
  /// Makes the axis at least so long that two powers have labels.
  void require_two_powers();
  std::vector<AxisTick> ticks() const;

 private:
  double transform(double value) const;
  double share_of(double transformed) const { return (transformed - begin_) / (end_ - begin_); }
  bool inside(double transformed) const { return transformed >= begin_ && transformed <= end_; }
  std::vector<AxisTick> powers_of_2() const;
  std::vector<AxisTick> decades() const;
  std::vector<AxisTick> even_steps() const;

  AxisScale scale_;
  double begin_ = 0;  ///< exponents where the scale is logarithmic
  double end_ = 1;
  bool whole_ = true;  ///< all values are
};

}  // namespace cobble::program
