#include "feature_options.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cobble/error.hpp"

namespace cobble::program {

void add_feature_options(CLI::App& command, FeatureOptions& options, const std::string& group) {
  CLI::Option* const features =
      command
          .add_option("--features", options.features,
                      "Features that each token of Q and K stores, compressed (default: all, dense)")
          ->check(CLI::PositiveNumber);
  CLI::Option* const storage =
      command
          .add_option("--feature-storage", options.storage, "csr, or bsr in blocks of 16 tokens x up to 16 features")
          ->check(CLI::IsMember({"csr", "bsr"}))
          ->capture_default_str();
  if (group.empty()) return;
  features->group(group);
  storage->group(group);
}

void require_features(const FeatureOptions& options, std::int64_t head_dim) {
  if (!options.features || *options.features <= head_dim) return;
  throw Error(ErrorCode::invalid_argument, "--features " + std::to_string(*options.features) +
                                               " exceeds the head dimension " + std::to_string(head_dim));
}

Problem model_problem(const Problem& problem, const FeatureOptions& options) {
  require_features(options, problem.head_dim);
  Problem model = problem;
  if (model.value_dim == 0) model.value_dim = model.head_dim;
  if (options.features) model.head_dim = *options.features;
  return model;
}

Problem stored_problem(const Problem& problem, const FeatureOptions& options) {
  require_features(options, problem.head_dim);
  Problem stored = problem;
  if (!options.features) return stored;
  stored.query_entries = stored.key_entries = static_cast<double>(*options.features);
  stored.key_in_blocks = options.storage == "bsr";
  return stored;
}

void add_features_json(Json& problem, const FeatureOptions& options) {
  if (!options.features) return;
  problem["features"] = *options.features;
  problem["feature_storage"] = options.storage;
}

std::string stored_text(const FeatureOptions& options) {
  if (!options.features) return {};
  return " of which " + std::to_string(*options.features) + " are stored in Q and K (" + options.storage + ")";
}

}  // namespace cobble::program
