#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "passes.hpp"
#include "yardstick.hpp"

// Other implementations, measured on the same tensors: dense masked attention composed on OpenBLAS, in this process,
// and programs of bench/peers/, which read a folder of .npy files and write their results there:
//
//   PROGRAM --version        prints its version; any failure: not installed, the reason on the last line of stderr
//   PROGRAM FOLDER           reads problem.json {scale, dtype, threads, seconds}, query.npy, key.npy, value.npy,
//   grad_output.npy
//                            (batch, heads, tokens, features) and pattern.npz (SciPy CSR) or mask.npy (dense bool);
//                            writes output.npy and, where it has a backward, grad_query.npy, grad_key.npy,
//                            grad_value.npy; prints {"forward_ms", "backward_ms"}, medians, the latter null without one

namespace cobble::program {

/// What another implementation took for a case, and how far its results are from ours.
struct PeerResult {
  std::string name;
  std::string version;
  std::optional<double> forward_ms;
  std::optional<double> backward_ms;
  /// The largest difference of any output or gradient, relative to our largest entry.
  std::optional<double> max_difference;
};

struct Peer {
  std::string name;
  std::string version;
  std::vector<std::string> command;  ///< empty: in this process
  bool dense = false;                ///< holds n x n: takes only what fits
  bool single = false;               ///< takes f32 only
};

struct AbsentPeer {
  std::string name;
  std::string reason;
};

struct Peers {
  std::vector<Peer> present;
  std::vector<AbsentPeer> absent;
};
/// Asks each for its version.
Peers find_peers(const Yardstick& yardstick);

/// None when the case is too large for a dense peer, or of a type that it does not take. Throws std::runtime_error with
/// the last line of stderr when the peer fails.
template <class T>
std::optional<PeerResult> run_peer(const Peer& peer, const Yardstick& yardstick, const Passes<T>& passes, int threads,
                                   double seconds);

}  // namespace cobble::program
