#pragma once

#include <string>
#include <vector>

#include "pebble_cases.hpp"

namespace cobble::program {

/// Counted words of each schedule, both sides of the theorem, compulsory traffic and M* over fast memory, one panel for
/// each pass. An SVG document.
std::string pebble_plot_svg(const std::string& name, const PebbleProblem& problem,
                            const std::vector<PebbleCase>& cases);

}  // namespace cobble::program
