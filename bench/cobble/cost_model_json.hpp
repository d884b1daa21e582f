#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cobble/cost_model.hpp"

namespace cobble::program {

nlohmann::ordered_json cost_model_json(const CostModel& model);

/// The rates in a JSON file: an object of them, or a document that has one as "cost_model", as `cobble plan --json`
/// prints it. Rates that it leaves out keep their defaults. Throws Error{file_not_found, file_format}.
CostModel read_cost_model(const std::string& path);

}  // namespace cobble::program
