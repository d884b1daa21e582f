#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report.hpp"

namespace cobble::program {

/// One HTML page without anything from outside: machine, plots, and a table of all cases and their peers.
std::string bench_page_html(const Json& document);

}  // namespace cobble::program
