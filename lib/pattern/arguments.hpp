#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/checked.hpp"

// Checks of what callers hand to the kinds of patterns, and texts of it for describe().

namespace cobble::detail {

/// Throws Error{invalid_argument} naming `what` unless minimum <= value.
inline void require_at_least(std::int64_t value, std::int64_t minimum, std::string_view what) {
  if (value < minimum) {
    throw Error(ErrorCode::invalid_argument,
                std::string(what) + " = " + std::to_string(value) + ", expected at least " + std::to_string(minimum));
  }
}

/// Throws Error{invalid_argument} naming `what` unless value <= maximum, which is called `limit`.
inline void require_at_most(std::int64_t value, std::int64_t maximum, std::string_view what, std::string_view limit) {
  if (value > maximum) {
    throw Error(ErrorCode::invalid_argument, std::string(what) + " = " + std::to_string(value) + ", expected at most " +
                                                 std::string(limit) + " = " + std::to_string(maximum));
  }
}

/// Throws Error{invalid_argument} unless the list is sorted, distinct and in [0, n).
void require_distinct_positions(std::span<const std::int32_t> positions, std::int64_t n, std::string_view what);

/// Reserves room for `count` entries. Throws Error{overflow} naming `what` when there is no such room.
template <class T>
void reserve_entries(std::vector<T>& entries, std::int64_t count, std::string_view what) {
  try {
    entries.reserve(static_cast<std::size_t>(count));
  } catch (const std::exception&) {  // std::length_error or std::bad_alloc
    throw Error(ErrorCode::overflow,
                std::string(what) + " of " + std::to_string(count) + " entries does not fit in memory");
  }
}

/// "n" or "n_qxn_k".
std::string size_text(std::int64_t n_q, std::int64_t n_k);
/// "[1,2,3]"; beyond 64 numbers "[1,2,3,...,n numbers]" with the first ones, which no parser reads back.
std::string list_text(std::span<const std::int32_t> numbers);

}  // namespace cobble::detail
