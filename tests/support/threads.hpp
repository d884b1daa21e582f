#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <cstddef>

namespace cobble::test {

/// f() on `threads` threads, also where the machine has fewer cores.
template <class F>
auto on_threads(int threads, F f) {
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  return arena.execute(f);
}

}  // namespace cobble::test
