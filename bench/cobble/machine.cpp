#include "machine.hpp"

#include <sys/resource.h>

#include "cobble/isa.hpp"

namespace cobble::program {

std::int64_t peak_memory_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#ifdef __APPLE__
  return usage.ru_maxrss;
#else
  return std::int64_t{usage.ru_maxrss} * 1024;
#endif
}

std::string instruction_set() { return std::string(to_string(isa())); }

}  // namespace cobble::program
