#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cobble/fast_memory.hpp"

// Where cache_levels() gets its facts. Each source gives what it knows, in any number of levels, none included.

namespace cobble::detail {

std::vector<CacheLevel> hwloc_cache_levels();

/// Leaf 4, or 0x8000001D on processors that have it instead; empty on other architectures.
std::vector<CacheLevel> cpuid_cache_levels();

/// For each level the first source that knows it; kDefaultCacheLevels when no source knows any.
std::vector<CacheLevel> merge_cache_levels(const std::vector<CacheLevel>& first, const std::vector<CacheLevel>& second);

/// The value of COBBLE_FAST_MEMORY: a whole positive number of bytes. Throws Error{invalid_argument}.
std::int64_t parse_fast_memory(std::string_view text);

/// Half of one core's share of L2, of L1 where there is no L2, of the first level there is where there is no L1 either.
std::int64_t half_of_core_cache(const std::vector<CacheLevel>& levels);

}  // namespace cobble::detail
