#pragma once

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "attention/executor.hpp"
#include "attention/scratch_pool.hpp"
#include "attention/task_order.hpp"

namespace cobble::detail {

/// Runs the tasks of a phase on the caller's arena, each by an executor with scratch memory of its own.
template <class T>
void run_phase(const PlanData& plan, const PassTensors<T>& tensors, ScratchPool& pool, const Phase& phase) {
  const std::int64_t scratch = scratch_sizes(plan).total();
  TaskOrder order;
  const auto run_task = [&](std::int64_t task) {
    TaskOrder::begin_task();
    {
      ScratchPool::Lease lease = pool.lend<T>(scratch);
      Executor<T> executor(plan, tensors, lease.as<T>());
      phase.walk(task, executor);
    }
    order.end_task();
  };
  order.enter();
  // Isolation keeps a waiting thread from taking up unrelated work of an outer loop while it holds a lease.
  oneapi::tbb::this_task_arena::isolate([&] { oneapi::tbb::parallel_for(std::int64_t{0}, phase.tasks, run_task); });
  order.join();
}

}  // namespace cobble::detail
