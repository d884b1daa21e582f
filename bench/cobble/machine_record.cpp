#include "machine_record.hpp"

#include <fmt/core.h>
#include <sys/utsname.h>
#include <tbb/version.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cobble/fast_memory.hpp"
#include "commit.hpp"  // written by the build
#include "machine.hpp"
#include "statistics.hpp"

namespace cobble::program {
namespace {

/// What follows `name` and `separator` in the first line of a file that begins so; empty where there is none.
std::string value_in_file(const char* path, const std::string& name, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find(separator);
    if (line.rfind(name, 0) != 0 || at == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t\"", at + 1);
    if (begin == std::string::npos) return {};
    return line.substr(begin, line.find_last_not_of(" \t\"") + 1 - begin);
  }
  return {};
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "g++ " __VERSION__;
#else
  return "unknown";
#endif
}

#if defined(__x86_64__)
#define COBBLE_ONE_CYCLE "xorq %1, %0\n\t"
#elif defined(__aarch64__)
#define COBBLE_ONE_CYCLE "eor %0, %0, %1\n\t"
#endif

/// What the core runs at under load, by a chain of instructions of one cycle each, each waiting for the one before; 0
/// where there is no such chain.
double measured_ghz() {
#ifdef COBBLE_ONE_CYCLE
  constexpr int kSteps = 400'000;  // short, to fit between interruptions
  const auto chain = [] {
    std::uint64_t value = 1;
    const std::uint64_t other = 3;
    for (int step = 0; step < kSteps; step += 8) {
      asm volatile(COBBLE_ONE_CYCLE COBBLE_ONE_CYCLE COBBLE_ONE_CYCLE COBBLE_ONE_CYCLE COBBLE_ONE_CYCLE COBBLE_ONE_CYCLE
                       COBBLE_ONE_CYCLE COBBLE_ONE_CYCLE
                   : "+r"(value)
                   : "r"(other));
    }
  };
  const std::vector<double> times = measure({0.05, 100, 500}, chain);
  return kSteps / (*std::min_element(times.begin(), times.end()) * 1e6);
#else
  return 0;
#endif
}

/// Of the processor's widest vectors with floating-point arithmetic, whatever the kernels use.
int vector_bits() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 512;
  if (__builtin_cpu_supports("avx")) return 256;
#endif
  return 128;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Json machine_record(const Yardstick& yardstick) {
  utsname system{};
  uname(&system);
  Json caches = Json::array();
  for (const CacheLevel& cache : cache_levels()) {
    caches.push_back({{"level", cache.level},
                      {"bytes", cache.bytes},
                      {"shared_by", cache.shared_by},
                      {"source", to_string(cache.source)}});
  }
  const auto memory = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  Json record = {{"cpu", text_or_null(value_in_file("/proc/cpuinfo", "model name", ':'))},
                 {"cores", std::thread::hardware_concurrency()},
                 {"measured_ghz", measured_ghz()},
                 {"vector_bits", vector_bits()},
                 {"caches", caches},
                 {"fast_memory_bytes", default_fast_memory_bytes()},
                 {"memory_bytes", memory},
                 {"isa", instruction_set()},
                 {"governor", text_or_null(first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))},
                 {"os", text_or_null(value_in_file("/etc/os-release", "PRETTY_NAME", '='))},
                 {"kernel", fmt::format("{} {}", system.sysname, system.release)},
                 {"architecture", system.machine},
                 {"compiler", compiler()},
                 {"build_type", COBBLE_BUILD_TYPE},
                 {"cobble", COBBLE_VERSION},
                 {"commit", text_or_null(kCommit)},
                 {"tbb", fmt::format("{}.{}", TBB_VERSION_MAJOR, TBB_VERSION_MINOR)}};
  record["openblas"] = nullptr;
  if (const OpenBlas* openblas = yardstick.openblas()) {
    record["openblas"] = {{"version", openblas->version()},
                          {"core", openblas->core()},
                          {"detected_core", yardstick.detected_openblas()->core()}};
  }
  record["cleared_environment"] = yardstick.cleared_environment();
  return record;
}

}  // namespace cobble::program
