#pragma once

#include <string>

#include "pattern_argument.hpp"

namespace CLI {
class App;
}

namespace cobble::program {

/// How `make` and `convert` store what they write.
struct PatternFileArguments {
  std::string output;
  std::string block;  ///< "64" or "64x32": blocks of this size, for .npz; empty: as the pattern is
  bool json = false;
};

/// Adds --block and --json.
void add_pattern_file_options(CLI::App& command, PatternFileArguments& arguments);

/// Writes the pattern and prints one line, or one JSON document, about the file.
void write_pattern_file(const LoadedPattern& loaded, const PatternFileArguments& arguments);

struct BlockSize {
  std::int32_t rows = 0;
  std::int32_t columns = 0;
};
/// "64" or "64x32". Throws Error{invalid_argument}.
BlockSize parse_block_size(const std::string& text);

}  // namespace cobble::program
