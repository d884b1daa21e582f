#include "write_pattern_file.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cobble/error.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "text.hpp"

namespace cobble::program {

BlockSize parse_block_size(const std::string& text) {
  BlockSize size;
  const char* const end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, size.rows);
  size.columns = size.rows;
  if (error == std::errc() && rest != end && *rest == 'x') {
    const auto second = std::from_chars(rest + 1, end, size.columns);
    rest = second.ptr;
    error = second.ec;
  }
  if (error != std::errc() || rest != end || size.rows < 1 || size.columns < 1) {
    throw Error(ErrorCode::invalid_argument, "--block \"" + text + "\", expected a size such as 64 or 64x32");
  }
  return size;
}

void add_pattern_file_options(CLI::App& command, PatternFileArguments& arguments) {
  command.add_option("--block", arguments.block, "Store blocks of this size, such as 64 or 64x32 (.npz only)")
      ->type_name("SIZE");
  command.add_flag("--json", arguments.json, "Print one JSON document");
}

void write_pattern_file(const LoadedPattern& loaded, const PatternFileArguments& arguments) {
  Pattern pattern = loaded.pattern;
  if (!arguments.block.empty()) {
    const std::string extension = std::filesystem::path(arguments.output).extension().string();
    if (extension != ".npz") {
      throw Error(ErrorCode::invalid_argument,
                  "--block stores blocks, which \"" + arguments.output + "\" cannot hold; expected a .npz file");
    }
    const BlockSize block = parse_block_size(arguments.block);
    pattern = from_bsr(pattern.to_bsr(block.rows, block.columns));
  }
  {
    const Progress progress("writing " + arguments.output);
    write_pattern(arguments.output, pattern);
  }
  const std::uintmax_t bytes = std::filesystem::file_size(arguments.output);
  if (arguments.json) {
    Json document;
    document["pattern"] = pattern_json(pattern);
    document["pattern"]["name"] = loaded.name;
    if (loaded.read_report) document["pattern"]["file"] = read_report_json(*loaded.read_report);
    document["output"] = {{"path", arguments.output}, {"bytes", bytes}};
    print_json(document);
  } else {
    fmt::print("{}: {}, {}\n", arguments.output, pattern_text(pattern), format_bytes(static_cast<double>(bytes)));
  }
}

}  // namespace cobble::program
