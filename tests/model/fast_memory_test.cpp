#include "cobble/fast_memory.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "model/cache_detection.hpp"
#include "support/error_of.hpp"

using namespace cobble;
using cobble::test::error_of;

namespace {

/// COBBLE_FAST_MEMORY for one scope.
class FastMemoryVariable {
 public:
  explicit FastMemoryVariable(const char* value) {
    if (const char* before = std::getenv(kName)) before_ = before;
    value == nullptr ? unsetenv(kName) : setenv(kName, value, 1);
  }
  ~FastMemoryVariable() { before_ ? setenv(kName, before_->c_str(), 1) : unsetenv(kName); }
  FastMemoryVariable(const FastMemoryVariable&) = delete;
  FastMemoryVariable& operator=(const FastMemoryVariable&) = delete;

 private:
  static constexpr const char* kName = "COBBLE_FAST_MEMORY";
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("fast memory is the option, else the variable, else what is detected") {
  {
    const FastMemoryVariable variable("65536");
    CHECK(fast_memory(4096).bytes == 4096);
    CHECK(fast_memory(4096).source == FastMemorySource::option);
    CHECK(fast_memory().bytes == 65536);
    CHECK(fast_memory().source == FastMemorySource::environment);
    CHECK(default_fast_memory_bytes() == 65536);
  }
  for (const char* unset : {static_cast<const char*>(nullptr), ""}) {
    const FastMemoryVariable variable(unset);
    CHECK(fast_memory().source == FastMemorySource::detected);
    CHECK(fast_memory().bytes == detail::half_of_core_cache(cache_levels()));
  }
}

TEST_CASE("the variable is read on every call") {
  const FastMemoryVariable first("1000");
  CHECK(default_fast_memory_bytes() == 1000);
  const FastMemoryVariable second("2000");
  CHECK(default_fast_memory_bytes() == 2000);
}

TEST_CASE("a malformed size of fast memory is refused by name") {
  for (const char* text : {"12k", "-1", "0", " 4096", "4096 ", "1e6", "0x1000", "99999999999999999999", "words"}) {
    const FastMemoryVariable variable(text);
    CHECK(error_of([] { default_fast_memory_bytes(); }) ==
          "invalid_argument: COBBLE_FAST_MEMORY = '" + std::string(text) +
              "', expected a whole number of bytes, at least 1, such as 524288");
    CHECK(fast_memory(512).bytes == 512);
  }
  CHECK(error_of([] { fast_memory(-5); }) ==
        "invalid_argument: fast_memory_bytes = -5, expected at least 1, or 0 for the default");
}

TEST_CASE("the cache levels of this machine rise in level and in size") {
  const std::vector<CacheLevel> levels = cache_levels();
  REQUIRE(!levels.empty());
  for (std::size_t i = 0; i < levels.size(); ++i) {
    CHECK(levels[i].bytes >= 1024);
    CHECK(levels[i].shared_by >= 1);
    if (i == 0) continue;
    CHECK(levels[i].level > levels[i - 1].level);
    CHECK(levels[i].bytes > levels[i - 1].bytes);
  }
}

TEST_CASE("each cache level comes from the first source that knows it") {
  const std::vector<CacheLevel> hwloc{{2, 1000, 1, CacheSource::hwloc}};
  const std::vector<CacheLevel> cpuid{{1, 32, 1, CacheSource::cpuid}, {2, 999, 1, CacheSource::cpuid}};
  const std::vector<CacheLevel> merged = detail::merge_cache_levels(hwloc, cpuid);
  REQUIRE(merged.size() == 2);
  CHECK(merged[0].level == 1);
  CHECK(merged[0].source == CacheSource::cpuid);
  CHECK(merged[1].bytes == 1000);
  CHECK(merged[1].source == CacheSource::hwloc);
}

TEST_CASE("a machine that tells nothing gets the documented constants") {
  const std::vector<CacheLevel> levels = detail::merge_cache_levels({}, {});
  REQUIRE(levels.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(levels[i].bytes == kDefaultCacheLevels[i].bytes);
    CHECK(levels[i].source == CacheSource::constants);
  }
  CHECK(detail::half_of_core_cache(levels) == 524288);
}

TEST_CASE("the default is half of one core's share of L2") {
  const CacheLevel l1{1, 32768, 1, CacheSource::hwloc};
  const CacheLevel shared_l2{2, 4194304, 4, CacheSource::hwloc};
  const CacheLevel l3{3, 16777216, 8, CacheSource::hwloc};
  CHECK(detail::half_of_core_cache({l1, shared_l2, l3}) == 524288);
  CHECK(detail::half_of_core_cache({l1, l3}) == 16384);
  CHECK(detail::half_of_core_cache({l3}) == 1048576);
}

TEST_CASE("cpuid and hwloc do not contradict each other on a level's size") {
  for (const CacheLevel& by_processor : detail::cpuid_cache_levels()) {
    for (const CacheLevel& by_system : detail::hwloc_cache_levels()) {
      if (by_processor.level == by_system.level) CHECK(by_processor.bytes == by_system.bytes);
    }
  }
}

TEST_CASE("sources have names") {
  CHECK(to_string(CacheSource::hwloc) == "hwloc");
  CHECK(to_string(CacheSource::cpuid) == "cpuid");
  CHECK(to_string(CacheSource::constants) == "constants");
  CHECK(to_string(FastMemorySource::option) == "option");
  CHECK(to_string(FastMemorySource::environment) == "environment");
  CHECK(to_string(FastMemorySource::detected) == "detected");
}
