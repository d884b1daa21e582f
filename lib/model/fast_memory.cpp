#include "cobble/fast_memory.hpp"

#include <charconv>
#include <cstdlib>
#include <string>

#include "cobble/error.hpp"
#include "model/cache_detection.hpp"

namespace cobble {
namespace detail {

std::int64_t parse_fast_memory(std::string_view text) {
  std::int64_t bytes = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, bytes);
  if (fault != std::errc() || stop != end || bytes < 1) {
    throw Error(ErrorCode::invalid_argument, "COBBLE_FAST_MEMORY = '" + std::string(text) +
                                                 "', expected a whole number of bytes, at least 1, such as 524288");
  }
  return bytes;
}

std::int64_t half_of_core_cache(const std::vector<CacheLevel>& levels) {
  std::int64_t bytes = levels.front().bytes_per_core();
  for (const CacheLevel& cache : levels) {
    if (cache.level <= 2) bytes = cache.bytes_per_core();
  }
  return bytes / 2;
}

}  // namespace detail

std::string_view to_string(CacheSource source) noexcept {
  switch (source) {
    case CacheSource::hwloc: return "hwloc";
    case CacheSource::cpuid: return "cpuid";
    case CacheSource::constants: return "constants";
  }
  return "unknown";
}

std::string_view to_string(FastMemorySource source) noexcept {
  switch (source) {
    case FastMemorySource::option: return "option";
    case FastMemorySource::environment: return "environment";
    case FastMemorySource::detected: return "detected";
  }
  return "unknown";
}

std::vector<CacheLevel> cache_levels() {
  // The machine does not change under a process, and reading its topology takes milliseconds.
  static const std::vector<CacheLevel> levels =
      detail::merge_cache_levels(detail::hwloc_cache_levels(), detail::cpuid_cache_levels());
  return levels;
}

FastMemory fast_memory(std::int64_t option_bytes) {
  if (option_bytes < 0) {
    throw Error(ErrorCode::invalid_argument,
                "fast_memory_bytes = " + std::to_string(option_bytes) + ", expected at least 1, or 0 for the default");
  }
  if (option_bytes > 0) return {option_bytes, FastMemorySource::option};
  if (const char* text = std::getenv("COBBLE_FAST_MEMORY"); text != nullptr && *text != '\0') {
    return {detail::parse_fast_memory(text), FastMemorySource::environment};
  }
  return {detail::half_of_core_cache(cache_levels()), FastMemorySource::detected};
}

std::int64_t default_fast_memory_bytes() { return fast_memory().bytes; }

}  // namespace cobble
