#include <cstring>
#include <string>
#include <string_view>

#include "fuzz/read_memory.hpp"

namespace {

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

template <class T>
T load(const std::string& file, std::size_t place) {
  T value;
  std::memcpy(&value, file.data() + place, sizeof value);
  return value;
}

/// Makes the check sums of stored members right, so that mutations inside of members get past them.
void repair_check_sums(std::string& file) {
  constexpr std::size_t kCentralBytes = 46;
  constexpr std::size_t kLocalBytes = 30;
  for (std::size_t entry = file.find("PK\x01\x02"); entry != std::string::npos;
       entry = file.find("PK\x01\x02", entry + 1)) {
    if (entry + kCentralBytes > file.size()) return;
    const std::size_t bytes = load<std::uint32_t>(file, entry + 20);
    const std::size_t local = load<std::uint32_t>(file, entry + 42);
    if (load<std::uint16_t>(file, entry + 10) != 0 || local + kLocalBytes > file.size()) continue;
    const std::size_t data =
        local + kLocalBytes + load<std::uint16_t>(file, local + 26) + load<std::uint16_t>(file, local + 28);
    if (data > file.size() || bytes > file.size() - data) continue;
    const std::uint32_t sum = crc32(std::string_view(file).substr(data, bytes));
    std::memcpy(file.data() + entry + 16, &sum, sizeof sum);
    std::memcpy(file.data() + local + 14, &sum, sizeof sum);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cobble::fuzz::read_all_ways(data, size, "fuzz.npz");
  std::string repaired(reinterpret_cast<const char*>(data), size);
  repair_check_sums(repaired);
  cobble::fuzz::read_all_ways(reinterpret_cast<const std::uint8_t*>(repaired.data()), size, "fuzz.npz");
  return 0;
}
