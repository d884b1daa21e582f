#include "model/cache_detection.hpp"

#include <hwloc.h>

#include <algorithm>

#include "model/topology.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace cobble::detail {
namespace {

constexpr int kLevels = 3;

#if defined(__x86_64__) || defined(__i386__)

constexpr unsigned kDeterministicCacheLeaf = 4;
constexpr unsigned kAmdCacheLeaf = 0x8000001D;

/// One subleaf per cache, ended by type 0; both leaves have the same layout.
std::vector<CacheLevel> levels_of_leaf(unsigned leaf) {
  constexpr unsigned kMostCaches = 16;
  std::vector<CacheLevel> levels;
  int threads_per_core = 1;
  for (unsigned cache = 0; cache < kMostCaches; ++cache) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid_count(leaf, cache, &eax, &ebx, &ecx, &edx) == 0) break;
    const unsigned type = eax & 0x1F;
    if (type == 0) break;
    constexpr unsigned kInstructionCache = 2;
    const int level = static_cast<int>((eax >> 5) & 0x7);
    if (type == kInstructionCache || level < 1 || level > kLevels) continue;
    const std::int64_t ways = (ebx >> 22) + 1;
    const std::int64_t partitions = ((ebx >> 12) & 0x3FF) + 1;
    const std::int64_t line_bytes = (ebx & 0xFFF) + 1;
    const std::int64_t sets = static_cast<std::int64_t>(ecx) + 1;
    // The leaf counts hardware threads (in fact their identifiers, an upper limit). L1 is one core's own.
    const int threads = static_cast<int>((eax >> 14) & 0xFFF) + 1;
    if (level == 1) threads_per_core = threads;
    levels.push_back(
        {level, ways * partitions * line_bytes * sets, std::max(1, threads / threads_per_core), CacheSource::cpuid});
  }
  return levels;
}

#endif

const CacheLevel* find_level(const std::vector<CacheLevel>& levels, int level) {
  const auto found = std::find_if(levels.begin(), levels.end(),
                                  [level](const CacheLevel& cache) { return cache.level == level && cache.bytes > 0; });
  return found == levels.end() ? nullptr : &*found;
}

}  // namespace

std::vector<CacheLevel> hwloc_cache_levels() {
  const Topology topology = load_topology();
  if (topology == nullptr) return {};

  std::vector<CacheLevel> levels;
  constexpr hwloc_obj_type_t kTypes[kLevels] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE};
  for (int level = 1; level <= kLevels; ++level) {
    const hwloc_obj_t cache = hwloc_get_obj_by_type(topology.get(), kTypes[level - 1], 0);
    if (cache == nullptr || cache->attr == nullptr || cache->attr->cache.size == 0) continue;
    const int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology.get(), cache->cpuset, HWLOC_OBJ_CORE);
    levels.push_back(
        {level, static_cast<std::int64_t>(cache->attr->cache.size), std::max(1, cores), CacheSource::hwloc});
  }
  return levels;
}

std::vector<CacheLevel> cpuid_cache_levels() {
#if defined(__x86_64__) || defined(__i386__)
  std::vector<CacheLevel> levels = levels_of_leaf(kDeterministicCacheLeaf);
  return levels.empty() ? levels_of_leaf(kAmdCacheLeaf) : levels;
#else
  return {};
#endif
}

std::vector<CacheLevel> merge_cache_levels(const std::vector<CacheLevel>& first,
                                           const std::vector<CacheLevel>& second) {
  std::vector<CacheLevel> merged;
  for (int level = 1; level <= kLevels; ++level) {
    const CacheLevel* cache = find_level(first, level);
    if (cache == nullptr) cache = find_level(second, level);
    if (cache != nullptr) merged.push_back(*cache);
  }
  if (merged.empty()) merged.assign(std::begin(kDefaultCacheLevels), std::end(kDefaultCacheLevels));
  return merged;
}

}  // namespace cobble::detail
