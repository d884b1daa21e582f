#pragma once

#include <cstdint>
#include <memory>

namespace cobble {

namespace detail {
class ScratchPool;
}

/// Scratch memory that calls reuse; grows to what the largest call needs and stays there. One Workspace serves any
/// number of calls, also concurrent ones.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  /// What is held at the moment.
  std::int64_t bytes() const noexcept;
  /// What tasks borrow, and what a whole pass does: apart, so that neither grows by taking the other's buffers.
  detail::ScratchPool& task_pool() noexcept { return *task_pool_; }
  detail::ScratchPool& pass_pool() noexcept { return *pass_pool_; }

 private:
  std::unique_ptr<detail::ScratchPool> task_pool_;
  std::unique_ptr<detail::ScratchPool> pass_pool_;
};

}  // namespace cobble
