#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cobble/error.hpp"
#include "commands.hpp"
#include "feature_options.hpp"
#include "pattern_argument.hpp"
#include "pebble_cases.hpp"
#include "pebble_plot.hpp"
#include "report.hpp"
#include "text.hpp"
#include "word_list.hpp"
#include "write_file.hpp"

namespace cobble::program {
namespace {

struct PebbleArguments {
  PatternArgument pattern;
  std::int64_t head_dim = 64;
  std::int64_t value_dim = 0;  ///< 0: as head_dim
  FeatureOptions features;
  std::string fast_memory = "2^6..2^20";
  std::string schedule = "both";
  bool parameter_gradients = false;
  std::string plot_file;
  bool json = false;
};

PebbleProblem problem_of(const PebbleArguments& arguments, const Pattern& pattern) {
  PebbleProblem problem;
  problem.pattern = pattern;
  problem.sizes = {.head_dim = arguments.head_dim, .value_dim = arguments.value_dim};
  if (problem.sizes.value_dim == 0) problem.sizes.value_dim = arguments.head_dim;
  problem.features = arguments.features;
  require_features(problem.features, arguments.head_dim);
  if (problem.features.features && arguments.parameter_gradients) {
    throw Error(ErrorCode::invalid_argument, "--features and --parameter-gradients exclude one another");
  }
  if (arguments.schedule != "materialize") problem.schedules.push_back(Schedule::recompute);
  if (arguments.schedule != "recompute") problem.schedules.push_back(Schedule::materialize);
  problem.passes = {PebblePass::forward, PebblePass::backward};
  if (arguments.parameter_gradients) problem.passes.push_back(PebblePass::parameter_gradients);
  problem.fast_memory_words = parse_word_list(arguments.fast_memory);
  return problem;
}

Json case_json(const PebbleCase& result) {
  Json json = {{"schedule", to_string(result.schedule)},
               {"pass", to_string(result.pass)},
               {"fast_memory", result.fast_memory_words},
               {"split_point", result.split_point},
               {"feasible", result.feasible},
               {"regime_pick", result.regime_pick}};
  if (result.feasible) {
    json["loads"] = result.count.loads;
    json["stores"] = result.count.stores;
    json["counted"] = result.count.counted();
  }
  json["theorem_bound"] = result.bound.theorem;
  json["compulsory"] = result.bound.compulsory;
  json["bound"] = result.bound.words();
  json["binding"] = binding_bound(result.bound);
  if (result.feasible) {
    json["ratio"] = result.ratio();
    json["peak_resident"] = result.count.peak_resident;
    json["index_words"] = result.count.index_words;
  }
  return json;
}

Json pebble_json(const LoadedPattern& loaded, const PebbleProblem& problem, const std::vector<PebbleCase>& cases,
                 const std::string& plot_file) {
  Json document;
  document["pattern"] = pattern_json(loaded.pattern);
  document["pattern"]["name"] = loaded.name;
  if (loaded.read_report) document["pattern"]["file"] = read_report_json(*loaded.read_report);
  document["problem"] = {{"head_dim", problem.sizes.head_dim}, {"value_dim", problem.sizes.value_dim}};
  add_features_json(document["problem"], problem.features);
  document["cases"] = Json::array();
  for (const PebbleCase& result : cases) document["cases"].push_back(case_json(result));
  if (!plot_file.empty()) document["plot"] = plot_file;
  return document;
}

std::string counted_text(const PebbleCase& result) {
  if (!result.feasible) return fmt::format("{:>16} {:>7}  ", "no tile fits", "");
  const std::string ratio = result.bound.words() > 0 ? fmt::format("{:.2f}", result.ratio()) : "";
  return fmt::format("{:>16} {:>7} {}", group_digits(result.count.counted()), ratio, result.regime_pick ? '*' : ' ');
}

/// One line for each fast memory: the floor, then each schedule's count and its ratio to the floor.
void print_pass(PebblePass pass, const PebbleProblem& problem, const std::vector<PebbleCase>& cases) {
  std::string header = fmt::format("{:>13} {:>9} {:>15} {:<10}", "M", "M / M*", "bound", "binding");
  for (const Schedule schedule : problem.schedules)
    header += fmt::format(" {:>16} {:>7}  ", to_string(schedule), "ratio");
  const bool weights = pass == PebblePass::parameter_gradients;
  print_line(weights ? "parameters" : std::string(to_string(pass)), header.substr(0, header.find_last_not_of(' ') + 1));
  const std::size_t schedules = problem.schedules.size();
  for (std::size_t first = 0; first < cases.size(); first += schedules) {
    const PebbleCase& floor = cases[first];
    if (floor.pass != pass) continue;
    std::string line = fmt::format("{:>13} {:>9} {:>15} {:<10}", group_digits(floor.fast_memory_words),
                                   format_quantity(static_cast<double>(floor.fast_memory_words) / floor.split_point),
                                   format_quantity(std::round(floor.bound.words())), binding_bound(floor.bound));
    for (std::size_t schedule = 0; schedule < schedules; ++schedule)
      line += " " + counted_text(cases[first + schedule]);
    print_line("", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

void print_cases(const LoadedPattern& loaded, const PebbleProblem& problem, const std::vector<PebbleCase>& cases,
                 const std::string& plot_file) {
  print_line("pattern", shorten(loaded.name, 110));
  print_line("", pattern_text(loaded.pattern));
  if (loaded.read_report) print_line("", read_report_text(*loaded.read_report));
  print_line("model", fmt::format("one head, d = {}{}, d_v = {}: split point M* = {} words", problem.sizes.head_dim,
                                  stored_text(problem.features), problem.sizes.value_dim,
                                  format_quantity(cases.front().split_point)));
  for (const PebblePass pass : problem.passes) print_pass(pass, problem, cases);
  print_line("", "words counted, and their ratio to the bound; * the schedule for this side of the split point");
  if (!plot_file.empty()) print_line("plot", plot_file);
}

void require_svg(const std::string& path) {
  if (path.size() < 4 || path.substr(path.size() - 4) != ".svg") {
    throw Error(ErrorCode::invalid_argument, "cannot plot to \"" + path + "\": expected a name that ends in .svg");
  }
}

void pebble(const PebbleArguments& arguments) {
  if (!arguments.plot_file.empty()) require_svg(arguments.plot_file);
  const LoadedPattern loaded = load_pattern(arguments.pattern);
  const PebbleProblem problem = problem_of(arguments, loaded.pattern);
  const std::vector<PebbleCase> cases = count_cases(problem);
  if (!arguments.plot_file.empty()) {
    write_file(arguments.plot_file, pebble_plot_svg(loaded.name, problem, cases));
  }
  if (arguments.json) {
    print_json(pebble_json(loaded, problem, cases, arguments.plot_file));
  } else {
    print_cases(loaded, problem, cases, arguments.plot_file);
  }
}

/// For CLI11: empty when `text` is a list of words, else why not.
std::string fault_of_word_list(const std::string& text) {
  try {
    parse_word_list(text);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

void add_pebble_command(CLI::App& program) {
  CLI::App& command = *program.add_subcommand(
      "pebble", "Counted traffic of both schedules, forward and backward, beside the bounds of the I/O model");
  const auto arguments = std::make_shared<PebbleArguments>();
  add_pattern_argument(command, arguments->pattern);
  command.add_option("--head-dim", arguments->head_dim, "Features of a query and a key, d")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--value-dim", arguments->value_dim, "Features of a value, d_v (default: as --head-dim)")
      ->check(CLI::PositiveNumber);
  add_feature_options(command, arguments->features);
  command
      .add_option("--fast-memory", arguments->fast_memory,
                  "Words of fast memory, M: a list such as 1000,4096 or 2^10,2^12 or 2^8..2^18 (doubling)")
      ->check(CLI::Validator(fault_of_word_list, "WORDS"))
      ->capture_default_str();
  command.add_option("--schedule", arguments->schedule, "both, recompute or materialize")
      ->check(CLI::IsMember({"both", "recompute", "materialize"}))
      ->capture_default_str();
  command.add_flag("--parameter-gradients", arguments->parameter_gradients,
                   "Count the gradients of X and Y as well, for scores A1 X A2^T and values A3 Y");
  command.add_option("--plot", arguments->plot_file, "Draw counts and bounds over M to this .svg")->type_name("FILE");
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.callback([arguments] { pebble(*arguments); });
}

}  // namespace cobble::program
