#pragma once

#include <cstdint>

namespace cobble::detail {

/// Cores of this machine, by hwloc, whatever share of them this process may use; 1 where hwloc knows none.
std::int64_t machine_cores();

}  // namespace cobble::detail
