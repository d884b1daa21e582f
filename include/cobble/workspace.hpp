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
  detail::ScratchPool& pool() noexcept { return *pool_; }

 private:
  std::unique_ptr<detail::ScratchPool> pool_;
};

}  // namespace cobble
