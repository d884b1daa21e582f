#include <CLI/CLI.hpp>
#include <memory>

#include "commands.hpp"
#include "write_pattern_file.hpp"

namespace cobble::program {
namespace {

struct MakeArguments {
  std::string expression;
  std::uint64_t seed = 0;
  PatternFileArguments file;
};

}  // namespace

void add_make_command(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("make", "Write the pattern of an expression to a file");
  const auto arguments = std::make_shared<MakeArguments>();
  command.add_option("EXPRESSION", arguments->expression, "Such as \"causal(4096) & window(4096,512,0)\"")->required();
  command.add_option("-o,--output", arguments->file.output, "File to write: .mtx, .smtx, .npz or .npy")
      ->required()
      ->type_name("FILE");
  command.add_option("--seed", arguments->seed, "Seed of random kinds without their own")->capture_default_str();
  add_pattern_file_options(command, arguments->file);
  command.callback([arguments] {
    write_pattern_file({parse_pattern(arguments->expression, arguments->seed), arguments->expression, std::nullopt},
                       arguments->file);
  });
}

}  // namespace cobble::program
