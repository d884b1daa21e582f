#include "bench_page.hpp"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "bench_charts.hpp"
#include "text.hpp"

namespace cobble::program {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light; --ink: #1f2937; --soft: #6b7280; --line: #e5e7eb; --forward: #1d5fad; --backward: #d4620a; }
* { box-sizing: border-box; }
body { margin: 0; background: #f3f4f6; color: var(--ink); font: 15px/1.5 Helvetica, Arial, 'Liberation Sans', sans-serif; }
main { max-width: 1340px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 28px; margin: 0 0 4px; }
h2 { font-size: 20px; margin: 40px 0 12px; }
p { margin: 4px 0; color: var(--soft); max-width: 100ch; }
.card { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 16px; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(270px, 1fr)); gap: 12px 24px; margin: 0; }
dt { color: var(--soft); font-size: 13px; }
dd { margin: 0; overflow-wrap: anywhere; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(560px, 100%), 1fr)); gap: 20px; }
figure { margin: 0; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); font-size: 14px; padding: 4px 8px 0; }
.wide { overflow-x: auto; padding: 0; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 7px 10px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; background: #fafafa; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; padding-left: 16px; }
td small { color: var(--soft); }
tr.peer td { border-bottom-style: dotted; color: #4b5563; }
tr.peer td:first-child { padding-left: 36px; }
.bar { display: inline-block; width: 64px; height: 8px; margin-left: 8px; border-radius: 4px; background: var(--line);
  overflow: hidden; vertical-align: middle; text-align: left; }
.bar i { display: block; height: 100%; background: var(--forward); }
.bar i.backward { background: var(--backward); }
)";

std::string text_of(const Json& value) {
  if (value.is_null()) return "unknown";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string caches_text(const Json& caches) {
  std::string text;
  for (const Json& cache : caches) {
    text += fmt::format("{}L{} {}", text.empty() ? "" : ", ", cache.at("level").get<int>(),
                        format_bytes(cache.at("bytes").get<double>()));
    if (const int cores = cache.at("shared_by"); cores > 1) text += fmt::format(" for {} cores", cores);
  }
  return text;
}

std::string openblas_text(const Json& openblas) {
  if (openblas.is_null()) return "not installed";
  std::string text = fmt::format("{}, kernels {}", text_of(openblas.at("version")), text_of(openblas.at("core")));
  if (openblas.at("core") != openblas.at("detected_core")) {
    text += fmt::format(" (by itself it takes {})", text_of(openblas.at("detected_core")));
  }
  return text;
}

std::string machine_html(const Json& machine) {
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"Processor", fmt::format("{}, {} cores", text_of(machine.at("cpu")), machine.at("cores").dump())},
      {"Clock, measured", fmt::format("{:.2f} GHz", machine.at("measured_ghz").get<double>())},
      {"Caches", caches_text(machine.at("caches"))},
      {"Fast memory of the plans", format_bytes(machine.at("fast_memory_bytes").get<double>())},
      {"Memory", format_bytes(machine.at("memory_bytes").get<double>())},
      {"Instruction set of the kernels", text_of(machine.at("isa"))},
      {"Frequency governor", text_of(machine.at("governor"))},
      {"System", text_of(machine.at("os")) + ", " + text_of(machine.at("kernel"))},
      {"Compiler", text_of(machine.at("compiler")) + ", " + text_of(machine.at("build_type"))},
      {"Cobble", text_of(machine.at("cobble")) + ", commit " + text_of(machine.at("commit")).substr(0, 12)},
      {"OpenBLAS", openblas_text(machine.at("openblas"))},
      {"oneTBB", text_of(machine.at("tbb"))}};
  std::string html = "<dl class=\"card\">\n";
  for (const auto& [name, value] : entries) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, escape_xml(value));
  }
  return html + "</dl>\n";
}

std::string roofs_html(const Json& roofs) {
  std::string html =
      "<div class=\"card wide\"><table>\n<tr><th>type</th><th>threads</th><th>OpenBLAS, 2048 x 2048</th><th>with the "
      "kernels "
      "that it takes by itself</th><th>copy of 256 MiB</th></tr>\n";
  const auto rate = [](const Json& value, const char* unit) {
    return value.is_number() ? fmt::format("{:.1f} {}", value.get<double>(), unit) : std::string("-");
  };
  for (const Json& roof : roofs) {
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", text_of(roof.at("dtype")),
                        roof.at("threads").dump(), rate(roof.at("gemm_gflops"), "GFLOP/s"),
                        rate(roof.at("detected_gemm_gflops"), "GFLOP/s"), rate(roof.at("copy_gb_per_second"), "GB/s"));
  }
  return html + "</table></div>\n";
}

std::string plots_html(const Json& document) {
  std::string html = "<div class=\"plots\">\n";
  for (const BenchChart& chart : bench_charts(document)) {
    html += fmt::format("<figure class=\"card\" id=\"plot_{}\">\n{}<figcaption>{}</figcaption>\n</figure>\n", chart.id,
                        chart.svg, escape_xml(chart.text));
  }
  return html + "</div>\n";
}

std::string time_cell(const Json& of, const std::string& pass) {
  const Json& time = of.at(pass + "_ms");
  if (!time.is_number()) return "<td>-</td>";
  std::string cell = "<td>" + format_milliseconds(time.get<double>());
  if (of.contains(pass + "_mad_ms")) {
    cell += fmt::format(" <small>&#177; {}</small>", format_milliseconds(of.at(pass + "_mad_ms").get<double>()));
  }
  return cell + "</td>";
}

