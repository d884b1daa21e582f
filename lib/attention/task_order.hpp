#pragma once

// ThreadSanitizer sees no synchronisation inside oneTBB, which is not instrumented. This tells it what a parallel loop
// promises: the tasks begin after the loop is entered and have ended when it returns. Tasks stay unordered among
// themselves. Other builds compile none of it.

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

/// The order of one parallel loop.
class TaskOrder {
 public:
  TaskOrder() = default;
  TaskOrder(const TaskOrder&) = delete;
  TaskOrder& operator=(const TaskOrder&) = delete;

  /// Before the loop, once all that its tasks capture is made.
  void enter() { release(&entered_); }
  /// The first thing of a task. Static, so that it is called before the task reads what it captured.
  static void begin_task() { acquire(&entered_); }
  /// The last thing of a task.
  void end_task() { release(&ended_); }
  /// After the loop.
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

}  // namespace cobble::detail
