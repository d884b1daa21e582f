#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cobble/error.hpp"
#include "cobble/pattern.hpp"

namespace {

/// Large sizes are valid, and cost what they cost: they are not what is looked for here.
bool has_large_number(std::string_view text) {
  std::size_t digits = 0;
  for (const char c : text) {
    digits = std::isdigit(static_cast<unsigned char>(c)) != 0 ? digits + 1 : 0;
    if (digits > 3) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (has_large_number(text)) return 0;
  try {
    const cobble::Pattern pattern = cobble::parse_pattern(text);
    std::vector<cobble::PatternTile> tiles;
    std::int64_t pairs = 0;
    const std::int64_t rows = std::min<std::int64_t>(pattern.rows(), 16);
    pattern.tiles(0, rows, 16, tiles);
    for (const cobble::PatternTile& tile : tiles) pairs += tile.pairs;
    if (pairs != pattern.pairs(0, rows)) std::abort();
    static_cast<void>(pattern.describe());
  } catch (const cobble::Error&) {
  }
  return 0;
}
