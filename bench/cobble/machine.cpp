#include "machine.hpp"

#include <sys/resource.h>

#include <fstream>
#include <sstream>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cobble/isa.hpp"

namespace cobble::program {

namespace {

/// A line such as "VmHWM:   1234 kB" of /proc/self/status, in bytes; 0 where there is none.
std::int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) != 0) continue;
    std::istringstream words(line.substr(name.size() + 1));
    std::int64_t kibibytes = 0;
    words >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

}  // namespace

std::int64_t peak_memory_bytes() {
  // Unlike getrusage's number, this one can be reset.
  if (const std::int64_t bytes = status_bytes("VmHWM"); bytes > 0) return bytes;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#ifdef __APPLE__
  return usage.ru_maxrss;
#else
  return std::int64_t{usage.ru_maxrss} * 1024;
#endif
}

std::int64_t resident_memory_bytes() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return status_bytes("VmRSS");
}

bool reset_peak_memory() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

std::string instruction_set() { return std::string(to_string(isa())); }

}  // namespace cobble::program
