#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "core/checked.hpp"

namespace cobble {

/// No process can have more than this (x86-64); larger sizes come from broken or hostile input.
inline constexpr std::size_t kAddressSpaceBytes = std::size_t{1} << 47;

/// A zeroed vector of as many elements as the product of `sizes`. Throws Error{overflow} naming `what` when the size
/// does not fit or the memory is not there: a matrix with few entries can ask for a great deal of it.
template <class T>
std::vector<T> allocate_vector(std::initializer_list<std::int64_t> sizes, std::string_view what) {
  const std::int64_t count = checked_product(sizes, what);
  const std::size_t bytes = checked_bytes(count, sizeof(T), what);
  if (bytes <= kAddressSpaceBytes) {
    try {
      return std::vector<T>(static_cast<std::size_t>(count));
    } catch (const std::bad_alloc&) {
      // said below
    }
  }
  throw Error(ErrorCode::overflow, "no memory for " + std::string(what) + ", " + std::to_string(bytes) + " bytes");
}

}  // namespace cobble
