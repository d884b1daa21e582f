#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cobble/files.hpp"
#include "cobble/pattern.hpp"

namespace CLI {
class App;
}

namespace cobble::program {

/// The PATTERN of a command line: a file or an expression, and how to read it.
struct PatternArgument {
  std::string text;
  std::uint64_t seed = 0;  ///< of random kinds without their own
  ReadOptions read_options;
};

/// Adds the positional argument PATTERN and its options.
void add_pattern_argument(CLI::App& command, PatternArgument& argument);

struct LoadedPattern {
  Pattern pattern;
  std::string name;                       ///< the file's name, or the expression
  std::optional<ReadReport> read_report;  ///< of a file
};

/// Reads the file of this name if there is one, else builds the expression.
LoadedPattern load_pattern(const PatternArgument& argument);

}  // namespace cobble::program
