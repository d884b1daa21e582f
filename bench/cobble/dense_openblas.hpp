#pragma once

#include <optional>

#include "openblas.hpp"
#include "passes.hpp"

namespace cobble::program {

/// What a peer computes.
template <class T>
struct PeerTensors {
  Tensor<T> output;
  Tensor<T> grad_query;
  Tensor<T> grad_key;
  Tensor<T> grad_value;
};

struct PeerTimes {
  std::optional<double> forward_ms;
  std::optional<double> backward_ms;
};

/// Masked attention as people compose it: dense products by OpenBLAS, a mask of n x n bytes, softmax row by row, P kept
/// for backward. Each key/value head serves one query head.
template <class T>
PeerTimes run_dense_openblas(const OpenBlas& openblas, const Passes<T>& passes, int threads, double seconds,
                             PeerTensors<T>& results);

}  // namespace cobble::program
