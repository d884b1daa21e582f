#pragma once

#include <hwloc.h>

#include <memory>

namespace cobble::detail {

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

/// What hwloc sees of this machine; null where it fails.
inline Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) raw = nullptr;
  Topology topology(raw, &hwloc_topology_destroy);
  if (topology != nullptr && hwloc_topology_load(raw) != 0) topology.reset();
  return topology;
}

}  // namespace cobble::detail
