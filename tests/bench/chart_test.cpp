#include "chart.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace cobble::program;

namespace {

Chart chart_of(std::vector<ChartPoint> points) {
  Chart chart;
  chart.title = "a < b & c";
  ChartSeries series;
  series.name = "counted";
  series.points = std::move(points);
  series.marker = Marker::circle;
  series.scales = true;
  chart.panels = {{"left", {series}}, {"right", {series}}};
  return chart;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a marker for each point of each panel and one in the legend, where a name stands once") {
  const std::string svg = chart_svg(chart_of({{64, 1000}, {128, 500}, {256, 300, false}}));
  CHECK(occurrences(svg, "<circle") == 2 * 3 + 1);
  CHECK(occurrences(svg, ">counted<") == 1);
  CHECK(occurrences(svg, "fill=\"#ffffff\" stroke") == 2);
  CHECK(svg.find("a &lt; b &amp; c") != std::string::npos);
}

TEST_CASE("what a logarithm does not take is left out") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(occurrences(chart_svg(chart_of({{64, 0}, {128, infinity}, {0, 1}, {256, 300}})), "<circle") == 2 + 1);
  const std::string nothing = chart_svg(chart_of({}));
  CHECK(nothing.find("nan") == std::string::npos);
  CHECK(nothing.find("inf") == std::string::npos);
}

TEST_CASE("a vertical line beyond the axis becomes an arrow at its edge") {
  Chart chart = chart_of({{64, 1000}, {128, 500}});
  chart.line = VerticalLine{96, "M*"};
  CHECK(chart_svg(chart).find(">M*<") != std::string::npos);
  chart.line = VerticalLine{1e9, "M*"};
  CHECK(chart_svg(chart).find(">M* &gt;<") != std::string::npos);
  chart.line = VerticalLine{1, "M*"};
  CHECK(chart_svg(chart).find(">&lt; M*<") != std::string::npos);
}
