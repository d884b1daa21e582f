#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cobble/half.hpp"
#include "kernels/half_kernels.hpp"

// Between the type in which tensors are stored and the type in which is computed.

namespace cobble::detail {

/// Whether elements of this type are converted before anything is computed with them.
template <class Storage>
inline constexpr bool kIsHalf = !std::is_same_v<Storage, ComputeType<Storage>>;

/// to[i] = from[i] for two types of which at least one is the other's ComputeType; rounds where that loses anything.
template <class From, class To>
void convert(std::int64_t count, const From* from, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    std::copy_n(from, count, to);
  } else if constexpr (kIsHalf<From>) {
    kernels::half_kernels<From>().widen(count, from, to);
  } else {
    kernels::half_kernels<To>().narrow(count, from, to);
  }
}

/// The same of elements that stand `from_distance` and `to_distance` apart.
template <class From, class To>
void convert(std::int64_t count, const From* from, std::int64_t from_distance, To* to, std::int64_t to_distance) {
  if (from_distance == 1 && to_distance == 1) return convert(count, from, to);
  for (std::int64_t i = 0; i < count; ++i) to[i * to_distance] = static_cast<To>(from[i * from_distance]);
}

}  // namespace cobble::detail
