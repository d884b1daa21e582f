#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report.hpp"

// The plots of what `cobble bench` measured.

namespace cobble::program {

struct BenchChart {
  std::string id;    ///< also the stem of its file
  std::string text;  ///< what it shows, in a sentence or two
  std::string svg;
};

/// Those that the document of `cobble bench` has cases for. Throws nlohmann::json's exceptions when names are missing.
std::vector<BenchChart> bench_charts(const Json& document);

}  // namespace cobble::program
