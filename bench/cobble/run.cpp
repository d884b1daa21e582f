#include <fmt/core.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "check.hpp"
#include "cobble/attention.hpp"
#include "cobble/error.hpp"
#include "cobble/files.hpp"
#include "cobble/plan.hpp"
#include "commands.hpp"
#include "compressed_inputs.hpp"
#include "machine.hpp"
#include "pattern_argument.hpp"
#include "problem_tensors.hpp"
#include "progress.hpp"
#include "reordering.hpp"
#include "report.hpp"
#include "term_arguments.hpp"
#include "text.hpp"

namespace cobble::program {
namespace {

struct RunArguments {
  PatternArgument pattern;
  ProblemArguments problem;
  TermArguments terms;
  std::string schedule = "auto";
  std::string backward_passes = "auto";
  std::string reorder;  ///< empty: not asked for
  std::int64_t fast_memory_bytes = 0;
  std::string dtype = "f32";
  std::int64_t threads = 0;        ///< 0: as many as the machine has
  std::optional<int> repetitions;  ///< open: as many as are quick
  bool check = false;
  std::string save_file;
  bool json = false;
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// The median of `repetitions` runs after one that warms up. By default three, except that a pass of seconds needs no
/// warm-up and is run once.
template <class Pass>
double median_milliseconds(const char* task, std::optional<int> repetitions, const Pass& pass) {
  constexpr int kRepetitions = 3;
  constexpr double kLongMilliseconds = 2000;
  const Progress progress(task);
  const auto measure = [&pass] {
    const auto start = std::chrono::steady_clock::now();
    pass();
    return milliseconds_since(start);
  };
  const double first = measure();
  if (!repetitions && first > kLongMilliseconds) return first;
  std::vector<double> times(static_cast<std::size_t>(repetitions.value_or(kRepetitions)));
  std::generate(times.begin(), times.end(), measure);
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  return times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
}

BackwardPasses backward_passes_named(const std::string& name) {
  if (name == "one") return BackwardPasses::one;
  return name == "two" ? BackwardPasses::two : BackwardPasses::automatic;
}

Schedule schedule_named(const std::string& name) {
  if (name == "recompute") return Schedule::recompute;
  if (name == "materialize") return Schedule::materialize;
  return Schedule::automatic;
}

struct RunReport {
  double plan_ms = 0;
  double forward_ms = 0;
  double backward_ms = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t workspace_bytes = 0;
  std::int64_t threads = 0;
  PlanOrder order;
  std::string terms;
  std::optional<CheckResult> check;
  /// What products take of a token of K and V: d and d_v, or its mean number of stored entries.
  double key_features = 0;
  double value_features = 0;
  Json storage;  ///< of compressed inputs
};

/// Products count, softmax and recomputation do not. Of compressed K and V only what is stored counts.
double forward_gflops(const Plan& plan, const RunReport& report) {
  const double width = report.key_features + report.value_features;
  const double flop = 2 * static_cast<double>(plan.total_pairs()) * width;
  return report.forward_ms > 0 ? flop / (report.forward_ms * 1e6) : 0;
}

double backward_gflops(const Plan& plan, const RunReport& report) {
  const double width = 3 * report.key_features + 2 * report.value_features;
  const double flop = 2 * static_cast<double>(plan.total_pairs()) * width;
  return report.backward_ms > 0 ? flop / (report.backward_ms * 1e6) : 0;
}

/// What a file can hold of values: themselves, or as NumPy has no bfloat16, the floats that those are.
template <class T>
decltype(NamedArray::values) saved_values(std::span<const T> values, std::list<std::vector<float>>& floats) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    std::vector<float>& converted = floats.emplace_back(values.size());
    std::transform(values.begin(), values.end(), converted.begin(), [](T value) { return static_cast<float>(value); });
    return std::span<const float>(converted);
  } else {
    return values;
  }
}

template <class T>
Json storage_json(const ProblemTensors<T>& tensors) {
  Json storage = Json::object();
  for (const auto& [name, input] : {std::pair("query", tensors.query_input()), std::pair("key", tensors.key_input()),
                                    std::pair("value", tensors.value_input())}) {
    if (input.compressed == nullptr) continue;
    const FeaturesView<T> view(*input.compressed);
    storage[name] = {{"storage", view.storage() == FeatureStorage::csr ? "csr" : "bsr"}, {"entries", view.nnz()}};
  }
  return storage;
}

template <class T>
void save(const std::string& path, const Attention<T>& result, const Gradients<T>& gradients, bool matrices,
          const std::vector<NamedArray>& compressed) {
  std::list<std::vector<float>> floats;
  const auto saved = [&floats](const auto& tensor) { return saved_values(tensor.values(), floats); };
  const auto named = [&](const char* name, const auto& tensor, bool per_token) {
    const TensorShape& shape = tensor.shape();
    NamedArray array{name, {shape.tokens}, saved(tensor)};
    if (!matrices) array.shape = {shape.batch, shape.heads, shape.tokens};
    if (!per_token) array.shape.push_back(shape.features);
    return array;
  };
  std::vector<NamedArray> arrays{named("output", result.output, false), named("lse", result.lse, true)};
  for (const auto& [name, tensor] : {std::pair("grad_query", &gradients.query), std::pair("grad_key", &gradients.key),
                                     std::pair("grad_value", &gradients.value)}) {
    if (tensor->shape() != TensorShape{}) arrays.push_back(named(name, *tensor, false));
  }
  arrays.insert(arrays.end(), compressed.begin(), compressed.end());
  for (const auto& [name, tensor] :
       {std::pair("grad_bias", &gradients.bias), std::pair("grad_sinks", &gradients.sinks)}) {
    if (tensor->data() != nullptr) arrays.push_back({name, {std::ssize(tensor->values())}, saved(*tensor)});
  }
  const Progress progress("writing " + path);
  write_npz(path, arrays);
}

Json run_json(const RunArguments& arguments, const LoadedPattern& loaded, const Plan& plan, const RunReport& report) {
  const Problem& problem = plan.problem();
  Json document;
  document["pattern"] = pattern_json(loaded.pattern);
  document["pattern"]["name"] = loaded.name;
  if (loaded.read_report) document["pattern"]["file"] = read_report_json(*loaded.read_report);
  document["problem"] = {
      {"batch", problem.batch},       {"heads", problem.query_heads},   {"kv_heads", problem.key_value_heads},
      {"head_dim", problem.head_dim}, {"value_dim", problem.value_dim}, {"dtype", arguments.dtype},
      {"threads", report.threads},    {"scale", problem.scale.value()}, {"seed", arguments.pattern.seed}};
  if (!report.terms.empty()) document["problem"]["terms"] = report.terms;
  if (!report.storage.empty()) document["problem"]["compressed"] = report.storage;
  document["plan"] = {{"schedule", to_string(plan.schedule())},
                      {"regime", to_string(plan.regime())},
                      {"split_point", plan.split_point()},
                      {"fast_memory", plan.fast_memory_words()},
                      {"row_panel", plan.row_panel()},
                      {"column_panel", plan.column_panel()},
                      {"feature_chunk", plan.feature_chunk()},
                      {"workspace_bytes", report.workspace_bytes},
                      {"ms", report.plan_ms},
                      {"tiles", plan.tiles()},
                      {"bytes", plan.memory_bytes()},
                      {"reordering", plan_order_json(report.order)}};
  document["forward"] = {{"ms", report.forward_ms}, {"gflops", forward_gflops(plan, report)}};
  document["backward"] = {{"ms", report.backward_ms}, {"gflops", backward_gflops(plan, report)}};
  document["peak_bytes"] = report.peak_bytes;
  document["isa"] = instruction_set();
  if (report.check) {
    Json errors;
    for (const TensorError& error : report.check->errors) errors[error.name] = error.relative;
    document["check"] = {{"passed", report.check->passed()},
                         {"max_error", errors},
                         {"tolerance", report.check->tolerance},
                         {"query_tokens", report.check->query_tokens},
                         {"key_tokens", report.check->key_tokens}};
  }
  return document;
}

void print_report(const RunArguments& arguments, const LoadedPattern& loaded, const Plan& plan, const RunReport& report,
                  double tensor_bytes) {
  const Problem& problem = plan.problem();
  print_line("pattern", shorten(loaded.name, 110));
  print_line("", pattern_text(loaded.pattern));
  if (loaded.read_report) print_line("", read_report_text(*loaded.read_report));
  const std::string heads =
      problem.key_value_heads == problem.query_heads
          ? fmt::format("{} head{}", problem.query_heads, problem.query_heads == 1 ? "" : "s")
          : fmt::format("{} heads over {} of keys and values", problem.query_heads, problem.key_value_heads);
  print_line("problem",
             fmt::format("batch {}, {}, d = {}, d_v = {}, {}, {} thread{}", problem.batch, heads, problem.head_dim,
                         problem.value_dim, arguments.dtype, report.threads, report.threads == 1 ? "" : "s"));
  for (const auto& [name, storage] : report.storage.items()) {
    print_line("", fmt::format("{} in {}, {} entries", name, storage.at("storage").template get<std::string>(),
                               group_digits(storage.at("entries").template get<std::int64_t>())));
  }
  if (!report.terms.empty()) print_line("terms", report.terms);
  print_line("plan", fmt::format("{}: M = {} words of fast memory, split point M* = {}", to_string(plan.schedule()),
                                 group_digits(plan.fast_memory_words()), format_quantity(plan.split_point())));
  print_line(
      "", fmt::format("{} tiles of {} x {}, feature chunk {}, workspace {}, made in {}", group_digits(plan.tiles()),
                      plan.row_panel(), plan.column_panel(), plan.feature_chunk(),
                      format_bytes(static_cast<double>(report.workspace_bytes)), format_milliseconds(report.plan_ms)));
  if (!arguments.reorder.empty()) print_line("order", plan_order_text(report.order));
  print_line("forward", fmt::format("{:>9}  {:7.1f} GFLOP/s", format_milliseconds(report.forward_ms),
                                    forward_gflops(plan, report)));
  print_line("backward", fmt::format("{:>9}  {:7.1f} GFLOP/s", format_milliseconds(report.backward_ms),
                                     backward_gflops(plan, report)));
  print_line("memory", fmt::format("{} at the peak, {} of it tensors",
                                   format_bytes(static_cast<double>(report.peak_bytes)), format_bytes(tensor_bytes)));
  print_line("isa", instruction_set());
  if (report.check) {
    const bool all =
        report.check->query_tokens == loaded.pattern.rows() && report.check->key_tokens == loaded.pattern.columns();
    print_line("check", fmt::format("{}: {} with the double reference, tolerance {:.0e}",
                                    report.check->passed() ? "passed" : "FAILED",
                                    all ? "all tokens compared"
                                        : fmt::format("{} queries and {} keys a head compared",
                                                      report.check->query_tokens, report.check->key_tokens),
                                    report.check->tolerance));
    for (const TensorError& error : report.check->errors) {
      print_line("", fmt::format("{:<11} {:.1e}", error.name, error.relative));
    }
  }
  if (!arguments.save_file.empty()) print_line("saved", arguments.save_file);
}

template <class T>
void run(const RunArguments& arguments) {
  const LoadedPattern loaded = load_pattern(arguments.pattern);
  ProblemArguments problem_arguments = arguments.problem;
  problem_arguments.seed = arguments.pattern.seed;
  const ProblemTensors<T> tensors = make_problem_tensors<T>(loaded.pattern, problem_arguments);
  const Problem& problem = tensors.problem;
  const TermValues<T> term_values = make_terms<T>(arguments.terms, loaded.pattern, problem, arguments.pattern.seed);
  const ScoreTerms<T> terms = term_values.terms();

  RunReport report;
  report.terms = term_values.describe();
  report.threads = tbb::this_task_arena::max_concurrency();
  PlanOptions plan_options;
  plan_options.schedule = schedule_named(arguments.schedule);
  plan_options.backward_passes = backward_passes_named(arguments.backward_passes);
  plan_options.fast_memory_bytes = arguments.fast_memory_bytes;
  plan_options.element_bytes = sizeof(ComputeType<T>);  // of what tiles hold
  plan_options.reorder = reorder_method(arguments.reorder);
  const auto plan_start = std::chrono::steady_clock::now();
  const Plan plan = make_plan(loaded.pattern, problem, plan_options);
  report.plan_ms = milliseconds_since(plan_start);
  report.order = plan_order(plan, arguments.reorder);
  report.workspace_bytes = plan.workspace_bytes(report.threads, sizeof(T));

  Attention<T> result{Tensor<T>({problem.batch, problem.query_heads, loaded.pattern.rows(), problem.value_dim}),
                      Tensor<ComputeType<T>>({problem.batch, problem.query_heads, loaded.pattern.rows(), 1})};
  const auto gradient_of = [](const OwnedTensor<T>& input, const std::optional<Features<T>>& compressed) {
    return compressed ? Tensor<T>() : Tensor<T>(input.shape);
  };
  Gradients<T> gradients{gradient_of(tensors.query, tensors.compressed_query),
                         gradient_of(tensors.key, tensors.compressed_key),
                         gradient_of(tensors.value, tensors.compressed_value)};
  if (term_values.has_bias) gradients.bias = Tensor<T>(terms.bias.values.shape());
  if (!terms.sinks.empty()) gradients.sinks = Tensor<T>({1, problem.query_heads, 1, 1});
  std::optional<MaybeCompressedRun<T>> compressed;
  if (tensors.compressed()) compressed.emplace(tensors, gradients);
  report.storage = storage_json(tensors);
  report.key_features = entries_per_token(tensors.key_input());
  report.value_features = entries_per_token(tensors.value_input());
  Workspace workspace;
  report.forward_ms = median_milliseconds("forward", arguments.repetitions, [&] {
    if (compressed) return compressed->forward(plan, result.view(), workspace, terms);
    forward(plan, tensors.query.view(), tensors.key.view(), tensors.value.view(), result.view(), workspace, terms);
  });
  BackwardOptions<T> backward_options{tensors.grad_lse.view()};
  backward_options.terms = terms;
  report.backward_ms = median_milliseconds("backward", arguments.repetitions, [&] {
    if (compressed) return compressed->backward(plan, result, workspace, backward_options);
    backward(plan, tensors.query.view(), tensors.key.view(), tensors.value.view(), result, tensors.grad_output.view(),
             gradients.view(), workspace, backward_options);
  });
  report.peak_bytes = peak_memory_bytes();  // of the work itself: before the check takes its own

  if (arguments.check && compressed) {
    report.check = compressed->check(plan, loaded.pattern, result, backward_options, arguments.pattern.seed);
  } else if (arguments.check) {
    report.check =
        check_against_reference<T>({loaded.pattern, tensors.query.view(), tensors.key.view(), tensors.value.view(),
                                    tensors.grad_output.view(), tensors.grad_lse.view(), problem.scale, terms},
                                   result, std::as_const(gradients).view(), arguments.pattern.seed);
  }
  if (!arguments.save_file.empty()) {
    std::vector<NamedArray> arrays;
    if (compressed) compressed->add_arrays(arrays);
    save(arguments.save_file, result, gradients, tensors.matrices, arrays);
  }

  if (arguments.json) {
    print_json(run_json(arguments, loaded, plan, report));
  } else {
    const std::int64_t elements = 2 * (tensors.query_input().view().nnz() + tensors.key_input().view().nnz() +
                                       tensors.value_input().view().nnz() + tensors.grad_output.values.size());
    print_report(arguments, loaded, plan, report, static_cast<double>(elements) * sizeof(T));
  }
  if (report.check && !report.check->passed()) {
    const TensorError& worst = report.check->worst();
    throw std::runtime_error(
        fmt::format("check failed: {} is off by {:.2e} of the reference's largest entry, tolerance {:.0e}", worst.name,
                    worst.relative, report.check->tolerance));
  }
}

void run_with_threads(const RunArguments& arguments) {
  const auto threads =
      static_cast<std::size_t>(arguments.threads > 0 ? arguments.threads : tbb::this_task_arena::max_concurrency());
  // More threads than cores are possible only when the global limit is raised as well.
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(static_cast<int>(threads));
  arena.execute([&arguments] {
    if (arguments.dtype == "f64") return run<double>(arguments);
    if (arguments.dtype == "bf16") return run<bfloat16>(arguments);
    if (arguments.dtype == "f16") return run<float16>(arguments);
    run<float>(arguments);
  });
}

}  // namespace

