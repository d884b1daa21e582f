#include "cobble/aligned_buffer.hpp"

#include <new>

#include "core/checked.hpp"

namespace cobble {
namespace {
constexpr std::align_val_t kAlignment{64};
}

void* allocate_aligned(std::size_t bytes) { return bytes == 0 ? nullptr : ::operator new(bytes, kAlignment); }

void free_aligned(void* memory) noexcept { ::operator delete(memory, kAlignment); }

std::size_t detail::buffer_bytes(std::int64_t size, std::size_t element_bytes) {
  if (size < 0) {
    throw Error(ErrorCode::invalid_argument, "buffer size = " + std::to_string(size) + " is negative");
  }
  return checked_bytes(size, element_bytes, "buffer size in bytes");
}

}  // namespace cobble
