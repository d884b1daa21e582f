#pragma once

#include <cstdint>
#include <string>

#include "cobble/pattern.hpp"
#include "cobble/plan.hpp"
#include "cobble/reorder.hpp"
#include "report.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cobble::program {

/// Adds --reorder METHOD; `method` stays empty when it is not given. `purpose` begins its help: what the order is for.
CLI::Option* add_reorder_option(CLI::App& command, std::string& method, const std::string& purpose);

/// PlanOptions::reorder of what --reorder says: identity when it is not given.
ReorderMethod reorder_method(const std::string& asked);

struct ReorderedPattern {
  Reordering reordering;
  Pattern pattern;
  double milliseconds = 0;  ///< of finding the order and permuting
};
/// Throws what parse_reorder_method(), reorder() and permute() throw.
ReorderedPattern reorder_pattern(const Pattern& pattern, const std::string& method);

/// The counted traffic of the schedule that a plan chooses, forward and backward, in words.
std::int64_t counted_words(const Pattern& pattern, const Problem& problem, const PlanOptions& options);

/// "similarity, chosen by automatic"
std::string method_text(const std::string& asked, const Reordering& reordering);

/// The order of tokens inside a plan.
struct PlanOrder {
  std::string asked;  ///< the method that --reorder named
  ReorderMethod method = ReorderMethod::identity;
  double fill_before = 0;  ///< of tiles of kReorderTile; 0 where the order is the caller's
  double fill_after = 0;
};
/// `asked` is empty when --reorder was not given.
PlanOrder plan_order(const Plan& plan, const std::string& asked);
/// method, asked and, where tokens stand in another order, tile_fill_before and tile_fill_after.
Json plan_order_json(const PlanOrder& order);
/// "similarity, chosen by automatic; 64 x 64 tiles filled 4.1 % before, 97 % after"
std::string plan_order_text(const PlanOrder& order);

}  // namespace cobble::program
