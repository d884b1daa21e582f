#include "pattern_argument.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cobble/error.hpp"
#include "progress.hpp"

namespace cobble::program {

void add_pattern_argument(CLI::App& command, PatternArgument& argument) {
  command
      .add_option("PATTERN", argument.text, "File (.mtx, .smtx, .npz, .npy) or expression, e.g. \"window(4096,256,0)\"")
      ->required();
  command.add_option("--seed", argument.seed, "Seed of everything random")->capture_default_str();
  command.add_flag("--strict", argument.read_options.strict, "Duplicates and unsorted rows in the file are errors");
  command.add_flag("--drop-zeros", argument.read_options.drop_zeros, "Zeros stored in the file are no pairs");
  command.add_flag("--padded-lists", argument.read_options.padded_lists,
                   "The .npy file holds each row's selected columns, padded with -1");
  command
      .add_option("--list-columns", argument.read_options.list_columns,
                  "Columns of a pattern of padded lists (default: as many as rows)")
      ->check(CLI::PositiveNumber)
      ->needs("--padded-lists");
}

LoadedPattern load_pattern(const PatternArgument& argument) {
  LoadedPattern loaded;
  const bool is_file = std::filesystem::exists(argument.text);
  const bool is_expression = !is_file && argument.text.find('(') != std::string::npos;
  if (is_expression) {
    const ReadOptions& options = argument.read_options;
    if (options.strict || options.drop_zeros || options.padded_lists) {
      throw Error(ErrorCode::invalid_argument,
                  "--strict, --drop-zeros and --padded-lists say how to read a file, but \"" + argument.text +
                      "\" is an expression");
    }
    loaded.pattern = parse_pattern(argument.text, argument.seed);
    loaded.name = argument.text;
    return loaded;
  }
  if (!is_file) {
    throw Error(ErrorCode::file_not_found,
                "no file \"" + argument.text + "\", and not an expression such as window(4096,256,0) either");
  }
  const Progress progress("reading " + argument.text);
  loaded.read_report.emplace();
  loaded.pattern = read_pattern(argument.text, argument.read_options, &*loaded.read_report);
  loaded.name = std::filesystem::path(argument.text).filename().string();
  return loaded;
}

}  // namespace cobble::program
