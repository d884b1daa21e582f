#include "model/machine_cores.hpp"

#include <hwloc.h>

#include <algorithm>
#include <memory>

namespace cobble::detail {
namespace {

std::int64_t count_cores() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return 1;
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> topology(raw, &hwloc_topology_destroy);
  if (hwloc_topology_load(topology.get()) != 0) return 1;
  return std::max(1, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE));
}

}  // namespace

std::int64_t machine_cores() {
  static const std::int64_t cores = count_cores();
  return cores;
}

}  // namespace cobble::detail
