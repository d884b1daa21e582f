#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cobble/error.hpp"
#include "commands.hpp"
#include "pattern_argument.hpp"
#include "picture.hpp"
#include "reordering.hpp"
#include "report.hpp"
#include "text.hpp"
#include "write_file.hpp"

namespace cobble::program {
namespace {

struct DrawArguments {
  PatternArgument pattern;
  std::string output;
  std::string title;
  std::int64_t tile = 0;
  std::string reorder;  ///< empty: not asked for
  bool json = false;
};

std::unique_ptr<Painter> make_painter(const std::string& path, int width, int height) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".png") return make_png_painter(width, height);
  if (extension == ".svg") return make_svg_painter(width, height);
  throw Error(ErrorCode::invalid_argument, "cannot draw \"" + path + "\": expected a name that ends in .png or .svg");
}

/// The pattern in its new order.
Json paint_reordered(const DrawArguments& arguments, const Pattern& pattern, const PictureLayout& layout,
                     Painter& painter) {
  const ReorderedPattern reordered = reorder_pattern(pattern, arguments.reorder);
  const double before = tile_fill(pattern, kReorderTile);
  const double after = tile_fill(reordered.pattern, kReorderTile);
  paint(reordered.pattern,
        fmt::format("reordered ({}): {} x {} tiles filled {} before, {} after",
                    method_text(arguments.reorder, reordered.reordering), kReorderTile, kReorderTile,
                    format_percent(before), format_percent(after)),
        layout, painter);
  return {{"method", to_string(reordered.reordering.method)},
          {"asked", arguments.reorder},
          {"fill_before", before},
          {"fill_after", after},
          {"ms", reordered.milliseconds}};
}

void draw(const DrawArguments& arguments) {
  const LoadedPattern loaded = load_pattern(arguments.pattern);
  const PictureLayout layout = lay_out(loaded.pattern, arguments.tile);
  const int width = arguments.reorder.empty() ? layout.width : 2 * layout.width;
  const std::unique_ptr<Painter> painter = make_painter(arguments.output, width, layout.height);
  paint(loaded.pattern, arguments.title.empty() ? loaded.name : arguments.title, layout, *painter);
  Json reorder_report;
  if (!arguments.reorder.empty()) {
    reorder_report = paint_reordered(arguments, loaded.pattern, moved(layout, layout.width), *painter);
  }
  write_file(arguments.output, painter->finish());
  if (arguments.json) {
    Json document;
    document["pattern"] = pattern_json(loaded.pattern);
    document["pattern"]["name"] = loaded.name;
    document["picture"] = {{"path", arguments.output}, {"width", width}, {"height", layout.height}};
    if (!arguments.reorder.empty()) document["reorder"] = reorder_report;
    print_json(document);
  } else {
    fmt::print("{}: {} x {} pixels, {}\n", arguments.output, width, layout.height, pattern_text(loaded.pattern));
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
  add_reorder_option(command, arguments->reorder, "Order tokens by this method, and show before and after");
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.callback([arguments] { draw(*arguments); });
}

}  // namespace cobble::program
