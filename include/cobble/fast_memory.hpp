#pragma once

#include <cstdint>

// How large fast memory is on this machine.

namespace cobble {

/// COBBLE_FAST_MEMORY (bytes) where it is set, otherwise half of one core's L2. Throws Error{invalid_argument} that
/// names a malformed value of the variable.
std::int64_t default_fast_memory_bytes();

}  // namespace cobble