void add_run_command(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("run", "Forward and backward on a pattern, timed and on request checked");
  const auto arguments = std::make_shared<RunArguments>();
  add_pattern_argument(command, arguments->pattern);

  ProblemArguments& problem = arguments->problem;
  const std::string sizes = "Problem";
  const auto add_size = [&](const char* name, std::optional<std::int64_t>& size, const char* description) {
    command.add_option(name, size, description)->check(CLI::PositiveNumber)->group(sizes);
  };
  add_size("--head-dim", problem.head_dim, "Features of a query and a key, d (default 64)");
  add_size("--value-dim", problem.value_dim, "Features of a value, d_v (default: as --head-dim)");
  add_size("--heads", problem.heads, "Query heads (default 1)");
  add_size("--kv-heads", problem.kv_heads, "Key/value heads, a divisor of --heads (default: as --heads)");
  add_size("--batch", problem.batch, "Batch entries (default 1)");
  command.add_option("--dtype", arguments->dtype, "Type of the tensors; sums of bf16 and f16 are in f32")
      ->check(CLI::IsMember({"f32", "f64", "bf16", "f16"}))
      ->capture_default_str()
      ->group(sizes);
  add_feature_options(command, problem.features, sizes);

  const std::string files =
      "Tensors (.npy: tokens x features, or batch x heads x tokens x features; random when not given)";
  const auto add_file = [&](const char* name, std::string& file, const char* description) {
    command.add_option(name, file, description)->type_name("FILE")->group(files);
  };
  add_file("--query", problem.query_file, "Q; also compressed, tokens x features: SciPy's .npz or .mtx");
  add_file("--key", problem.key_file, "K, likewise");
  add_file("--value", problem.value_file, "V, likewise");
  add_file("--grad-output", problem.grad_output_file, "Gradient of the output");
  add_file("--grad-lse", problem.grad_lse_file,
           "Gradient of the log-sum-exp, one number a token (none when not given)");
  add_file(
      "--save", arguments->save_file,
      "Write output, lse, grad_query, grad_key and grad_value to this .npz, without axes for batch and heads when "
      "no file given has them, bf16 as f32; with --bias and --sinks also grad_bias, in the order of compressed "
      "rows, and grad_sinks; gradients of compressed inputs as SciPy's arrays, e.g. grad_key_data, grad_key_indices, "
      "grad_key_indptr and grad_key_shape");
  add_term_arguments(command, arguments->terms);

  const std::string execution = "Execution";
  command.add_option("--schedule", arguments->schedule, "auto, recompute or materialize")
      ->check(CLI::IsMember({"auto", "recompute", "materialize"}))
      ->capture_default_str()
      ->group(execution);
  command.add_option("--backward-passes", arguments->backward_passes, "auto, one or two: how recompute goes backward")
      ->check(CLI::IsMember({"auto", "one", "two"}))
      ->capture_default_str()
      ->group(execution);
  command
      .add_option("--fast-memory", arguments->fast_memory_bytes,
                  "Bytes of fast memory to plan for (default: COBBLE_FAST_MEMORY, or half of one core's L2)")
      ->check(CLI::PositiveNumber)
      ->group(execution);
  add_reorder_option(command, arguments->reorder,
                     "Let tokens stand in another order inside, found by this method; results keep the given order")
      ->group(execution);
  command.add_option("--threads", arguments->threads, "Threads (default: all)")
      ->check(CLI::Range(1, 4096))
      ->group(execution);
  command
      .add_option("--repeat", arguments->repetitions,
                  "Runs to take the median of, after a warm-up (default: 3, or 1 when long)")
      ->check(CLI::Range(1, 1000000))
      ->group(execution);
  command
      .add_flag("--check", arguments->check,
                "Compare with the reference in double (a sample above 4096 tokens); exit status 1 beyond tolerance")
      ->group(execution);
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.callback([arguments] { run_with_threads(*arguments); });
}

}  // namespace cobble::program
