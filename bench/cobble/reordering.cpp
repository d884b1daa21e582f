#include "reordering.hpp"

#include <CLI/CLI.hpp>
#include <chrono>

#include "progress.hpp"

namespace cobble::program {

void add_reorder_option(CLI::App& command, std::string& method) {
  command
      .add_option("--reorder", method,
                  "Order tokens by this method, and show before and after: automatic, identity, amd, colamd, "
                  "nested_dissection or similarity")
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

std::string method_text(const std::string& asked, const Reordering& reordering) {
  const std::string method(to_string(reordering.method));
  return asked == method ? method : method + ", chosen by " + asked;
}

}  // namespace cobble::program
