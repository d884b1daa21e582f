#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report.hpp"
#include "yardstick.hpp"

namespace cobble::program {

/// What a measured number depends on: processor, caches, instruction set, system, compiler, versions and commit.
Json machine_record(const Yardstick& yardstick);

}  // namespace cobble::program
