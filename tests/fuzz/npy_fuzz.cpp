#include "files/numpy_array.hpp"
#include "fuzz/read_memory.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cobble::fuzz::read_all_ways(data, size, "fuzz.npy");
  const auto bytes = std::as_bytes(std::span(data, size));
  cobble::fuzz::read_as(bytes, "fuzz.npy", {.padded_lists = true, .list_columns = 100});
  try {
    const auto array = cobble::detail::read_npy_from_memory<float>(bytes, "fuzz.npy");
    float sum = 0;
    for (const float value : array.values) sum += value;
    volatile float used = sum;
    static_cast<void>(used);
  } catch (const cobble::Error&) {
  }
  return 0;
}
