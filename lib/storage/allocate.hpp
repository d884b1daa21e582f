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

/// A zeroed vector of as many elements as the product of `sizes`. Throws Error{overflow} naming `what` when the size
/// does not fit or the memory is not there: a matrix with few entries can ask for a great deal of it.
template <class T>
std::vector<T> allocate_vector(std::initializer_list<std::int64_t> sizes, std::string_view what) {
  const std::int64_t count = checked_product(sizes, what);
  static_cast<void>(checked_bytes(count, sizeof(T), what));
  try {
    return std::vector<T>(static_cast<std::size_t>(count));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::overflow, std::string(what) + ": no memory for " + std::to_string(count) + " elements of " +
                                         std::to_string(sizeof(T)) + " bytes");
  }
}

}  // namespace cobble
