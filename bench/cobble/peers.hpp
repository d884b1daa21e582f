#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cobble::program {

/// What another implementation took for a case, and how far its results are from ours.
struct PeerResult {
  std::string name;
  std::string version;
  std::optional<double> forward_ms;
  std::optional<double> backward_ms;
  std::optional<double> max_difference;
};

struct Peer {
  std::string name;
};

}  // namespace cobble::program
