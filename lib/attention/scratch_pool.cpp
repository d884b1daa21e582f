#include "attention/scratch_pool.hpp"

#include <algorithm>

#include "cobble/workspace.hpp"
#include "core/checked.hpp"

namespace cobble::detail {

AlignedBuffer<std::byte> ScratchPool::take(std::int64_t count, std::size_t element_bytes) {
  const auto wanted = static_cast<std::int64_t>(checked_bytes(count, element_bytes, "scratch memory"));
  if (wanted == 0) return {};
  AlignedBuffer<std::byte> too_small;
  {
    const std::lock_guard lock(mutex_);
    auto best = idle_.end();
    for (auto buffer = idle_.begin(); buffer != idle_.end(); ++buffer) {
      const bool fits = buffer->size() >= wanted;
      if (fits && (best == idle_.end() || best->size() < wanted || buffer->size() < best->size())) best = buffer;
      if (!fits && best == idle_.end()) best = buffer;
    }
    if (best != idle_.end()) {
      AlignedBuffer<std::byte> buffer = std::move(*best);
      idle_.erase(best);
      if (buffer.size() >= wanted) return buffer;
      too_small = std::move(buffer);
    }
  }
  // A buffer that no longer suffices makes way, so that the pool does not keep every size it ever saw.
  bytes_.fetch_sub(too_small.size(), std::memory_order_relaxed);
  too_small = {};
  AlignedBuffer<std::byte> buffer(wanted);
  bytes_.fetch_add(wanted, std::memory_order_relaxed);
  return buffer;
}

void ScratchPool::give_back(AlignedBuffer<std::byte> buffer) noexcept {
  if (buffer.size() == 0) return;
  const std::lock_guard lock(mutex_);
  try {
    idle_.push_back(std::move(buffer));
  } catch (...) {  // no room to remember it: the buffer is freed
    bytes_.fetch_sub(buffer.size(), std::memory_order_relaxed);
  }
}

}  // namespace cobble::detail

namespace cobble {

Workspace::Workspace()
    : task_pool_(std::make_unique<detail::ScratchPool>()), pass_pool_(std::make_unique<detail::ScratchPool>()) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

std::int64_t Workspace::bytes() const noexcept { return task_pool_->bytes() + pass_pool_->bytes(); }

}  // namespace cobble
