#include "bench_charts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "chart.hpp"
#include "statistics.hpp"
#include "text.hpp"

namespace cobble::program {
namespace {

constexpr Color kForward = {29, 95, 173};
constexpr Color kBackward = {212, 98, 10};
constexpr Color kGemm = {75, 85, 99};
constexpr Color kIdeal = {156, 163, 175};
constexpr Color kOthers[] = {{126, 34, 206}, {190, 24, 93}, {101, 163, 13}, {2, 132, 199}, {180, 83, 9}, {82, 82, 91}};

constexpr const char* kDashes = "5 4";

using Cases = std::vector<Json>;

double number(const Json& value) { return value.is_number() ? value.get<double>() : std::nan(""); }
double number(const Json& of, const char* name) { return number(of.at(name)); }
double total_ms(const Json& of) { return number(of, "forward_ms") + number(of, "backward_ms"); }

/// The cases of one sweep, by one number of threads: the least.
Cases sweep_cases(const Json& document, const std::string& sweep) {
  Cases cases;
  for (const Json& measured : document.at("cases")) {
    if (measured.at("sweep") == sweep) cases.push_back(measured);
  }
  int least = 0;
  for (const Json& measured : cases) {
    const int threads = measured.at("threads");
    if (least == 0 || threads < least) least = threads;
  }
  std::erase_if(cases, [least](const Json& measured) { return measured.at("threads") != least; });
  return cases;
}

std::string threads_text(const Json& measured) {
  const int threads = measured.at("threads");
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

std::string problem_text(const Json& measured) {
  return fmt::format("d = {}, {}, {}", measured.at("head_dim").get<int>(), measured.at("dtype").get<std::string>(),
                     threads_text(measured));
}

using Value = std::function<double(const Json&)>;

ChartSeries series_of(const std::string& name, const Cases& cases, const Value& x, const Value& y, Color color,
                      Marker marker) {
  ChartSeries series{name, {}, color, 2.2, "", marker, true};
  for (const Json& measured : cases) series.points.push_back({x(measured), y(measured)});
  std::sort(series.points.begin(), series.points.end(),
            [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  return series;
}

ChartSeries dashed(ChartSeries series) {
  series.dashes = kDashes;
  series.width = 1.4;
  series.marker = Marker::none;
  return series;
}

/// The times of the fastest candidate of each family ("recompute" of "recompute, tiles of 64 x 64, ...").
std::map<std::string, double> family_ms(const Json& measured) {
  std::map<std::string, double> families;
  for (const Json& candidate : measured.at("candidates")) {
    const std::string name = candidate.at("name");
    const std::string family = name.substr(0, name.find(','));
    const auto found = families.find(family);
    const double ms = total_ms(candidate);
    if (found == families.end() || ms < found->second) families[family] = ms;
  }
  return families;
}

Value value_of(const char* name) {
  return [name](const Json& measured) { return number(measured, name); };
}
Value over_million(const char* name) {
  return [name](const Json& measured) { return number(measured, name) / 1e6; };
}

void add_density_chart(const Json& document, std::vector<BenchChart>& charts) {
  const Cases cases = sweep_cases(document, "density");
  if (cases.empty()) return;
  const Value density = [](const Json& measured) { return 1 / number(measured, "flop_bound_speedup"); };
  Chart chart;
  chart.id = "density";
  chart.title = "Speed-up over dense attention";
  chart.subtitle = fmt::format("random(n,k), n = {}, forward and backward, {}", cases[0].at("rows").get<int>(),
                               problem_text(cases[0]));
  chart.x_label = "share of all pairs";
  chart.y_label = "dense time / time";
  chart.y_scale = AxisScale::numbers;
  ChartPanel panel;
  panel.series.push_back(dashed(series_of("as much as the arithmetic allows", cases, density,
                                          value_of("flop_bound_speedup"), kIdeal, Marker::none)));
  std::set<std::string> families;
  for (const Json& measured : cases) {
    for (const auto& family : family_ms(measured)) families.insert(family.first);
  }
  std::size_t color = 0;
  for (const std::string& family : families) {
    const Value speedup = [&family](const Json& measured) {
      const auto times = family_ms(measured);
      const auto found = times.find(family);
      if (found == times.end()) return std::nan("");
      return number(measured, "dense_speedup") * total_ms(measured) / found->second;
    };
    panel.series.push_back(series_of("best of: " + family, cases, density, speedup,
                                     kOthers[color++ % std::size(kOthers)], Marker::square));
  }
  panel.series.push_back(
      series_of("automatic choice", cases, density, value_of("dense_speedup"), kForward, Marker::circle));
  chart.panels = {panel};
  charts.push_back(
      {"density",
       "Unstructured patterns: where the curves of two kinds of schedules cross, the planner has to change "
       "from one to the other.",
       chart_svg(chart)});
}

void add_token_charts(const Json& document, std::vector<BenchChart>& charts) {
  const Cases cases = sweep_cases(document, "tokens");
  if (cases.empty()) return;
  const Value tokens = value_of("rows");
  Chart time;
  time.id = "time";
  time.title = "Time over the number of tokens";
  time.subtitle = fmt::format("window(n,512,0), {}", problem_text(cases[0]));
  time.x_label = "tokens, n";
  time.y_label = "milliseconds";
  ChartPanel panel;
  panel.series.push_back(series_of("forward", cases, tokens, value_of("forward_ms"), kForward, Marker::circle));
  panel.series.push_back(series_of("backward", cases, tokens, value_of("backward_ms"), kBackward, Marker::square));
  std::map<std::string, ChartSeries> peers;
  for (const Json& measured : cases) {
    for (const Json& peer : measured.at("peers")) {
      const std::string name = peer.at("name");
      const Color color = kOthers[peers.size() % std::size(kOthers)];
      ChartSeries& series =
          peers.try_emplace(name, ChartSeries{name + ", forward", {}, color, 1.6, "", Marker::diamond, true})
              .first->second;
      series.points.push_back({number(measured, "rows"), number(peer, "forward_ms")});
    }
  }
  for (auto& peer : peers) panel.series.push_back(std::move(peer.second));
  time.panels = {panel};
  charts.push_back(
      {"time", "With a window of fixed width the time grows as n does, not as its square.", chart_svg(time)});

  Chart memory = time;
  memory.id = "memory";
  memory.title = "Memory over the number of tokens";
  memory.y_label = "megabytes";
  panel = {};
  const Value mask = [](const Json& measured) {
    return number(measured, "rows") * number(measured, "columns") * 4 / 1e6;
  };
  panel.series.push_back(dashed(series_of("n x n scores in f32", cases, tokens, mask, kIdeal, Marker::none)));
  panel.series.push_back(
      series_of("tensors and gradients", cases, tokens, over_million("tensor_bytes"), kGemm, Marker::square));
  panel.series.push_back(
      series_of("all of it at the peak", cases, tokens, over_million("peak_bytes"), kForward, Marker::circle));
  memory.panels = {panel};
  charts.push_back({"memory",
                    "By how much the process grew over one case, beside the tensors that it was given and asked for.",
                    chart_svg(memory)});
}

void add_head_dim_chart(const Json& document, std::vector<BenchChart>& charts) {
  const Cases cases = sweep_cases(document, "head_dim");
  if (cases.empty()) return;
  const Value d = value_of("head_dim");
  Chart chart;
  chart.id = "head_dim";
  chart.title = "Rate over the head dimension";
  chart.subtitle = fmt::format("{}, {}, {}", cases[0].at("pattern").get<std::string>(),
                               cases[0].at("dtype").get<std::string>(), threads_text(cases[0]));
  chart.x_label = "head dimension, d";
  chart.y_label = "useful rate / rate of OpenBLAS's product";
  chart.x_scale = chart.y_scale = AxisScale::linear;
  ChartPanel panel;
  panel.series.push_back(dashed(series_of(
      "OpenBLAS's product", cases, d, [](const Json&) { return 1.0; }, kGemm, Marker::none)));
  panel.series.push_back(
      series_of("forward", cases, d, value_of("forward_fraction_of_gemm"), kForward, Marker::circle));
  panel.series.push_back(
      series_of("backward", cases, d, value_of("backward_fraction_of_gemm"), kBackward, Marker::square));
  panel.series.front().scales = true;
  chart.panels = {panel};
  charts.push_back(
      {"head_dim", "Softmax counts as no work: its share of the time falls as d grows.", chart_svg(chart)});
}

/// Where a curve crosses y = 1 for the first time, straight between points on logarithmic axes; none if it does not.
std::optional<double> crossover(const std::vector<ChartPoint>& points) {
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double before = std::log(points[i - 1].y);
    const double after = std::log(points[i].y);
    if (before * after > 0 || before == after) continue;
    const double share = before / (before - after);
    return std::exp(std::log(points[i - 1].x) * (1 - share) + std::log(points[i].x) * share);
  }
  return std::nullopt;
}

/// "window(16384,512,0), d = 128, csr, f32" of cases that differ in the number of features alone.
std::string features_family(const Json& measured) {
  const auto text = [&measured](const char* name) { return measured.at(name).get<std::string>(); };
  const std::string value_dim = measured.at("value_dim") == measured.at("head_dim")
                                    ? std::string()
                                    : fmt::format(", d_v = {}", measured.at("value_dim").get<int>());
  return fmt::format("{}, d = {}, {}{}, {}", text("pattern"), measured.at("head_dim").get<int>(),
                     text("feature_storage"), value_dim, text("dtype"));
}

void add_features_chart(const Json& document, std::vector<BenchChart>& charts) {
  std::map<std::string, Cases> families;
  for (const Json& measured : sweep_cases(document, "features"))
    families[features_family(measured)].push_back(measured);
  if (families.empty()) return;
  const auto sweep = std::max_element(families.begin(), families.end(),
                                      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const Value share = [](const Json& measured) {
    return number(measured, "features_per_token") / number(measured, "head_dim");
  };
  const auto speedup = [](const char* pass) {
    return [pass](const Json& measured) { return number(measured.at("counterpart"), pass) / number(measured, pass); };
  };
  const Cases& cases = sweep->second;
  Chart chart;
  chart.id = "features";
  chart.title = "Compressed over densified Q and K";
  chart.subtitle = fmt::format("{}, {}", sweep->first, threads_text(cases[0]));
  chart.x_label = "share of features that Q and K store, K / d";
  chart.y_label = "time densified / time";
  chart.y_scale = AxisScale::numbers;
  ChartPanel panel;
  panel.series.push_back(dashed(series_of(
      "as fast as densified", cases, share, [](const Json&) { return 1.0; }, kIdeal, Marker::none)));
  panel.series.push_back(series_of("forward", cases, share, speedup("forward_ms"), kForward, Marker::circle));
  panel.series.push_back(series_of("backward", cases, share, speedup("backward_ms"), kBackward, Marker::square));
  const ChartSeries both =
      series_of("forward and backward", cases, share, value_of("counterpart_speedup"), kGemm, Marker::diamond);
  panel.series.push_back(both);
  std::size_t color = 0;
  for (const auto& [family, of_family] : families) {
    if (family == sweep->first) continue;
    ChartSeries series = series_of(family, of_family, share, value_of("counterpart_speedup"),
                                   kOthers[color++ % std::size(kOthers)], Marker::diamond);
    series.line = series.points.size() > 1;
    panel.series.push_back(series);
  }
  if (const std::optional<double> x = crossover(both.points)) {
    chart.line = {*x, fmt::format("crossover at K / d = {:.2g}", *x)};
  }
  chart.panels = {panel};
  charts.push_back(
      {"features",
       "Left of the crossover, forward and backward of compressed queries and keys are faster than with the same "
       "tensors in full, measured in turn.",
       chart_svg(chart)});
}

/// Medians over the cases that were measured with every number of threads.
void add_threads_chart(const Json& document, std::vector<BenchChart>& charts) {
  std::map<std::string, std::map<int, Json>> by_name;
  std::set<int> threads;
  for (const Json& measured : document.at("cases")) {
    by_name[measured.at("name")][measured.at("threads")] = measured;
    threads.insert(measured.at("threads").get<int>());
  }
  if (threads.size() < 2) return;
  std::erase_if(by_name, [&](const auto& entry) { return entry.second.size() != threads.size(); });
  if (by_name.empty()) return;
  const int least = *threads.begin();
  const auto speedups = [&](const char* name, bool rate) {
    std::vector<ChartPoint> points;
    for (const int count : threads) {
      std::vector<double> of_cases;
      for (const auto& [case_name, measured] : by_name) {
        const double ratio = number(measured.at(least), name) / number(measured.at(count), name);
        if (std::isfinite(ratio)) of_cases.push_back(rate ? 1 / ratio : ratio);
      }
      if (!of_cases.empty()) points.push_back({static_cast<double>(count), median(of_cases)});
    }
    return points;
  };
  Chart chart;
  chart.id = "threads";
  chart.title = "Speed-up over threads";
  chart.subtitle = fmt::format("medians of {} cases", by_name.size());
  chart.x_label = "threads";
  chart.y_label = fmt::format("time on {} thread{} / time", least, least == 1 ? "" : "s");
  chart.x_scale = chart.y_scale = AxisScale::linear;
  ChartSeries ideal{"ideal", {}, kIdeal, 1.4, kDashes, Marker::none, true};
  for (const int count : threads) ideal.points.push_back({double(count), double(count) / least});
  ChartPanel panel;
  panel.series = {ideal,
                  {"OpenBLAS's product", speedups("gemm_gflops", true), kGemm, 2, "", Marker::diamond, true},
                  {"forward", speedups("forward_ms", false), kForward, 2.2, "", Marker::circle, true},
                  {"backward", speedups("backward_ms", false), kBackward, 2.2, "", Marker::square, true}};
  chart.panels = {panel};
  charts.push_back(
      {"threads", "How time falls with threads, beside OpenBLAS's product in the same run.", chart_svg(chart)});
}

void add_roofline(const Json& document, std::vector<BenchChart>& charts) {
  for (const Json& roof : document.at("roofs")) {
    if (roof.at("dtype") != "f32" || !roof.at("gemm_gflops").is_number()) continue;
    Cases cases;
    for (const Json& measured : document.at("cases")) {
      if (measured.at("dtype") == "f32" && measured.at("threads") == roof.at("threads")) cases.push_back(measured);
    }
    if (cases.empty()) continue;
    const double gemm = number(roof, "gemm_gflops");
    const double bandwidth = number(roof, "copy_gb_per_second");
    const auto intensity = [](const char* pass) {
      return [name = std::string(pass)](const Json& measured) {
        const double flop =
            number(measured, (name + "_gflops").c_str()) * number(measured, (name + "_ms").c_str()) * 1e6;
        return flop / number(measured, (name + "_traffic_bytes").c_str());
      };
    };
    ChartSeries forward =
        series_of("forward", cases, intensity("forward"), value_of("forward_gflops"), kForward, Marker::circle);
    ChartSeries backward =
        series_of("backward", cases, intensity("backward"), value_of("backward_gflops"), kBackward, Marker::square);
    forward.line = backward.line = false;
    double least = gemm / bandwidth / 2;
    double most = gemm / bandwidth * 2;
    for (const ChartSeries* series : {&forward, &backward}) {
      for (const ChartPoint& point : series->points) {
        if (!std::isfinite(point.x) || point.x <= 0) continue;
        least = std::min(least, point.x);
        most = std::max(most, point.x);
      }
    }
    ChartSeries roofline{fmt::format("measured roofs: {:.0f} GFLOP/s, {:.1f} GB/s", gemm, bandwidth),
                         {{least / 1.5, least / 1.5 * bandwidth}, {gemm / bandwidth, gemm}, {most * 1.5, gemm}},
                         kGemm,
                         2.2,
                         "",
                         Marker::none,
                         true};
    Chart chart;
    chart.id = fmt::format("roofline_{}", roof.at("threads").get<int>());
    chart.title = "Roofline";
    chart.subtitle = fmt::format("f32, {}; traffic as counted for {} of fast memory", threads_text(roof),
                                 format_bytes(number(cases[0], "fast_memory_bytes")));
    chart.x_label = "useful FLOP per byte between fast and slow memory";
    chart.y_label = "useful GFLOP/s";
    chart.x_scale = AxisScale::powers_of_2;
    chart.y_scale = AxisScale::numbers;
    chart.panels = {{"", {roofline, forward, backward}}};
    charts.push_back({chart.id,
                      "Roofs: OpenBLAS's product and a copy of large arrays, both measured in the same run. Points "
                      "above the slope are "
                      "served by a cache that is larger than the fast memory of the count.",
                      chart_svg(chart)});
  }
}

}  // namespace

std::vector<BenchChart> bench_charts(const Json& document) {
  std::vector<BenchChart> charts;
  add_density_chart(document, charts);
  add_token_charts(document, charts);
  add_head_dim_chart(document, charts);
  add_features_chart(document, charts);
  add_threads_chart(document, charts);
  add_roofline(document, charts);
  return charts;
}

}  // namespace cobble::program
