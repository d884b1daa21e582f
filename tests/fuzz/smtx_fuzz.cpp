#include "fuzz/read_memory.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cobble::fuzz::read_all_ways(data, size, "fuzz.smtx");
  return 0;
}
