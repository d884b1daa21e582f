#include "progress.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "text.hpp"

namespace cobble::program {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBarWidth = 30;

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string format_seconds(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{}:{:02} min", whole / 60, whole % 60);
}

}  // namespace

std::string progress_line(const std::string& task, std::int64_t done, std::int64_t total, double seconds,
                          std::size_t width) {
  std::string line;
  if (total > 0) {
    const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
    const auto filled = static_cast<std::size_t>(share * kBarWidth);
    line = fmt::format("{} [{}{}] {:3.0f} % {}", task, std::string(filled, '#'), std::string(kBarWidth - filled, '.'),
                       share * 100, format_seconds(seconds));
    // An estimate from less than a few percent says nothing.
    if (share > 0.03 && share < 1) line += fmt::format(", {} left", format_seconds(seconds * (1 - share) / share));
  } else {
    line = fmt::format("{} {}", task, format_seconds(seconds));
  }
  return shorten(line, width);
}

Progress::Progress(std::string task, std::int64_t total) : task_(std::move(task)), total_(total) {
  if (isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { draw_until_finished(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  finished_changed_.notify_one();
  thread_.join();
}

void Progress::draw_until_finished() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  if (finished_changed_.wait_for(lock, 500ms, [this] { return finished_; })) return;
  do {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const std::string line =
        progress_line(task_, done_.load(std::memory_order_relaxed), total_, elapsed.count(), terminal_width() - 1);
    std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
    std::fflush(stderr);
  } while (!finished_changed_.wait_for(lock, 200ms, [this] { return finished_; }));
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace cobble::program
