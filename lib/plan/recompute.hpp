#pragma once

#include "plan/plan_data.hpp"

// The recompute schedule: panels of query rows are kept whole in fast memory while keys and values stream past; scores
// are never written to slow memory (FlashAttention, arXiv 2205.14135; section 5 of arXiv 2410.09397).

namespace cobble::detail {

/// One phase; a task is a row panel of a query head.
void recompute_forward(const PlanData& plan, const PhaseConsumer& consume);

/// How the tasks of backward are cut. Both add the same tiles to each gradient in the same order, so that the bits do
/// not depend on the choice.
enum class BackwardTasks {
  heads,  ///< a task is a key/value head: five products a tile, nothing stored
  chunks  ///< chunks of row panels keep P and dS of their tiles; first all rows of the chunk, then all its columns
};
void recompute_backward(const PlanData& plan, BackwardTasks tasks, const PhaseConsumer& consume);

}  // namespace cobble::detail
