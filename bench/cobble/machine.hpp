#pragma once

#include <cstdint>
#include <string>

namespace cobble::program {

/// The most memory this process has held so far (resident), in bytes; 0 where the system does not say.
std::int64_t peak_memory_bytes();

/// The instruction set that the kernels run on.
std::string instruction_set();

}  // namespace cobble::program
