#include <CLI/CLI.hpp>
#include <memory>

#include "commands.hpp"
#include "write_pattern_file.hpp"

namespace cobble::program {
namespace {

struct ConvertArguments {
  PatternArgument input;
  PatternFileArguments file;
};

}  // namespace

void add_convert_command(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("convert", "Write a pattern file in another format");
  const auto arguments = std::make_shared<ConvertArguments>();
  add_pattern_argument(command, arguments->input);
  command.add_option("OUTPUT", arguments->file.output, "File to write: .mtx, .smtx, .npz or .npy")->required();
  add_pattern_file_options(command, arguments->file);
  command.callback([arguments] { write_pattern_file(load_pattern(arguments->input), arguments->file); });
}

}  // namespace cobble::program
