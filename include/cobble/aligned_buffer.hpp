#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace cobble {

/// Allocates `bytes` aligned to 64, uninitialised; much memory in huge pages where the system has them. Throws
/// std::bad_alloc.
void* allocate_aligned(std::size_t bytes);
void free_aligned(void* memory) noexcept;

/// An owning, move-only, 64-byte aligned array of trivial elements whose memory is not initialised.
template <class T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedBuffer() = default;
  /// Throws Error{overflow} when the size in bytes does not fit, std::bad_alloc without memory.
  explicit AlignedBuffer(std::int64_t size) : data_(static_cast<T*>(allocate(size))), size_(size) {}
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedBuffer() { free_aligned(data_); }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::int64_t size() const noexcept { return size_; }
  T& operator[](std::int64_t index) noexcept { return data_[index]; }
  const T& operator[](std::int64_t index) const noexcept { return data_[index]; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }

 private:
  static void* allocate(std::int64_t size);

  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

namespace detail {
std::size_t buffer_bytes(std::int64_t size, std::size_t element_bytes);
}

template <class T>
void* AlignedBuffer<T>::allocate(std::int64_t size) {
  return allocate_aligned(detail::buffer_bytes(size, sizeof(T)));
}

}  // namespace cobble
