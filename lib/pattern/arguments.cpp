#include "pattern/arguments.hpp"

#include <algorithm>

namespace cobble::detail {

void require_distinct_positions(std::span<const std::int32_t> positions, std::int64_t n, std::string_view what) {
  for (std::size_t k = 0; k < positions.size(); ++k) {
    const std::string entry = std::string(what) + "[" + std::to_string(k) + "] = " + std::to_string(positions[k]);
    if (positions[k] < 0 || positions[k] >= n) {
      throw Error(ErrorCode::invalid_argument, entry + ", expected a position in [0, " + std::to_string(n) + ")");
    }
    if (k > 0 && positions[k] <= positions[k - 1]) {
      throw Error(ErrorCode::invalid_argument,
                  entry + " after " + std::to_string(positions[k - 1]) + ", expected sorted distinct positions");
    }
  }
}

std::string size_text(std::int64_t n_q, std::int64_t n_k) {
  return n_q == n_k ? std::to_string(n_q) : std::to_string(n_q) + "x" + std::to_string(n_k);
}

std::string list_text(std::span<const std::int32_t> numbers) {
  constexpr std::size_t kLongest = 64;
  const bool too_long = numbers.size() > kLongest;
  std::string text = "[";
  for (std::size_t k = 0; k < (too_long ? 3 : numbers.size()); ++k) {
    if (k > 0) text += ",";
    text += std::to_string(numbers[k]);
  }
  if (too_long) text += ",...," + std::to_string(numbers.size()) + " numbers";
  return text + "]";
}

}  // namespace cobble::detail
