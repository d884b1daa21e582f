#include "reordering.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "progress.hpp"
#include "text.hpp"

namespace cobble::program {

CLI::Option* add_reorder_option(CLI::App& command, std::string& method, const std::string& purpose) {
  return command
      .add_option("--reorder", method, purpose + ": automatic, identity, amd, colamd, nested_dissection or similarity")
      ->type_name("METHOD")
      ->check(CLI::IsMember({"automatic", "identity", "amd", "colamd", "nested_dissection", "similarity"}));
}

ReorderedPattern reorder_pattern(const Pattern& pattern, const std::string& method) {
  const Progress progress("reordering");
  const auto start = std::chrono::steady_clock::now();
  ReorderedPattern result;
  result.reordering = reorder(pattern, parse_reorder_method(method));
  result.pattern = permute(pattern, result.reordering);
  result.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::int64_t counted_words(const Pattern& pattern, const Problem& problem, const PlanOptions& options) {
  const Progress progress("counting traffic");
  const Plan plan = make_plan(pattern, problem, options);
  for (const PlanCandidate& candidate : plan.candidates()) {
    if (candidate.chosen) return candidate.forward_words + candidate.backward_words;
  }
  return 0;
}

ReorderMethod reorder_method(const std::string& asked) {
  return asked.empty() ? ReorderMethod::identity : parse_reorder_method(asked);
}

std::string method_text(const std::string& asked, const Reordering& reordering) {
  const std::string method(to_string(reordering.method));
  return asked == method ? method : method + ", chosen by " + asked;
}

PlanOrder plan_order(const Plan& plan, const std::string& asked) {
  PlanOrder order{.asked = asked.empty() ? "identity" : asked};
  const Reordering* const reordering = plan.reordering();
  if (reordering == nullptr) return order;
  const Pattern& pattern = plan.patterns().patterns().front();
  order.method = reordering->method;
  order.fill_before = tile_fill(pattern, kReorderTile);
  order.fill_after = tile_fill(permute(pattern, *reordering), kReorderTile);
  return order;
}

Json plan_order_json(const PlanOrder& order) {
  Json json = {{"method", to_string(order.method)}, {"asked", order.asked}};
  if (order.fill_after > 0) {
    json["tile_fill_before"] = order.fill_before;
    json["tile_fill_after"] = order.fill_after;
  }
  return json;
}

std::string plan_order_text(const PlanOrder& order) {
  const std::string method = method_text(order.asked, {order.method, {}, {}});
  if (order.fill_after == 0) return method;
  return fmt::format("{}; {} x {} tiles filled {} before, {} after", method, kReorderTile, kReorderTile,
                     format_percent(order.fill_before), format_percent(order.fill_after));
}

}  // namespace cobble::program
