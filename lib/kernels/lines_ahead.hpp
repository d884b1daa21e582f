#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace cobble::kernels {

/// Lines of memory that a loop asks for while it does something else, one a step: at `next`, then `step` bytes further
/// each time, and at `last` again and again when it comes to an end.
struct LineWalk {
  const char* next = nullptr;
  const char* last = nullptr;
  std::int64_t step = 0;

  /// Into the cache that is shared by no other core but not the nearest, where the work at hand has its place.
  void fetch() noexcept {
    __builtin_prefetch(next, 0, 2);
    next = std::min(next + step, last);
  }
};

/// Memory that is soon needed, a queue of blocks of rows.
class LinesAhead {
 public:
  void clear() noexcept { count_ = 0; }
  /// Rows of `row_bytes` bytes, `row_distance` bytes from one to the next, which may stand before it. What does not fit
  /// into the queue is left out.
  void add(const void* data, std::int64_t rows, std::int64_t row_bytes, std::int64_t row_distance) noexcept {
    if (count_ == blocks_.size() || rows <= 0) return;
    Block& block = blocks_[(first_ + count_++) % blocks_.size()];
    const char* const lowest = static_cast<const char*>(data) + std::min<std::int64_t>(0, (rows - 1) * row_distance);
    block = {lowest, rows, lines(row_bytes), std::abs(row_distance), 0};
    if (row_distance == row_bytes) block = {block.data, lines(rows * row_bytes), 1, kLineBytes, 0};
  }
  bool empty() const noexcept { return count_ == 0; }
  /// Takes what up to `steps` > 0 steps can ask for. The queue is not empty.
  LineWalk take(std::int64_t steps) noexcept {
    Block& block = blocks_[first_];
    const std::int64_t rows = std::min(steps, block.rows - block.next_row);
    const char* const next = block.data + block.next_row * block.row_distance;
    const LineWalk walk = {next, next + (rows - 1) * block.row_distance, block.row_distance};
    block.next_row += rows;
    if (block.next_row < block.rows) return walk;
    block.next_row = 0;
    block.data += kLineBytes;
    if (--block.lines > 0) return walk;
    first_ = (first_ + 1) % blocks_.size();
    --count_;
    return walk;
  }

 private:
  static constexpr std::int64_t kLineBytes = 64;
  static constexpr std::int64_t lines(std::int64_t bytes) noexcept { return (bytes + kLineBytes - 1) / kLineBytes; }
  /// A line of each row is asked for, then the next line of each.
  struct Block {
    const char* data = nullptr;
    std::int64_t rows = 0;
    std::int64_t lines = 0;  ///< of a row
    std::int64_t row_distance = 0;
    std::int64_t next_row = 0;
  };

  std::array<Block, 8> blocks_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

/// What a loop of `steps` steps asks for: from `ahead`, if not null, or else `near`, which is at hand.
inline LineWalk walk_ahead(LinesAhead* ahead, std::int64_t steps, const void* near) noexcept {
  if (ahead != nullptr && !ahead->empty() && steps > 0) return ahead->take(steps);
  return {static_cast<const char*>(near), static_cast<const char*>(near), 0};
}

}  // namespace cobble::kernels
