#pragma once

#include <oneapi/tbb/parallel_for.h>

#include <cstdint>

// oneTBB is not instrumented, so ThreadSanitizer sees no synchronisation inside it. TaskOrder tells it what a parallel
// loop promises: tasks begin after the loop is entered and have ended when it returns; among themselves they are
// unordered. Other builds compile none of it.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COBBLE_THREAD_SANITIZER 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define COBBLE_THREAD_SANITIZER 1
#endif

#ifdef COBBLE_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace cobble::detail {

class TaskOrder {
 public:
  void enter() { release(&entered_); }
  /// Static, so that it can be called before a task reads what it captured.
  static void begin_task() { acquire(&entered_); }
  void end_task() { release(&ended_); }
  void join() { acquire(&ended_); }

 private:
#ifdef COBBLE_THREAD_SANITIZER
  static void acquire(char* address) { __tsan_acquire(address); }
  static void release(char* address) { __tsan_release(address); }
#else
  static void acquire(char*) {}
  static void release(char*) {}
#endif

  static inline char entered_ = 0;  // never written, only its address counts
  char ended_ = 0;
};

/// Calls body(i) for i in [0, count) on the caller's arena.
template <class Body>
void parallel_for(std::int64_t count, const Body& body) {
  TaskOrder order;
  const auto task = [&](std::int64_t i) {
    TaskOrder::begin_task();
    body(i);
    order.end_task();
  };
  order.enter();
  oneapi::tbb::parallel_for(std::int64_t{0}, count, task);
  order.join();
}

}  // namespace cobble::detail
