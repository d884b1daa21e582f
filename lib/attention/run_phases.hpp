#pragma once

#include <oneapi/tbb/task_arena.h>

#include "attention/executor.hpp"
#include "attention/scratch_pool.hpp"
#include "core/parallel_for.hpp"

namespace cobble::detail {

/// Runs the tasks of a phase on the caller's arena, each by an executor with scratch memory of its own.
template <class Storage>
void run_phase(const PlanData& plan, const PassTensors<Storage>& tensors, ScratchPool& pool, const Phase& phase) {
  const std::int64_t scratch = executor_scratch(plan, tensors);
  // Isolation keeps a waiting thread from taking up unrelated work of an outer loop while it holds a lease.
  oneapi::tbb::this_task_arena::isolate([&] {
    parallel_for(phase.tasks, [&](std::int64_t task) {
      ScratchPool::Lease lease = pool.lend<ComputeType<Storage>>(scratch);
      Executor<Storage> executor(plan, tensors, lease.as<ComputeType<Storage>>());
      phase.walk(task, executor);
    });
  });
}

}  // namespace cobble::detail
