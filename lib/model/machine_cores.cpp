#include "model/machine_cores.hpp"

#include <algorithm>

#include "model/topology.hpp"

namespace cobble::detail {
namespace {

std::int64_t count_cores() {
  const Topology topology = load_topology();
  return topology == nullptr ? 1 : std::max(1, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE));
}

}  // namespace

std::int64_t machine_cores() {
  static const std::int64_t cores = count_cores();
  return cores;
}

}  // namespace cobble::detail
