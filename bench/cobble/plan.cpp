#include "cobble/plan.hpp"

#include <fmt/core.h>
#include <tbb/task_arena.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "commands.hpp"
#include "cost_model_json.hpp"
#include "feature_options.hpp"
#include "pattern_argument.hpp"
#include "progress.hpp"
#include "reordering.hpp"
#include "report.hpp"
#include "text.hpp"

namespace cobble::program {
namespace {

struct PlanArguments {
  PatternArgument pattern;
  Problem problem;
  FeatureOptions features;
  PlanOptions options;
  std::string reorder;  ///< empty: not asked for
  std::string dtype = "f32";
  std::int64_t threads = 0;  ///< 0: as many as the machine has
  std::string cost_model_file;
  bool json = false;
};

struct PlanReport {
  Plan plan;
  double milliseconds = 0;
  std::int64_t threads = 0;
  std::int64_t workspace_bytes = 0;
  PlanOrder order = {};
  double z_input = 0;         ///< of one head
  TrafficBound forward = {};  ///< of all heads
  TrafficBound backward = {};
};

/// Of one head, as the plan sees it.
AttentionSize head_size(const Plan& plan, const FeatureOptions& features) {
  const Problem& problem = plan.problem();
  return {plan.patterns().rows(), plan.patterns().columns(), plan.total_pairs() / (problem.batch * problem.query_heads),
          features.features.value_or(problem.head_dim), problem.value_dim};
}

/// Heads that share keys and values read and write these once in the compulsory traffic of all of them.
template <class HeadBound>
TrafficBound bound_of_heads(const Plan& plan, const FeatureOptions& features, const HeadBound& head_bound) {
  const Problem& problem = plan.problem();
  const std::int64_t heads = problem.batch * problem.query_heads;
  const AttentionSize size = head_size(plan, features);
  const TrafficBound head = head_bound(size);
  AttentionSize keys_alone = size;
  keys_alone.queries = keys_alone.pairs = 0;
  const double key_words = head_bound(keys_alone).compulsory;
  const auto key_heads = static_cast<double>(problem.batch * problem.key_value_heads);
  const auto query_heads = static_cast<double>(heads);
  return {query_heads * head.theorem, query_heads * (head.compulsory - key_words) + key_heads * key_words};
}

PlanReport make_report(const PlanArguments& arguments, const Pattern& pattern) {
  PlanOptions options = arguments.options;
  options.threads = arguments.threads;
  options.element_bytes = arguments.dtype == "f64" ? 8 : 4;
  options.reorder = reorder_method(arguments.reorder);
  if (!arguments.cost_model_file.empty()) options.cost_model = read_cost_model(arguments.cost_model_file);
  const Progress progress("planning");
  const auto start = std::chrono::steady_clock::now();
  // The model's own tiles are those of d as a token stores it; run's hold panels in full.
  const bool by_model = options.tile_sizes == TileSizes::model;
  const Problem problem = by_model ? model_problem(arguments.problem, arguments.features)
                                   : stored_problem(arguments.problem, arguments.features);
  PlanReport report = {.plan = make_plan(pattern, problem, options)};
  report.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  report.threads = arguments.threads > 0 ? arguments.threads : tbb::this_task_arena::max_concurrency();
  report.workspace_bytes = report.plan.workspace_bytes(report.threads, options.element_bytes);
  report.order = plan_order(report.plan, arguments.reorder);
  report.z_input = input_words(head_size(report.plan, arguments.features));
  const std::int64_t words = report.plan.fast_memory_words();
  report.forward = bound_of_heads(report.plan, arguments.features,
                                  [words](const AttentionSize& size) { return forward_bound(size, words); });
  report.backward = bound_of_heads(report.plan, arguments.features,
                                   [words](const AttentionSize& size) { return backward_bound(size, words); });
  return report;
}

const PlanCandidate& chosen_candidate(const Plan& plan) {
  return *std::find_if(plan.candidates().begin(), plan.candidates().end(),
                       [](const PlanCandidate& candidate) { return candidate.chosen; });
}

/// Why the chosen candidate was chosen.
std::string reason(const PlanArguments& arguments, const Plan& plan) {
  const bool large = plan.regime() == Regime::large_fast_memory;
  const auto considered = [&plan](Schedule schedule) {
    return std::any_of(plan.candidates().begin(), plan.candidates().end(),
                       [schedule](const PlanCandidate& candidate) { return candidate.schedule == schedule; });
  };
  std::string field;  // which candidates there could be
  if (arguments.options.candidate) return fmt::format("candidate {} was asked for", *arguments.options.candidate);
  if (arguments.options.schedule != Schedule::automatic) {
    field = fmt::format("{} was asked for", to_string(plan.schedule()));
  } else if (large) {
    field = "M >= M*, so scores are not worth storing";
  } else if (considered(Schedule::recompute)) {
    field = "M < M*, so storing scores may pay, and both schedules compete";
  } else {
    field = "M < M*, so scores are worth storing";
  }
  const std::size_t count = plan.candidates().size();
  if (count == 1) return field + "; one candidate fits";
  return fmt::format(
      "{}; {} of {} candidates", field,
      arguments.options.tile_sizes == TileSizes::model ? "the least traffic" : "the shortest time by the cost model",
      count);
}

Json candidate_json(const PlanCandidate& candidate) {
  Json json = {{"name", candidate.name}, {"schedule", to_string(candidate.schedule)}};
  if (candidate.schedule == Schedule::recompute) json["backward_passes"] = to_string(candidate.backward_passes);
  json.update({{"row_panel", candidate.row_panel},
               {"column_panel", candidate.column_panel},
               {"feature_chunk", candidate.feature_chunk},
               {"forward_words", candidate.forward_words},
               {"backward_words", candidate.backward_words},
               {"forward_formula_words", candidate.forward_formula_words},
               {"backward_formula_words", candidate.backward_formula_words},
               {"estimated_ms", candidate.seconds * 1e3},
               {"chosen", candidate.chosen}});
  return json;
}

Json plan_json(const PlanArguments& arguments, const LoadedPattern& loaded, const PlanReport& report) {
  const Plan& plan = report.plan;
  const Problem& problem = plan.problem();
  Json document;
  document["pattern"] = pattern_json(loaded.pattern);
  document["pattern"]["name"] = loaded.name;
  if (loaded.read_report) document["pattern"]["file"] = read_report_json(*loaded.read_report);
  document["problem"] = {{"batch", problem.batch},
                         {"heads", problem.query_heads},
                         {"kv_heads", problem.key_value_heads},
                         {"head_dim", arguments.problem.head_dim},
                         {"value_dim", problem.value_dim},
                         {"dtype", arguments.dtype},
                         {"threads", report.threads}};
  add_features_json(document["problem"], arguments.features);
  document["plan"] = {{"schedule", to_string(plan.schedule())},
                      {"regime", to_string(plan.regime())},
                      {"z_input", report.z_input},
                      {"split_point", plan.split_point()},
                      {"fast_memory", plan.fast_memory_words()},
                      {"row_panel", plan.row_panel()},
                      {"column_panel", plan.column_panel()},
                      {"feature_chunk", plan.feature_chunk()},
                      {"workspace_bytes", report.workspace_bytes},
                      {"ms", report.milliseconds},
                      {"tiles", plan.tiles()},
                      {"bytes", plan.memory_bytes()},
                      {"reordering", plan_order_json(report.order)},
                      {"reason", reason(arguments, plan)}};
  document["forward"] = bound_json(report.forward);
  document["backward"] = bound_json(report.backward);
  document["cost_model"] = cost_model_json(plan.cost_model());
  document["candidates"] = Json::array();
  for (const PlanCandidate& candidate : plan.candidates()) document["candidates"].push_back(candidate_json(candidate));
  return document;
}

std::string traffic_text(const TrafficBound& bound, std::int64_t predicted_words) {
  const std::string text = fmt::format("{} words predicted", group_digits(predicted_words));
  if (bound.words() == 0) return text;
  return text + fmt::format(", {:.2f} times the bound of {}", static_cast<double>(predicted_words) / bound.words(),
                            bound_text(bound));
}

void print_candidates(const Plan& plan) {
  print_line("candidates", fmt::format("{:>16} {:>17} {:>17} {:>17} {:>12}", "forward words", "evenly spread",
                                       "backward words", "evenly spread", "estimated"));
  for (const PlanCandidate& candidate : plan.candidates()) {
    print_line("", candidate.name + (candidate.chosen ? "  <- chosen" : ""));
    print_line(candidate.chosen ? "          *" : "",
               fmt::format("{:>16} {:>17} {:>17} {:>17} {:>12}", group_digits(candidate.forward_words),
                           format_quantity(std::round(candidate.forward_formula_words)),
                           group_digits(candidate.backward_words),
                           format_quantity(std::round(candidate.backward_formula_words)),
                           format_milliseconds(candidate.seconds * 1e3)));
  }
}

std::string heads_text(const Problem& problem) {
  if (problem.key_value_heads != problem.query_heads) {
    return fmt::format("{} heads over {} of keys and values", problem.query_heads, problem.key_value_heads);
  }
  return fmt::format("{} head{}", problem.query_heads, problem.query_heads == 1 ? "" : "s");
}

void print_plan(const PlanArguments& arguments, const LoadedPattern& loaded, const PlanReport& report) {
  const Plan& plan = report.plan;
  const Problem& problem = plan.problem();
  const bool large = plan.regime() == Regime::large_fast_memory;
  print_line("pattern", shorten(loaded.name, 110));
  print_line("", pattern_text(loaded.pattern));
  if (loaded.read_report) print_line("", read_report_text(*loaded.read_report));
  print_line("problem", fmt::format("batch {}, {}, d = {}{}, d_v = {}, {}", problem.batch, heads_text(problem),
                                    arguments.problem.head_dim, stored_text(arguments.features), problem.value_dim,
                                    arguments.dtype));
  if (arguments.features.features) {
    print_line("", "words moved, Z_input and the split point count what a token stores");
  }
  print_line("regime", fmt::format("{} fast memory: M = {} words, split point M* = {}, Z_input = {} words a head",
                                   large ? "large" : "small", group_digits(plan.fast_memory_words()),
                                   format_quantity(plan.split_point()), format_quantity(report.z_input)));
  print_line("schedule", std::string(to_string(plan.schedule())));
  print_line("why", reason(arguments, plan));
  if (!arguments.reorder.empty()) print_line("order", plan_order_text(report.order));
  print_line("tiles",
             fmt::format("{} of {} x {}, feature chunk {}", group_digits(plan.tiles()), group_digits(plan.row_panel()),
                         group_digits(plan.column_panel()), plan.feature_chunk()));
  print_line("memory", fmt::format("plan {}, workspace {} on {} thread{}; made in {}",
                                   format_bytes(static_cast<double>(plan.memory_bytes())),
                                   format_bytes(static_cast<double>(report.workspace_bytes)), report.threads,
                                   report.threads == 1 ? "" : "s", format_milliseconds(report.milliseconds)));
  print_line("forward", traffic_text(report.forward, chosen_candidate(plan).forward_words));
  print_line("backward", traffic_text(report.backward, chosen_candidate(plan).backward_words));
  print_candidates(plan);
}

/// `value` lives as long as the command.
template <class Enum>
void add_choice(CLI::App& command, const char* name, Enum& value, const std::map<std::string, Enum>& choices,
                const char* description) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.push_back(choice.first);
  command
      .add_option_function<std::string>(
          name, [&value, choices](const std::string& text) { value = choices.at(text); }, description)
      ->check(CLI::IsMember(names));
}

}  // namespace

