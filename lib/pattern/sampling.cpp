#include "pattern/sampling.hpp"

#include <algorithm>
#include <cstddef>

namespace cobble::detail {

DistinctSampler::DistinctSampler(std::int64_t limit) : taken_(static_cast<std::size_t>((limit + 63) / 64)) {}

bool DistinctSampler::insert(std::int64_t value) {
  std::uint64_t& word = taken_[static_cast<std::size_t>(value / 64)];
  const std::uint64_t bit = std::uint64_t{1} << (value % 64);
  const bool is_new = (word & bit) == 0;
  word |= bit;
  return is_new;
}

void DistinctSampler::append(std::int64_t count, std::int64_t limit, Random& random,
                             std::vector<std::int32_t>& sample) {
  const auto first = static_cast<std::ptrdiff_t>(sample.size());
  for (std::int64_t next = limit - count; next < limit; ++next) {
    std::int64_t value = random.below(next + 1);
    if (!insert(value)) {
      value = next;
      insert(value);
    }
    sample.push_back(static_cast<std::int32_t>(value));
  }
  std::sort(sample.begin() + first, sample.end());
  for (auto value = sample.begin() + first; value != sample.end(); ++value) {
    taken_[static_cast<std::size_t>(*value / 64)] = 0;
  }
}

}  // namespace cobble::detail
