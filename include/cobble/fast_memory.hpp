#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

// How large fast memory is on this machine.

namespace cobble {

enum class CacheSource {
  hwloc,     ///< the operating system's view, by hwloc
  cpuid,     ///< the processor's own, where hwloc sees none (virtual machines often hide the caches)
  constants  ///< kDefaultCacheLevels
};
std::string_view to_string(CacheSource source) noexcept;

/// A data or unified cache of one core.
struct CacheLevel {
  int level = 0;           ///< 1, 2 or 3
  std::int64_t bytes = 0;  ///< of the whole cache
  int shared_by = 1;       ///< cores that share it
  CacheSource source = CacheSource::constants;

  std::int64_t bytes_per_core() const noexcept { return bytes / shared_by; }
};

/// What is assumed of a machine that tells nothing: 32 KiB L1, 1 MiB L2, 16 MiB L3 for 8 cores.
inline constexpr CacheLevel kDefaultCacheLevels[] = {{1, 32LL << 10, 1, CacheSource::constants},
                                                     {2, 1LL << 20, 1, CacheSource::constants},
                                                     {3, 16LL << 20, 8, CacheSource::constants}};

/// L1 (data), L2 and L3 in this order. Each level by the first source that knows it; a level that hwloc and cpuid both
/// leave out, while they know another one, does not exist and is left out. Never empty.
std::vector<CacheLevel> cache_levels();

enum class FastMemorySource { option, environment, detected };
std::string_view to_string(FastMemorySource source) noexcept;

struct FastMemory {
  std::int64_t bytes = 0;
  FastMemorySource source = FastMemorySource::detected;
};

/// `option_bytes` where it is above 0; otherwise COBBLE_FAST_MEMORY (bytes) where set and not empty; otherwise half of
/// one core's share of L2 (of the nearest other level where there is no L2). Throws Error{invalid_argument} for a
/// negative option and for a malformed value of the variable.
FastMemory fast_memory(std::int64_t option_bytes = 0);

/// fast_memory().bytes
std::int64_t default_fast_memory_bytes();

}  // namespace cobble
