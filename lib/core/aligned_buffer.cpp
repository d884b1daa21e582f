#include "cobble/aligned_buffer.hpp"

#include <stdlib.h>  // posix_memalign, which takes any size

#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "core/checked.hpp"

namespace cobble {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// From here on memory is aligned to huge pages and asks for them: random panels of a large tensor lie in more small
/// pages than a processor keeps addresses of.
constexpr std::size_t kLarge = 2 * kHugePage;

}  // namespace

void* allocate_aligned(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t alignment = bytes < kLarge ? kAlignment : kHugePage;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes) != 0) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Whole ones alone, so that no memory is taken behind the end. A kernel without them says no, and all is well.
  if (bytes >= kLarge) madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return memory;
}

void free_aligned(void* memory) noexcept { std::free(memory); }

std::size_t detail::buffer_bytes(std::int64_t size, std::size_t element_bytes) {
  if (size < 0) {
    throw Error(ErrorCode::invalid_argument, "buffer size = " + std::to_string(size) + " is negative");
  }
  return checked_bytes(size, element_bytes, "buffer size in bytes");
}

}  // namespace cobble
