#pragma once

#include <cstdint>
#include <string>

#include "cobble/pattern.hpp"
#include "cobble/plan.hpp"
#include "cobble/reorder.hpp"

namespace CLI {
class App;
}

namespace cobble::program {

/// Adds --reorder METHOD; `method` stays empty when it is not given.
void add_reorder_option(CLI::App& command, std::string& method);

struct ReorderedPattern {
  Reordering reordering;
  Pattern pattern;
  double milliseconds = 0;  ///< of finding the order and permuting
};
/// Throws what parse_reorder_method(), reorder() and permute() throw.
ReorderedPattern reorder_pattern(const Pattern& pattern, const std::string& method);

/// The counted traffic of the schedule that a plan chooses, forward and backward, in words.
std::int64_t counted_words(const Pattern& pattern, const Problem& problem, const PlanOptions& options);

/// "similarity, by automatic"
std::string method_text(const std::string& asked, const Reordering& reordering);

}  // namespace cobble::program
