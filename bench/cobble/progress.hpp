#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace cobble::program {

/// A progress bar on stderr for work that takes longer than half a second. Shows nothing unless stderr is a terminal,
/// and removes its line at the end. `advance` may be called from any thread.
class Progress {
 public:
  /// `total` is the amount of work; 0 when it is not known: then only the time is shown.
  explicit Progress(std::string task, std::int64_t total = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::int64_t amount = 1) noexcept { done_.fetch_add(amount, std::memory_order_relaxed); }

 private:
  void draw_until_finished();

  const std::string task_;
  const std::int64_t total_;
  std::atomic<std::int64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable finished_changed_;
  bool finished_ = false;
  std::thread thread_;
};

/// What the bar shows: the task, the share done when `total` is known, and the time; at most `width` characters.
std::string progress_line(const std::string& task, std::int64_t done, std::int64_t total, double seconds,
                          std::size_t width);

}  // namespace cobble::program
