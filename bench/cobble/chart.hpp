#pragma once

#include <optional>
#include <string>
#include <vector>

#include "color.hpp"

// Charts with two logarithmic axes as SVG, panel beside panel on the same scales.

namespace cobble::program {

enum class Marker { none, circle, square };

struct ChartPoint {
  double x = 0;
  double y = 0;
  bool filled = true;  ///< the marker
};

/// A polyline. Points that are not positive and finite are left out; the axes need not hold all of it.
struct ChartSeries {
  std::string name;  ///< in the legend, once for all panels
  std::vector<ChartPoint> points;
  Color color;
  double width = 2;
  std::string dashes;  ///< of SVG's stroke-dasharray; empty: solid
  Marker marker = Marker::none;
  bool scales = false;  ///< whether the axes must hold it
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
  std::optional<VerticalLine> line;  ///< in all panels; an arrow at the edge when the x axis does not reach it
};

/// The x axis is labelled by powers of two, the y axis by powers of ten.
std::string chart_svg(const Chart& chart);

}  // namespace cobble::program
