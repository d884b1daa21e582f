#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cobble/fast_memory.hpp"
#include "cobble/model.hpp"
#include "commands.hpp"
#include "pattern_argument.hpp"
#include "pattern_statistics.hpp"
#include "progress.hpp"
#include "reordering.hpp"
#include "report.hpp"
#include "text.hpp"

namespace cobble::program {
namespace {

constexpr std::array<std::int64_t, 4> kTileSizes = {16, 32, 64, 128};

struct InfoArguments {
  PatternArgument pattern;
  std::int64_t head_dim = 64;
  std::int64_t value_dim = 0;  ///< 0: as head_dim
  std::string dtype = "f32";
  std::string reorder;  ///< empty: not asked for
  bool json = false;
};

/// What another order of the tokens changes.
struct ReorderInfo {
  ReorderedPattern reordered;
  std::vector<TileStatistics> tiles;
  std::int64_t words_before = 0;
  std::int64_t words_after = 0;
};

struct PatternInfo {
  PatternStatistics statistics;
  std::vector<TileStatistics> tiles;
  AttentionSize size;
  double z_input = 0;
  double split_point = 0;
  std::vector<CacheLevel> caches;
  std::int64_t element_bytes = 4;
  std::optional<ReorderInfo> reorder;

  std::int64_t words(const CacheLevel& cache) const {
    return std::max<std::int64_t>(1, cache.bytes_per_core() / element_bytes);
  }
};

std::vector<TileStatistics> gather_tiles(const Pattern& pattern, Progress& progress) {
  std::vector<TileStatistics> tiles;
  for (const std::int64_t size : kTileSizes) tiles.push_back(tile_statistics(pattern, size, progress));
  return tiles;
}

ReorderInfo gather_reorder(const InfoArguments& arguments, const Pattern& pattern, const PatternInfo& info) {
  ReorderInfo result;
  result.reordered = reorder_pattern(pattern, arguments.reorder);
  const Problem problem{.head_dim = info.size.head_dim, .value_dim = info.size.value_dim};
  const PlanOptions options{.element_bytes = info.element_bytes};
  result.words_before = counted_words(pattern, problem, options);
  result.words_after = counted_words(result.reordered.pattern, problem, options);
  Progress progress("counting tiles", pattern.rows() * static_cast<std::int64_t>(kTileSizes.size()));
  result.tiles = gather_tiles(result.reordered.pattern, progress);
  return result;
}

PatternInfo gather(const InfoArguments& arguments, const Pattern& pattern) {
  PatternInfo info;
  info.element_bytes = arguments.dtype == "f64" ? 8 : 4;
  const std::int64_t value_dim = arguments.value_dim == 0 ? arguments.head_dim : arguments.value_dim;
  info.size = {pattern.rows(), pattern.columns(), pattern.pairs(), arguments.head_dim, value_dim};
  info.z_input = input_words(info.size);
  info.split_point = split_point(info.z_input, static_cast<double>(pattern.pairs()));
  info.caches = cache_levels();
  Progress progress("counting pairs and tiles", pattern.rows() * static_cast<std::int64_t>(1 + kTileSizes.size()));
  info.statistics = pattern_statistics(pattern, progress);
  info.tiles = gather_tiles(pattern, progress);
  if (!arguments.reorder.empty()) info.reorder = gather_reorder(arguments, pattern, info);
  return info;
}

Json axis_json(const AxisStatistics& axis) {
  return {{"min", axis.minimum}, {"median", axis.median}, {"mean", axis.mean},
          {"max", axis.maximum}, {"empty", axis.empty},   {"heaviest", axis.heaviest}};
}

Json fill_json(const std::vector<TileStatistics>& tiles) {
  Json fill;
  for (const TileStatistics& of_size : tiles) fill[std::to_string(of_size.size)] = of_size.fill();
  return fill;
}

Json reorder_json(const InfoArguments& arguments, const PatternInfo& info) {
  return {{"method", to_string(info.reorder->reordered.reordering.method)},
          {"asked", arguments.reorder},
          {"fill_before", fill_json(info.tiles)},
          {"fill_after", fill_json(info.reorder->tiles)},
          {"words_before", info.reorder->words_before},
          {"words_after", info.reorder->words_after},
          {"ms", info.reorder->reordered.milliseconds}};
}

Json info_json(const InfoArguments& arguments, const LoadedPattern& loaded, const PatternInfo& info) {
  Json document;
  document["pattern"] = pattern_json(loaded.pattern);
  document["pattern"]["name"] = loaded.name;
  if (loaded.read_report) document["pattern"]["file"] = read_report_json(*loaded.read_report);
  document["rows"] = axis_json(info.statistics.rows);
  document["columns"] = axis_json(info.statistics.columns);
  document["tiles"] = Json::array();
  for (const TileStatistics& tiles : info.tiles) {
    document["tiles"].push_back({{"size", tiles.size},
                                 {"full", tiles.full},
                                 {"partial", tiles.partial},
                                 {"empty", tiles.empty},
                                 {"fill", tiles.fill()}});
  }
  if (info.reorder) document["reorder"] = reorder_json(arguments, info);
  document["model"] = {{"head_dim", arguments.head_dim}, {"dtype", arguments.dtype},        {"z_input", info.z_input},
                       {"z_qk", loaded.pattern.pairs()}, {"split_point", info.split_point}, {"caches", Json::array()}};
  for (const CacheLevel& cache : info.caches) {
    const std::int64_t words = info.words(cache);
    document["model"]["caches"].push_back({{"level", cache.level},
                                           {"bytes", cache.bytes},
                                           {"shared_by", cache.shared_by},
                                           {"source", to_string(cache.source)},
                                           {"words", words},
                                           {"regime", to_string(regime(words, info.split_point))},
                                           {"forward", bound_json(forward_bound(info.size, words))},
                                           {"backward", bound_json(backward_bound(info.size, words))}});
  }
  return document;
}

std::string axis_text(const AxisStatistics& axis) {
  std::string text = fmt::format("min {}, median {:g}, mean {:.1f}, max {}", group_digits(axis.minimum), axis.median,
                                 axis.mean, group_digits(axis.maximum));
  if (axis.heaviest >= 0 && axis.maximum > axis.minimum)
    text += fmt::format(" (first at {})", group_digits(axis.heaviest));
  return text + fmt::format(", {} empty", group_digits(axis.empty));
}

void print_reorder(const InfoArguments& arguments, const PatternInfo& info) {
  const ReorderInfo& after = *info.reorder;
  print_line("reordered", fmt::format("{}, in {}", method_text(arguments.reorder, after.reordered.reordering),
                                      format_milliseconds(after.reordered.milliseconds)));
  print_line("", "  size     fill before      fill after");
  for (std::size_t i = 0; i < info.tiles.size(); ++i) {
    print_line("", fmt::format("{:>6} {:>15} {:>15}", info.tiles[i].size, format_percent(info.tiles[i].fill()),
                               format_percent(after.tiles[i].fill())));
  }
  print_line("", fmt::format("counted traffic of forward and backward: {} words before, {} after",
                             group_digits(after.words_before), group_digits(after.words_after)));
}

void print_info(const InfoArguments& arguments, const LoadedPattern& loaded, const PatternInfo& info) {
  print_line("pattern", shorten(loaded.name, 110));
  print_line("", pattern_text(loaded.pattern));
  if (loaded.read_report) print_line("", read_report_text(*loaded.read_report));
  print_line("per row", axis_text(info.statistics.rows));
  print_line("per column", axis_text(info.statistics.columns));
  print_line("tiles", "  size        full     partial       empty    non-empty     fill of non-empty");
  for (const TileStatistics& tiles : info.tiles) {
    const auto non_empty = static_cast<double>(tiles.full + tiles.partial);
    print_line("", fmt::format("{:>6} {:>11} {:>11} {:>11} {:>12} {:>21}", tiles.size, group_digits(tiles.full),
                               group_digits(tiles.partial), group_digits(tiles.empty),
                               format_percent(tiles.tiles() == 0 ? 0 : non_empty / static_cast<double>(tiles.tiles())),
                               format_percent(tiles.fill())));
  }
  if (info.reorder) print_reorder(arguments, info);
  print_line(
      "model",
      fmt::format("d = {}: Z_input = {} words, Z_QK = {} pairs, split point M* = {} words for pairs spread evenly",
                  arguments.head_dim, format_quantity(info.z_input), group_digits(loaded.pattern.pairs()),
                  format_quantity(info.split_point)));
  for (const CacheLevel& cache : info.caches) {
    const std::int64_t words = info.words(cache);
    const bool large = regime(words, info.split_point) == Regime::large_fast_memory;
    print_line(
        "", fmt::format("L{}: {:>9} a core, M = {:>11} words of {}: {}", cache.level,
                        format_bytes(static_cast<double>(cache.bytes_per_core())), group_digits(words), arguments.dtype,
                        large ? "large fast memory, recompute scores" : "small fast memory, store scores"));
    print_line("",
               fmt::format("    bound of traffic: forward {}, backward {}", bound_text(forward_bound(info.size, words)),
                           bound_text(backward_bound(info.size, words))));
  }
}

}  // namespace

void add_info_command(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("info", "Counts, tiles and I/O regime of a pattern");
  const auto arguments = std::make_shared<InfoArguments>();
  add_pattern_argument(command, arguments->pattern);
  command.add_option("--head-dim", arguments->head_dim, "Features of a query and a key, d")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--value-dim", arguments->value_dim, "Features of a value, d_v (default: as --head-dim)")
      ->check(CLI::PositiveNumber);
  command.add_option("--dtype", arguments->dtype, "Type whose words fast memory is counted in")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->capture_default_str();
  add_reorder_option(command, arguments->reorder, "Order tokens by this method, and show before and after");
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.callback([arguments] {
    const LoadedPattern loaded = load_pattern(arguments->pattern);
    const PatternInfo info = gather(*arguments, loaded.pattern);
    if (arguments->json) {
      print_json(info_json(*arguments, loaded, info));
    } else {
      print_info(*arguments, loaded, info);
    }
  });
}

}  // namespace cobble::program