void add_plan_command(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("plan", "The schedule and tiles chosen for a pattern, and why");
  const auto arguments = std::make_shared<PlanArguments>();
  add_pattern_argument(command, arguments->pattern);
  Problem& problem = arguments->problem;
  PlanOptions& options = arguments->options;
  const auto add_size = [&](const char* name, std::int64_t& size, const char* description) {
    return command.add_option(name, size, description)->check(CLI::PositiveNumber);
  };
  add_size("--head-dim", problem.head_dim, "Features of a query and a key, d")->capture_default_str();
  add_size("--value-dim", problem.value_dim, "Features of a value, d_v (default: as --head-dim)");
  add_size("--heads", problem.query_heads, "Query heads")->capture_default_str();
  add_size("--kv-heads", problem.key_value_heads, "Key/value heads, a divisor of --heads (default: as --heads)");
  add_size("--batch", problem.batch, "Batch entries")->capture_default_str();
  add_feature_options(command, arguments->features);
  command.add_option("--dtype", arguments->dtype, "Type of the arithmetic, in whose words fast memory is counted")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->capture_default_str();
  add_choice<Schedule>(
      command, "--schedule", options.schedule,
      {{"auto", Schedule::automatic}, {"recompute", Schedule::recompute}, {"materialize", Schedule::materialize}},
      "auto, recompute or materialize");
  add_choice<BackwardPasses>(
      command, "--backward-passes", options.backward_passes,
      {{"auto", BackwardPasses::automatic}, {"one", BackwardPasses::one}, {"two", BackwardPasses::two}},
      "auto, one or two: how recompute goes backward");
  add_choice<TileSizes>(command, "--tile-sizes", options.tile_sizes,
                        {{"hardware", TileSizes::hardware}, {"model", TileSizes::model}},
                        "hardware (the fastest candidate wins) or model (to the word; the least traffic wins)");
  add_size("--fast-memory", options.fast_memory_bytes,
           "Bytes of fast memory (default: COBBLE_FAST_MEMORY, or half of one core's L2)");
  add_size("--row-panel", options.row_panel, "Rows of recompute's panels (default: chosen)");
  add_size("--column-panel", options.column_panel, "Columns of recompute's panels (default: chosen)");
  auto* const calibrate = command.add_flag("--calibrate", options.calibrate,
                                           "Measure this machine's rates first; --json prints them as cost_model");
  command
      .add_option("--cost-model", arguments->cost_model_file,
                  "JSON file with rates to choose by, as --calibrate --json printed them")
      ->type_name("FILE")
      ->excludes(calibrate);
  command
      .add_option("--candidate", options.candidate,
                  "Take this candidate, counted from 0 in the order they are listed, whatever the rates say")
      ->check(CLI::NonNegativeNumber);
  add_reorder_option(command, arguments->reorder,
                     "Let tokens stand in another order inside, found by this method; results keep the given order");
  command.add_flag("--parameter-gradients", options.parameter_gradients,
                   "Plan for the gradients of the weights in Q = A1 X and V = A3 Y");
  command.add_option("--threads", arguments->threads, "Threads to keep busy, and the workspace is for (default: all)")
      ->check(CLI::Range(1, 4096));
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.callback([arguments] {
    const LoadedPattern loaded = load_pattern(arguments->pattern);
    const PlanReport report = make_report(*arguments, loaded.pattern);
    if (arguments->json) {
      print_json(plan_json(*arguments, loaded, report));
    } else {
      print_plan(*arguments, loaded, report);
    }
  });
}

}  // namespace cobble::program
