#pragma once

#include <string>
#include <vector>

#include "passes.hpp"

// What the planner's other candidates would have taken.

namespace cobble::program {

struct CandidateTime {
  std::string name;
  double forward_ms = 0;
  double backward_ms = 0;
  bool chosen = false;

  double total_ms() const { return forward_ms + backward_ms; }
};

/// Medians of forward and backward with each candidate that can be forced, in turn, round after round, so that what
/// slows the machine down slows all of them; at most about `seconds` for each. A candidate that is far from the fastest
/// after the first round is not measured again.
template <class T>
std::vector<CandidateTime> measure_candidates(Passes<T>& passes, double seconds);

}  // namespace cobble::program
