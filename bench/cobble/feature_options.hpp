#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cobble/plan.hpp"
#include "report.hpp"

// Compressed queries and keys of `cobble run`, `plan`, `pebble` and `bench`: how many features a token stores, and how.

namespace CLI {
class App;
}

namespace cobble::program {

struct FeatureOptions {
  std::optional<std::int64_t> features;  ///< that each token of Q and K stores; open: all, dense
  std::string storage = "csr";           ///< or bsr
};

/// Adds --features and --feature-storage, in this group of the help where it is not empty.
void add_feature_options(CLI::App& command, FeatureOptions& options, const std::string& group = {});

/// Throws Error{invalid_argument} when there are more features than head_dim.
void require_features(const FeatureOptions& options, std::int64_t head_dim);

/// The problem as the I/O model sees it: d is what a token of Q and K stores, Z / n, and words are entries, spread
/// evenly over a panel's chunks. Throws what require_features() throws.
Problem model_problem(const Problem& problem, const FeatureOptions& options);

/// The problem with as many entries of Q and K as a token stores, for the plan that `run` goes by. Throws what
/// require_features() throws.
Problem stored_problem(const Problem& problem, const FeatureOptions& options);

/// Adds features and feature_storage where inputs are compressed.
void add_features_json(Json& problem, const FeatureOptions& options);
/// " of which 8 are stored in Q and K (csr)"; empty where they are dense.
std::string stored_text(const FeatureOptions& options);

}  // namespace cobble::program
