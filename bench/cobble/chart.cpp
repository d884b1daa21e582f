#include "chart.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "text.hpp"

namespace cobble::program {
namespace {

constexpr double kPanelWidth = 520;
constexpr double kPanelHeight = 400;
constexpr double kLeft = 84;
constexpr double kTop = 96;
constexpr double kGap = 44;
constexpr double kRight = 28;
constexpr double kLegendTop = 66;  ///< below the panels
constexpr double kLegendLine = 24;
constexpr double kLegendColumn = 360;

constexpr Color kInk = {31, 41, 55};
constexpr Color kSoftInk = {107, 114, 128};
constexpr Color kGrid = {229, 231, 235};
constexpr Color kFaintGrid = {243, 244, 246};

struct Axes {
  Axis x;
  Axis y;
};

/// Hold every point of the series that scale, with a little room.
Axes fit_axes(const Chart& chart) {
  constexpr double kRoom = 0.4;
  std::vector<double> x;
  std::vector<double> y;
  const Axis any_x(chart.x_scale, {}, 0, 0);
  const Axis any_y(chart.y_scale, {}, 0, 0);
  for (const ChartPanel& panel : chart.panels) {
    for (const ChartSeries& series : panel.series) {
      if (!series.scales) continue;
      for (const ChartPoint& point : series.points) {
        if (!any_x.holds(point.x) || !any_y.holds(point.y)) continue;
        x.push_back(point.x);
        y.push_back(point.y);
      }
    }
  }
  Axes axes = {Axis(chart.x_scale, x, kRoom, kRoom), Axis(chart.y_scale, y, kRoom / 2, kRoom, true)};
  if (chart.y_scale == AxisScale::powers_of_10) axes.y.require_two_powers();
  return axes;
}

class ChartWriter {
 public:
  explicit ChartWriter(const Chart& chart) : chart_(chart), axes_(fit_axes(chart)) {}

  std::string write() {
    std::vector<const ChartSeries*> legend = legend_entries();
    const auto columns = static_cast<std::size_t>(std::max(1.0, (width() - kLeft) / kLegendColumn));
    const std::size_t lines = (legend.size() + columns - 1) / columns;
    const double height = kTop + kPanelHeight + kLegendTop + kLegendLine * static_cast<double>(lines + 1) + 4;
    append(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}")"
           R"( font-family="Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif" font-size="13">)"
           "\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
           width(), height);
    text(kLeft, 32, chart_.title, "start", kInk, R"( font-size="20" font-weight="bold")");
    text(kLeft, 54, chart_.subtitle, "start", kSoftInk, R"( font-size="14")");
    for (std::size_t panel = 0; panel < chart_.panels.size(); ++panel) write_panel(panel);
    for (std::size_t entry = 0; entry < legend.size(); ++entry) {
      write_legend_entry(*legend[entry], kLeft + kLegendColumn * static_cast<double>(entry % columns),
                         kTop + kPanelHeight + kLegendTop + kLegendLine * static_cast<double>(entry / columns));
    }
    text(kLeft, kTop + kPanelHeight + kLegendTop + kLegendLine * static_cast<double>(lines), chart_.legend_note,
         "start", kSoftInk);
    return std::move(svg_) + "</svg>\n";
  }

 private:
  template <class... Arguments>
  void append(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    svg_ += fmt::format(format, std::forward<Arguments>(arguments)...);
  }

  void text(double x, double y, const std::string& words, const char* anchor, Color color,
            const char* attributes = "") {
    if (words.empty()) return;
    append("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n", x, y, anchor, to_hex(color),
           attributes, escape_xml(words));
  }

  void label(double x, double y, const AxisTick& tick, const char* anchor) {
    if (tick.exponent.empty()) return text(x, y, tick.label, anchor, kInk);
    append(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}<tspan dy=\"-5\" font-size=\"10\">{}"
        "</tspan></text>\n",
        x, y, anchor, to_hex(kInk), tick.label, tick.exponent);
  }

  void line(double x1, double y1, double x2, double y2, Color color, double stroke, const std::string& dashes = {}) {
    append("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{:g}\"{}/>\n",
           x1, y1, x2, y2, to_hex(color), stroke, dash_attribute(dashes));
  }

  static std::string dash_attribute(const std::string& dashes) {
    return dashes.empty() ? "" : " stroke-dasharray=\"" + dashes + "\" stroke-linecap=\"round\"";
  }

  double width() const {
    const auto panels = static_cast<double>(std::max<std::size_t>(chart_.panels.size(), 1));
    return kLeft + panels * kPanelWidth + (panels - 1) * kGap + kRight;
  }
  double x_at(double share) const { return left_ + share * kPanelWidth; }
  double y_at(double share) const { return kTop + (1 - share) * kPanelHeight; }

  /// The first series of each name.
  std::vector<const ChartSeries*> legend_entries() const {
    std::vector<const ChartSeries*> entries;
    for (const ChartPanel& panel : chart_.panels) {
      for (const ChartSeries& series : panel.series) {
        const bool known = std::any_of(entries.begin(), entries.end(),
                                       [&](const ChartSeries* entry) { return entry->name == series.name; });
        if (!known && !series.name.empty()) entries.push_back(&series);
      }
    }
    return entries;
  }