std::string fraction_cell(const Json& measured, const std::string& pass) {
  const Json& fraction = measured.at(pass + "_fraction_of_gemm");
  if (!fraction.is_number()) return "<td>-</td>";
  const double share = fraction.get<double>();
  return fmt::format("<td>{:.2f}<span class=\"bar\"><i class=\"{}\" style=\"width:{:.0f}%\"></i></span></td>", share,
                     pass, 100 * std::min(share, 1.0));
}

std::string number_cell(const Json& value, const char* format) {
  return value.is_number() ? "<td>" + fmt::format(fmt::runtime(format), value.get<double>()) + "</td>" : "<td>-</td>";
}

/// The beginning of a row below that of the case: what something else takes, and how often as long that is.
std::string times_beside(const std::string& name, const Json& other, const Json& measured) {
  const auto slower = [&](const char* pass) {
    const Json& time = other.at(pass);
    return time.is_number()
               ? fmt::format("<td>{:.3g} x ours</td>", time.get<double>() / measured.at(pass).get<double>())
               : std::string("<td>-</td>");
  };
  return fmt::format("<tr class=\"peer\"><td>{}</td><td></td>", escape_xml(name)) + time_cell(other, "forward") +
         slower("forward_ms") + time_cell(other, "backward") + slower("backward_ms");
}

std::string case_rows(const Json& measured) {
  const std::string plan = escape_xml(text_of(measured.at("plan")));
  std::string html = fmt::format("<tr><td title=\"{}\">{}</td><td>{}</td>", plan,
                                 escape_xml(text_of(measured.at("name"))), measured.at("threads").dump());
  html += time_cell(measured, "forward") + fraction_cell(measured, "forward") + time_cell(measured, "backward") +
          fraction_cell(measured, "backward");
  html += fmt::format("<td>{}</td>", format_milliseconds(measured.at("plan_ms").get<double>()));
  html += fmt::format("<td>{}{:.3g}</td>", measured.at("dense_estimated").get<bool>() ? "~" : "",
                      measured.at("dense_speedup").get<double>());
  html += number_cell(measured.at("flop_bound_speedup"), "{:.3g}");
  html += fmt::format("<td>{}</td><td>{}</td>", format_bytes(measured.at("peak_bytes").get<double>()),
                      format_bytes(measured.at("tensor_bytes").get<double>()));
  html += number_cell(measured.at("max_error"), "{:.1e}") + number_cell(measured.at("regret"), "{:.2f}") +
          number_cell(measured.at("counterpart_speedup"), "{:.2f}") + "</tr>\n";
  if (const Json& counterpart = measured.at("counterpart"); !counterpart.is_null()) {
    html += times_beside(text_of(counterpart.at("name")), counterpart, measured);
    html += fmt::format("<td>{}</td><td></td><td></td><td></td><td>{}</td><td></td><td></td><td></td></tr>\n",
                        format_milliseconds(counterpart.at("plan_ms").get<double>()),
                        format_bytes(counterpart.at("tensor_bytes").get<double>()));
  }
  for (const Json& peer : measured.at("peers")) {
    html += times_beside(text_of(peer.at("name")) + " " + text_of(peer.at("version")), peer, measured);
    html += "<td></td><td></td><td></td><td></td><td></td>" + number_cell(peer.at("max_difference"), "{:.1e}") +
            "<td></td><td></td></tr>\n";
  }
  return html;
}

}  // namespace

std::string bench_page_html(const Json& document) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"/>\n<title>cobble bench</title>\n<style>";
  html += kStyle;
  html += "</style>\n</head>\n<body>\n<main>\n<h1>cobble bench</h1>\n";
  html += fmt::format("<p>Sparse attention, forward and backward: {} cases of {}.</p>\n", document.at("cases").size(),
                      escape_xml(text_of(document.at("suite"))));
  html += "<h2>Machine</h2>\n" + machine_html(document.at("machine"));
  html += "<h2>Roofs</h2>\n" + roofs_html(document.at("roofs"));
  html += "<h2>Plots</h2>\n" + plots_html(document);
  html +=
      "<h2>Cases</h2>\n<p>Times are medians &#177; median absolute deviations. \"/ gemm\" is the useful rate (2 pairs "
      "(d + "
      "d_v) forward, 2 pairs (3 d + 2 d_v) backward; softmax counts 0) over that of OpenBLAS's product of two 2048 x "
      "2048 "
      "matrices of the same type and threads, measured before, between and after the passes. Speed-up is the time of "
      "full(n), forward and backward by this library, over that of the case; ~ marks those whose dense time is that of "
      "fewer tokens times the ratio of the areas. \"At most\" is the speed-up that the arithmetic allows. The error is "
      "the largest of all outputs and gradients against a reference in double, relative to its largest entry; of a "
      "peer, "
      "the largest difference from ours, relative to ours. Regret is the time of the automatic choice over that of the "
      "fastest candidate. Gain is the time of the row below, forward and backward, over that of the case, measured in "
      "turn: of compressed queries and keys the same in full (densified), of reordered tokens the pattern as it "
      "stands; "
      "copying tokens into their order and back is part of the case, finding the order part of its plan.</p>\n";
  html +=
      "<div class=\"card wide\"><table>\n<tr><th>case</th><th>threads</th><th>forward</th><th>/ gemm</th>"
      "<th>backward</th><th>/ gemm</th><th>plan</th><th>speed-up</th><th>at most</th><th>memory</th><th>tensors</th>"
      "<th>error</th><th>regret</th><th>gain</th></tr>\n";
  for (const Json& measured : document.at("cases")) html += case_rows(measured);
  return html + "</table></div>\n</main>\n</body>\n</html>\n";
}

}  // namespace cobble::program
