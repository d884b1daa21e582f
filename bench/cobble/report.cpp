#include "report.hpp"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "text.hpp"

namespace cobble::program {

void print_json(const Json& document) {
  fmt::print("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_line(const std::string& label, const std::string& text) { fmt::print("{:<12}{}\n", label, text); }

double density(const Pattern& pattern) {
  const double area = static_cast<double>(pattern.rows()) * static_cast<double>(pattern.columns());
  return area == 0 ? 0 : static_cast<double>(pattern.pairs()) / area;
}

Json pattern_json(const Pattern& pattern) {
  return {{"rows", pattern.rows()},
          {"columns", pattern.columns()},
          {"pairs", pattern.pairs()},
          {"density", density(pattern)}};
}

std::string pattern_text(const Pattern& pattern) {
  return fmt::format("{} x {} tokens, {} pairs, density {}", group_digits(pattern.rows()),
                     group_digits(pattern.columns()), group_digits(pattern.pairs()), format_percent(density(pattern)));
}

Json read_report_json(const ReadReport& report) {
  return {{"format", to_string(report.format)},
          {"stored_entries", report.stored_entries},
          {"duplicates_merged", report.duplicates_merged},
          {"sorted_rows", report.sorted_rows},
          {"expanded_symmetry", report.expanded_symmetry},
          {"empty_rows", report.empty_rows}};
}

std::string read_report_text(const ReadReport& report) {
  std::string text =
      fmt::format("{}, {} entries stored", to_string(report.format), group_digits(report.stored_entries));
  if (report.expanded_symmetry) text += ", symmetry expanded";
  if (report.sorted_rows) text += ", rows had to be sorted";
  if (report.duplicates_merged > 0)
    text += fmt::format(", {} duplicates merged", group_digits(report.duplicates_merged));
  return text;
}

const char* binding_bound(const TrafficBound& bound) { return bound.theorem_binds() ? "theorem" : "compulsory"; }

Json bound_json(const TrafficBound& bound) {
  return {{"theorem_bound", bound.theorem},
          {"compulsory", bound.compulsory},
          {"bound", bound.words()},
          {"binding", binding_bound(bound)}};
}

std::string bound_text(const TrafficBound& bound) {
  return fmt::format("{} words ({} binds)", format_quantity(std::round(bound.words())),
                     bound.theorem_binds() ? "the theorem" : "compulsory traffic");
}

}  // namespace cobble::program
