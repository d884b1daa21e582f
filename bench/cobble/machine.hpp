#pragma once

#include <cstdint>
#include <string>

namespace cobble::program {

/// The most memory this process has held so far (resident), in bytes; 0 where the system does not say.
std::int64_t peak_memory_bytes();

/// What this process holds at the moment (resident), in bytes, after unused heap is given back; 0 where the system does
/// not say.
std::int64_t resident_memory_bytes();
/// Lets peak_memory_bytes count from now on; false where the system cannot.
bool reset_peak_memory();

/// The instruction set that the kernels run on.
std::string instruction_set();

}  // namespace cobble::program
