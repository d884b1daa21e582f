#include "cost_model_json.hpp"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cobble/error.hpp"

namespace cobble::program {
namespace {

/// Calls visit(name, rate) for each rate of a model.
template <class Model, class Visit>
void for_each_rate(Model& model, Visit&& visit) {
  visit("dense_flop_per_second", model.dense_flop_per_second);
  visit("near_pair_flop_per_second", model.near_pair_flop_per_second);
  visit("middle_pair_flop_per_second", model.middle_pair_flop_per_second);
  visit("far_pair_flop_per_second", model.far_pair_flop_per_second);
  visit("memory_pair_flop_per_second", model.memory_pair_flop_per_second);
  visit("exponential_per_second", model.exponential_per_second);
  visit("bytes_per_second", model.bytes_per_second);
  visit("seconds_per_row", model.seconds_per_row);
  visit("seconds_per_masked_place", model.seconds_per_masked_place);
  visit("seconds_per_tile", model.seconds_per_tile);
}

/// The same of its sizes.
template <class Model, class Visit>
void for_each_size(Model& model, Visit&& visit) {
  visit("near_bytes", model.near_bytes);
  visit("far_bytes", model.far_bytes);
}

}  // namespace

nlohmann::ordered_json cost_model_json(const CostModel& model) {
  nlohmann::ordered_json json;
  for_each_rate(model, [&](const char* name, double rate) { json[name] = rate; });
  for_each_size(model, [&](const char* name, std::int64_t size) { json[name] = size; });
  return json;
}

CostModel read_cost_model(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::file_not_found, path + ": cannot be opened");
  nlohmann::json document = nlohmann::json::parse(file, nullptr, false);
  if (document.is_object() && document.contains("cost_model")) document = nlohmann::json(document["cost_model"]);
  if (!document.is_object()) {
    throw Error(ErrorCode::file_format, path + ": expected a JSON object of rates, as `cobble plan --json` prints it");
  }
  CostModel model;
  for_each_rate(model, [&](const char* name, double& rate) {
    if (!document.contains(name)) return;
    const nlohmann::json& value = document[name];
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0) {
      throw Error(ErrorCode::file_format, path + ": " + name + " is " + value.dump() + ", expected a positive number");
    }
    rate = value.get<double>();
  });
  for_each_size(model, [&](const char* name, std::int64_t& size) {
    if (!document.contains(name)) return;
    const nlohmann::json& value = document[name];
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1) {
      throw Error(ErrorCode::file_format, path + ": " + name + " is " + value.dump() + ", expected a positive integer");
    }
    size = value.get<std::int64_t>();
  });
  return model;
}

}  // namespace cobble::program
