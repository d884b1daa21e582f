#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "cobble/aligned_buffer.hpp"

namespace cobble::detail {

/// Lends buffers to tasks and keeps them for the next one. Safe to use from several threads.
class ScratchPool {
 public:
  /// A buffer on loan; returns itself.
  class Lease {
   public:
    Lease(ScratchPool& pool, AlignedBuffer<std::byte> buffer) : pool_(&pool), buffer_(std::move(buffer)) {}
    Lease(Lease&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), buffer_(std::move(other.buffer_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (pool_ != nullptr) pool_->give_back(std::move(buffer_));
    }

    /// The memory, aligned to 64 bytes, not initialised.
    template <class T>
    T* as() noexcept {
      return reinterpret_cast<T*>(buffer_.data());
    }

   private:
    ScratchPool* pool_;
    AlignedBuffer<std::byte> buffer_;
  };

  /// Room for `count` elements of T: the smallest buffer at hand that is large enough, or a new one; null for none.
  /// Whoever needs several at a time asks for the largest first, and none is taken that a later one needs.
  template <class T>
  Lease lend(std::int64_t count) {
    return {*this, take(count, sizeof(T))};
  }

  /// What the pool has allocated and not freed.
  std::int64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  AlignedBuffer<std::byte> take(std::int64_t count, std::size_t element_bytes);
  void give_back(AlignedBuffer<std::byte> buffer) noexcept;

  std::mutex mutex_;
  std::vector<AlignedBuffer<std::byte>> idle_;
  std::atomic<std::int64_t> bytes_{0};
};

}  // namespace cobble::detail