  void write_panel(std::size_t index) {
    const ChartPanel& panel = chart_.panels[index];
    left_ = kLeft + static_cast<double>(index) * (kPanelWidth + kGap);
    text(left_, kTop - 12, panel.title, "start", kInk, R"( font-size="15" font-weight="bold")");
    write_grid(index == 0);
    append("<clipPath id=\"{}{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/></clipPath>\n",
           chart_.id, index, left_, kTop, kPanelWidth, kPanelHeight);
    append("<g clip-path=\"url(#{}{})\">\n", chart_.id, index);
    for (const ChartSeries& series : panel.series) write_series(series);
    svg_ += "</g>\n";
    if (chart_.line) write_vertical_line(*chart_.line);
    append("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"{}\"/>\n", left_,
           kTop, kPanelWidth, kPanelHeight, to_hex(kSoftInk));
  }

  void write_grid(bool y_labels) {
    const double bottom = kTop + kPanelHeight;
    // Strong lines over faint ones.
    for (const bool strong : {false, true}) {
      const Color color = strong ? kGrid : kFaintGrid;
      const double stroke = strong ? 1.2 : 1;
      for (const AxisTick& tick : axes_.y.ticks()) {
        if (tick.strong != strong) continue;
        line(left_, y_at(tick.share), left_ + kPanelWidth, y_at(tick.share), color, stroke);
        if (y_labels) label(left_ - 10, y_at(tick.share) + 5, tick, "end");
      }
      for (const AxisTick& tick : axes_.x.ticks()) {
        if (tick.strong != strong) continue;
        line(x_at(tick.share), kTop, x_at(tick.share), bottom, color, stroke);
        label(x_at(tick.share), bottom + 19, tick, "middle");
      }
    }
    text(left_ + kPanelWidth / 2, bottom + 40, chart_.x_label, "middle", kInk, R"( font-size="14")");
    if (y_labels) {
      const double x = left_ - 54;
      const double y = kTop + kPanelHeight / 2;
      text(x, y, chart_.y_label, "middle", kInk,
           fmt::format(" font-size=\"14\" transform=\"rotate(-90 {:.1f} {:.1f})\"", x, y).c_str());
    }
  }

  void write_series(const ChartSeries& series) {
    std::string path;
    std::string markers;
    for (const ChartPoint& point : series.points) {
      if (!axes_.x.holds(point.x) || !axes_.y.holds(point.y)) continue;
      const double x = x_at(axes_.x.share(point.x));
      const double y = y_at(axes_.y.share(point.y));
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
      markers += marker(series, x, y, point.filled);
    }
    if (path.empty()) return;
    if (series.line) {
      append("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:g}\" stroke-linejoin=\"round\"{}/>\n", path,
             to_hex(series.color), series.width, dash_attribute(series.dashes));
    }
    svg_ += markers;
  }

  static std::string marker(const ChartSeries& series, double x, double y, bool filled) {
    const std::string fill = filled ? to_hex(series.color) : "#ffffff";
    const std::string stroke = to_hex(series.color);
    switch (series.marker) {
      case Marker::none: return {};
      case Marker::circle:
        return fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", x, y,
            fill, stroke);
      case Marker::square:
        return fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"7.4\" height=\"7.4\" fill=\"{}\" stroke=\"{}\" "
            "stroke-width=\"1.6\"/>\n",
            x - 3.7, y - 3.7, fill, stroke);
      case Marker::diamond:
        return fmt::format(
            "<path d=\"M{:.1f} {:.1f}l5 5l-5 5l-5 -5z\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", x, y - 5,
            fill, stroke);
    }
    return {};
  }

  void write_vertical_line(const VerticalLine& vertical) {
    if (!axes_.x.holds(vertical.x)) return;
    const double share = axes_.x.share(vertical.x);
    const double label_y = kTop + 18;
    if (share > 1) {
      return text(left_ + kPanelWidth - 8, label_y, vertical.label + " >", "end", kSoftInk);
    }
    if (share < 0) return text(left_ + 8, label_y, "< " + vertical.label, "start", kSoftInk);
    const double x = x_at(share);
    line(x, kTop, x, kTop + kPanelHeight, kSoftInk, 1.2, "6 4");
    const bool right_half = share > 0.6;
    text(x + (right_half ? -7 : 7), label_y, vertical.label, right_half ? "end" : "start", kInk,
         R"( font-weight="bold")");
  }

  void write_legend_entry(const ChartSeries& series, double x, double y) {
    constexpr double kSample = 40;
    if (series.line) line(x, y - 4, x + kSample, y - 4, series.color, series.width, series.dashes);
    svg_ += marker(series, x + kSample / 2, y - 4, true);
    text(x + kSample + 10, y, series.name, "start", kInk);
  }

  const Chart& chart_;
  const Axes axes_;
  std::string svg_;
  double left_ = kLeft;  ///< of the panel being written
};

}  // namespace

std::string chart_svg(const Chart& chart) { return ChartWriter(chart).write(); }

}  // namespace cobble::program
