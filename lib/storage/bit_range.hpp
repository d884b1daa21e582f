#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

// Ranges of bits within a block's words.

namespace cobble {

/// Calls visit(word) with bits [begin, begin + count) of `words`, 64 at a time, the first at bit 0 of the first word;
/// bits beyond the end of the range are 0.
template <class Visit>
void for_each_word(std::span<const std::uint64_t> words, std::int64_t begin, std::int64_t count, Visit visit) {
  for (std::int64_t done = 0; done < count; done += 64) {
    const auto index = static_cast<std::size_t>((begin + done) / 64);
    const auto shift = static_cast<int>((begin + done) % 64);
    std::uint64_t word = words[index] >> shift;
    const std::int64_t left = count - done;
    if (shift != 0 && left > 64 - shift) word |= words[index + 1] << (64 - shift);
    if (left < 64) word &= (std::uint64_t{1} << left) - 1;
    visit(word);
  }
}

inline std::int64_t count_bits(std::span<const std::uint64_t> words, std::int64_t begin, std::int64_t count) {
  std::int64_t total = 0;
  for_each_word(words, begin, count, [&](std::uint64_t word) { total += std::popcount(word); });
  return total;
}

/// Calls visit(k) for every set bit begin + k of the range, k ascending.
template <class Visit>
void for_each_set_bit(std::span<const std::uint64_t> words, std::int64_t begin, std::int64_t count, Visit visit) {
  std::int64_t base = 0;
  for_each_word(words, begin, count, [&](std::uint64_t word) {
    for (; word != 0; word &= word - 1) visit(base + std::countr_zero(word));
    base += 64;
  });
}

inline void set_bit(std::span<std::uint64_t> words, std::int64_t index) {
  words[static_cast<std::size_t>(index / 64)] |= std::uint64_t{1} << (index % 64);
}

}  // namespace cobble
