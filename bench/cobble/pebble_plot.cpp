#include "pebble_plot.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "chart.hpp"
#include "text.hpp"

namespace cobble::program {
namespace {

constexpr Color kRecompute = {29, 95, 173};
constexpr Color kMaterialize = {212, 98, 10};
constexpr Color kCompulsory = {75, 85, 99};

struct ScheduleLook {
  Color color;
  Marker marker;
};

ScheduleLook look_of(Schedule schedule) {
  return schedule == Schedule::recompute ? ScheduleLook{kRecompute, Marker::circle}
                                         : ScheduleLook{kMaterialize, Marker::square};
}

/// A quantity of the model, the same for both schedules, over all fast memories.
template <class Value>
std::vector<ChartPoint> over_fast_memory(const PebbleProblem& problem, const Value& value) {
  std::vector<ChartPoint> points;
  for (const std::int64_t words : problem.fast_memory_words) {
    points.push_back({static_cast<double>(words), value(words)});
  }
  return points;
}

ChartPanel panel_of(PebblePass pass, const PebbleProblem& problem, const std::vector<PebbleCase>& cases) {
  const AttentionSize size = problem.size();
  const double z_input = input_words(size);
  const auto z_qk = static_cast<double>(size.pairs);
  ChartPanel panel;
  panel.title = pass == PebblePass::parameter_gradients ? "parameter gradients" : to_string(pass);
  // What the theorem asks for the products with the weights.
  const auto weight_words = [&](std::int64_t m) {
    return pass == PebblePass::parameter_gradients
               ? weight_product_bound(static_cast<double>(std::max(size.queries, size.keys)),
                                      static_cast<double>(size.head_dim), m)
               : 0.0;
  };
  panel.series.push_back(
      {"compulsory traffic",
       over_fast_memory(problem, [&](std::int64_t m) { return pass_bound(pass, size, m).compulsory; }), kCompulsory,
       1.8, "0.1 5", Marker::none, true});
  panel.series.push_back({"theorem 4.5, M >= M*:  Z_input^2 / M",
                          over_fast_memory(problem,
                                           [&](std::int64_t m) {
                                             return sparse_bound_large(z_input, z_qk, static_cast<double>(m)) +
                                                    weight_words(m);
                                           }),
                          kRecompute, 1.2, "5 4"});
  panel.series.push_back({"theorem 4.5, M < M*:  Z_input sqrt(Z_QK / M)",
                          over_fast_memory(problem,
                                           [&](std::int64_t m) {
                                             return sparse_bound_small(z_input, z_qk, static_cast<double>(m)) +
                                                    weight_words(m);
                                           }),
                          kMaterialize, 1.2, "5 4"});
  for (const Schedule schedule : problem.schedules) {
    const ScheduleLook look = look_of(schedule);
    ChartSeries counted = {fmt::format("{}, counted", to_string(schedule)), {}, look.color, 2.2, "", look.marker, true};
    for (const PebbleCase& result : cases) {
      if (result.pass != pass || result.schedule != schedule || !result.feasible) continue;
      counted.points.push_back({static_cast<double>(result.fast_memory_words),
                                static_cast<double>(result.count.counted()), result.regime_pick});
    }
    panel.series.push_back(std::move(counted));
  }
  return panel;
}

}  // namespace

std::string pebble_plot_svg(const std::string& name, const PebbleProblem& problem,
                            const std::vector<PebbleCase>& cases) {
  constexpr std::size_t kLongestTitle = 80;
  const AttentionSize size = problem.size();
  const double split = split_point(input_words(size), static_cast<double>(size.pairs));
  Chart chart;
  chart.title = shorten(name, kLongestTitle);
  chart.subtitle =
      fmt::format("{} x {} tokens, Z_QK = {} pairs, {}, split point M* = {} words", group_digits(size.queries),
                  group_digits(size.keys), group_digits(size.pairs),
                  size.head_dim == size.value_dim ? fmt::format("d = {}", size.head_dim)
                                                  : fmt::format("d = {}, d_v = {}", size.head_dim, size.value_dim),
                  format_quantity(split));
  chart.x_label = "fast memory M, in words";
  chart.y_label = "words moved";
  chart.legend_note = "Filled markers: the schedule that the regime picks.";
  chart.line = VerticalLine{split, "M* = " + format_quantity(split)};
  for (const PebblePass pass : problem.passes) chart.panels.push_back(panel_of(pass, problem, cases));
  return chart_svg(chart);
}

}  // namespace cobble::program
