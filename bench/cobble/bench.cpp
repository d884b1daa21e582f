#include <fmt/core.h>
#include <tbb/task_arena.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench_case.hpp"
#include "bench_charts.hpp"
#include "bench_json.hpp"
#include "bench_page.hpp"
#include "bench_suites.hpp"
#include "commands.hpp"
#include "feature_options.hpp"
#include "machine_record.hpp"
#include "reordering.hpp"
#include "report.hpp"
#include "text.hpp"
#include "write_file.hpp"

namespace cobble::program {
namespace {

struct BenchArguments {
  std::vector<std::string> patterns;
  std::string suite;
  std::string only;
  std::vector<std::int64_t> head_dims = {64};
  std::int64_t heads = 1;
  std::int64_t batch = 1;
  std::vector<std::string> dtypes = {"f32"};
  FeatureOptions features;
  std::string reorder;
  std::vector<int> threads;
  std::optional<double> seconds;
  std::uint64_t seed = 0;
  bool regret = false;
  bool peers = false;
  bool no_check = false;
  bool json = false;
  std::string json_file;
  std::string html_file;
  std::string plots_folder;
  std::string from_file;
};

std::vector<BenchCase> cases_of(const BenchArguments& arguments) {
  if (!arguments.patterns.empty() && !arguments.suite.empty()) {
    throw CLI::ValidationError("PATTERN and --suite exclude one another");
  }
  std::vector<BenchCase> cases;
  if (arguments.patterns.empty()) cases = suite_cases(arguments.suite.empty() ? "quick" : arguments.suite);
  for (const std::string& pattern : arguments.patterns) {
    for (const std::string& dtype : arguments.dtypes) {
      for (const std::int64_t head_dim : arguments.head_dims) {
        BenchCase measured = make_case(pattern, head_dim, dtype);
        measured.heads = arguments.heads;
        measured.batch = arguments.batch;
        measured.features = arguments.features;
        if (measured.compressed()) measured.sweep = Sweep::features;
        measured.reorder = arguments.reorder;
        measured.name = case_name(measured);
        cases.push_back(std::move(measured));
      }
    }
  }
  std::erase_if(cases, [&](const BenchCase& measured) {
    return measured.name.find(arguments.only) == std::string::npos &&
           measured.pattern.find(arguments.only) == std::string::npos;
  });
  if (cases.empty()) throw CLI::ValidationError("no case's name holds \"" + arguments.only + "\"");
  return cases;
}

/// One, and doubled up to all, for the suite of everything; all for others.
std::vector<int> threads_of(const BenchArguments& arguments) {
  std::vector<int> threads = arguments.threads;
  std::sort(threads.begin(), threads.end());
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  if (!threads.empty()) return threads;
  const int all = tbb::this_task_arena::max_concurrency();
  if (arguments.suite == "all") {
    for (int count = 1; count < all; count *= 2) threads.push_back(count);
  }
  threads.push_back(all);
  return threads;
}

BenchOptions options_of(const BenchArguments& arguments) {
  BenchOptions options;
  options.seconds = arguments.seconds.value_or(arguments.suite == "quick" || arguments.suite.empty() ? 0.5 : 1.5);
  options.check = !arguments.no_check;
  options.regret = arguments.regret || arguments.suite == "all";
  options.peers = arguments.peers;
  options.seed = arguments.seed;
  return options;
}

/// One column of the table for people.
std::string fraction_text(double gflops, const std::optional<double>& gemm_gflops) {
  return gemm_gflops ? fmt::format("{:.2f}", gflops / *gemm_gflops) : "-";
}

void print_heading() {
  fmt::print("{:<52} {:>3} {:>9} {:>5} {:>9} {:>5} {:>8} {:>9} {:>10} {:>10} {:>8} {:>6} {:>5}\n", "case", "thr",
             "forward", "/gemm", "backward", "/gemm", "plan", "speed-up", "of at most", "memory", "error", "regret",
             "gain");
}

void print_case(const CaseResult& result) {
  const std::optional<double> regret = result.regret();
  const std::optional<double> gain = result.counterpart_speedup();
  fmt::print("{:<52} {:>3} {:>9} {:>5} {:>9} {:>5} {:>8} {:>9} {:>10} {:>10} {:>8} {:>6} {:>5}\n",
             shorten(result.measured.name, 52), result.threads, format_milliseconds(result.forward.median_ms),
             fraction_text(result.forward_gflops(), result.gemm_gflops), format_milliseconds(result.backward.median_ms),
             fraction_text(result.backward_gflops(), result.gemm_gflops), format_milliseconds(result.plan_ms),
             fmt::format("{}{:.3g}", result.dense_estimated ? "~" : "", result.dense_speedup),
             fmt::format("{:.3g}", result.flop_bound_speedup), format_bytes(static_cast<double>(result.peak_bytes)),
             result.check ? fmt::format("{:.1e}", result.check->worst().relative) : "-",
             regret ? fmt::format("{:.2f}", *regret) : "-", gain ? fmt::format("{:.2f}", *gain) : "-");
  if (result.counterpart) {
    fmt::print("{:<52} {:>3} {:>9} {:>5} {:>9} {:>5} {:>8}\n", "  " + result.counterpart->name, "",
               format_milliseconds(result.counterpart->forward.median_ms), "",
               format_milliseconds(result.counterpart->backward.median_ms), "",
               format_milliseconds(result.counterpart->plan_ms));
  }
  std::fflush(stdout);
}

Json read_document(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read \"" + path + "\"");
  try {
    return Json::parse(file);
  } catch (const Json::exception& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

void write_outputs(const BenchArguments& arguments, const Json& document) {
  if (!arguments.json_file.empty()) write_file(arguments.json_file, document.dump(2) + "\n");
  if (!arguments.html_file.empty()) write_file(arguments.html_file, bench_page_html(document));
  if (arguments.plots_folder.empty()) return;
  for (const BenchChart& chart : bench_charts(document)) {
    write_file((std::filesystem::path(arguments.plots_folder) / (chart.id + ".svg")).string(), chart.svg);
  }
}

Json measure_document(const BenchArguments& arguments) {
  const std::vector<BenchCase> cases = cases_of(arguments);
  Bench bench(options_of(arguments));
  for (const AbsentPeer& peer : bench.absent_peers()) {
    fmt::print(stderr, "cobble: {} is absent: {}\n", peer.name, peer.reason);
  }
  Json document;
  document["suite"] = arguments.patterns.empty() ? (arguments.suite.empty() ? "quick" : arguments.suite) : "patterns";
  document["machine"] = machine_record(bench.yardstick());
  document["roofs"] = Json::array();
  document["cases"] = Json::array();
  if (!arguments.json) print_heading();
  for (const BenchCase& measured : cases) {
    for (const int threads : threads_of(arguments)) {
      const CaseResult result = bench.run(measured, threads);
      document["cases"].push_back(case_json(result));
      if (!arguments.json) print_case(result);
      // A long run that is broken off leaves what it has.
      if (!arguments.json_file.empty()) write_file(arguments.json_file, document.dump(2) + "\n");
    }
  }
  document["roofs"] = roofs_json(bench.roofs());
  return document;
}

void bench(const BenchArguments& arguments) {
  const Json document = arguments.from_file.empty() ? measure_document(arguments) : read_document(arguments.from_file);
  write_outputs(arguments, document);
  if (arguments.json) print_json(document);
}

}  // namespace

void add_bench_command(CLI::App& program) {
  CLI::App& command =
      *program.add_subcommand("bench", "Suites of cases, or patterns, measured against a matrix product");
  const auto arguments = std::make_shared<BenchArguments>();
  command.add_option("PATTERN", arguments->patterns, "Files or expressions to measure instead of a suite");
  command.add_option("--suite", arguments->suite, "Which cases (default: quick)")->check(CLI::IsMember(suite_names()));
  command.add_option("--only", arguments->only, "Only cases whose name holds this");
  const std::string sizes = "Of PATTERN";
  command.add_option("--head-dim", arguments->head_dims, "Features of a query, a key and a value; several: 64,128")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(sizes);
  command.add_option("--heads", arguments->heads, "Heads")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(sizes);
  command.add_option("--batch", arguments->batch, "Batch entries")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(sizes);
  command.add_option("--dtype", arguments->dtypes, "Type of the tensors; several: f32,bf16")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "f64", "bf16", "f16"}))
      ->capture_default_str()
      ->group(sizes);
  add_feature_options(command, arguments->features, sizes);
  add_reorder_option(command, arguments->reorder,
                     "Measure with tokens in another order inside, found by this method, and as it stands")
      ->group(sizes);
  command
      .add_option("--threads", arguments->threads,
                  "Threads; several: 1,2 (default: all; for the suite all: 1, 2, 4 ... to all)")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--seconds", arguments->seconds, "Time for each pass of a case (default: 0.5 for quick, else 1.5)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--seed", arguments->seed, "Seed of everything random")->capture_default_str();
  command.add_flag("--regret", arguments->regret,
                   "Measure the planner's other candidates too (the suite all always does)");
  command.add_flag("--peers", arguments->peers,
                   "Measure other implementations too, those that are installed (see bench/peers)");
  command.add_flag("--no-check", arguments->no_check, "Leave out the comparison with the reference in double");
  command
      .add_option_function<std::string>(
          "--json",
          [arguments](const std::string& file) {
            arguments->json = file.empty() || file == "-";
            if (!arguments->json) arguments->json_file = file;
          },
          "Write one JSON document to FILE.json, or to stdout")
      ->expected(0, 1)
      ->type_name("[FILE]")
      ->check(CLI::Validator(
          [](const std::string& file) {  // a PATTERN after --json is not what it takes
            const bool is_json = file.empty() || file == "-" || file.ends_with(".json");
            return is_json ? "" : "\"" + file + "\" does not end in .json";
          },
          "", "JSON file"));
  command.add_option("--html", arguments->html_file, "Write a page with plots and a table of all cases")
      ->type_name("FILE");
  command.add_option("--plots", arguments->plots_folder, "Write the page's plots into this folder, as SVG")
      ->check(CLI::ExistingDirectory);
  command.add_option("--from", arguments->from_file, "Measure nothing; take what --json wrote before")
      ->type_name("FILE")
      ->excludes("PATTERN")
      ->excludes("--suite");
  command.callback([arguments] { bench(*arguments); });
}

}  // namespace cobble::program
