#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cobble/error.hpp"
#include "commands.hpp"
#include "pattern_argument.hpp"
#include "picture.hpp"
#include "report.hpp"
#include "write_file.hpp"

namespace cobble::program {
namespace {

struct DrawArguments {
  PatternArgument pattern;
  std::string output;
  std::string title;
  std::int64_t tile = 0;
  bool json = false;
};

std::unique_ptr<Painter> make_painter(const std::string& path, const PictureLayout& layout) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".png") return make_png_painter(layout.width, layout.height);
  if (extension == ".svg") return make_svg_painter(layout.width, layout.height);
  throw Error(ErrorCode::invalid_argument, "cannot draw \"" + path + "\": expected a name that ends in .png or .svg");
}

void draw(const DrawArguments& arguments) {
  const LoadedPattern loaded = load_pattern(arguments.pattern);
  const PictureLayout layout = lay_out(loaded.pattern, arguments.tile);
  const std::unique_ptr<Painter> painter = make_painter(arguments.output, layout);
  paint(loaded.pattern, arguments.title.empty() ? loaded.name : arguments.title, layout, *painter);
  write_file(arguments.output, painter->finish());
  if (arguments.json) {
    Json document;
    document["pattern"] = pattern_json(loaded.pattern);
    document["pattern"]["name"] = loaded.name;
    document["picture"] = {{"path", arguments.output}, {"width", layout.width}, {"height", layout.height}};
    print_json(document);
  } else {
    fmt::print("{}: {} x {} pixels, {}\n", arguments.output, layout.width, layout.height, pattern_text(loaded.pattern));
  }
}

}  // namespace

void add_draw_command(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("draw", "A picture of a pattern, its tiles coloured by kind");
  const auto arguments = std::make_shared<DrawArguments>();
  add_pattern_argument(command, arguments->pattern);
  command.add_option("-o,--output", arguments->output, "Picture to write: .png or .svg")->required()->type_name("FILE");
  command.add_option("--title", arguments->title, "Title (default: the pattern's name)");
  command
      .add_option("--tile", arguments->tile, "Tokens of a tile (default: 16 to 64, more when the picture would burst)")
      ->check(CLI::PositiveNumber);
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.callback([arguments] { draw(*arguments); });
}

}  // namespace cobble::program
