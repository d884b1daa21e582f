#pragma once

#include <nlohmann/json_fwd.hpp>

#include "bench_case.hpp"
#include "report.hpp"

namespace cobble::program {

/// One of the cases of the document of `cobble bench`.
Json case_json(const CaseResult& result);
Json roofs_json(const std::vector<Roof>& roofs);

}  // namespace cobble::program
