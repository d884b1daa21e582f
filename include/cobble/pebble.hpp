#pragma once

#include <cstdint>

#include "cobble/plan.hpp"

// The counting machine: walks a plan with pebbles instead of numbers. A pebble lies on each word in fast memory; there
// are plan.fast_memory_words() of them. The machine throws on a walk that breaks the rules of the model, so what is
// counted is what the numeric pass does.

namespace cobble {

/// What one pass moves, in words, over all heads.
struct PebbleCount {
  std::int64_t loads = 0;
  std::int64_t stores = 0;
  std::int64_t index_words = 0;    ///< of stored patterns, read beside the values; not part of counted()
  std::int64_t peak_resident = 0;  ///< pebbles on the board at once, at most

  std::int64_t counted() const noexcept { return loads + stores; }
};

/// Throw Error{model_violation} when the walk computes with what is not in fast memory, loads what was never stored,
/// holds more than fast memory, forgets a pebble, or leaves a result unwritten. O(words moved) time.
PebbleCount count_forward(const Plan& plan);
PebbleCount count_backward(const Plan& plan);
/// dX and dY from A1, A2, A3, X, Y and dO, forward included. The plan was made with PlanOptions::parameter_gradients.
PebbleCount count_parameter_gradients(const Plan& plan);

}  // namespace cobble
