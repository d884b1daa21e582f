#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chart_axis.hpp"
#include "color.hpp"

// Charts as SVG, panel beside panel on the same axes.

namespace cobble::program {

enum class Marker { none, circle, square, diamond };

struct ChartPoint {
  double x = 0;
  double y = 0;
  bool filled = true;  ///< the marker
};

/// A polyline. Points that an axis cannot hold (not finite; not positive where it is logarithmic) are left out; the
/// axes need not hold all of it.
struct ChartSeries {
  std::string name;  ///< in the legend, once for all panels
  std::vector<ChartPoint> points;
  Color color;
  double width = 2;
  std::string dashes;  ///< of SVG's stroke-dasharray; empty: solid
  Marker marker = Marker::none;
  bool scales = false;  ///< whether the axes must hold it
  bool line = true;     ///< otherwise markers only
};

struct ChartPanel {
  std::string title;
  std::vector<ChartSeries> series;  ///< later ones cover earlier ones
};

struct VerticalLine {
  double x = 0;
  std::string label;
};

struct Chart {
  std::string title;
  std::string subtitle;
  std::string x_label;
  std::string y_label;
  std::string legend_note;
  std::vector<ChartPanel> panels;
  AxisScale x_scale = AxisScale::powers_of_2;
  AxisScale y_scale = AxisScale::powers_of_10;
  std::string id = "panel";          ///< distinct among the charts of one page
  std::optional<VerticalLine> line;  ///< in all panels; an arrow at the edge when the x axis does not reach it
};

std::string chart_svg(const Chart& chart);

}  // namespace cobble::program
