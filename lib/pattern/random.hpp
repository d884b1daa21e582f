#pragma once

#include <cstdint>

namespace cobble::detail {

/// SplitMix64 (Steele, Lea, Flood 2014). Integers and products only, so that a seed gives the same pattern on every
/// platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// The generator of one row: rows do not depend on each other.
  Random(std::uint64_t seed, std::int64_t row) : state_(mixed(seed) + mixed(~static_cast<std::uint64_t>(row))) {}

  std::uint64_t bits() { return mixed(state_ += 0x9E3779B97F4A7C15U); }
  /// Uniform in [0, size), 0 < size < 2^32. Draws again where a remainder would favour small numbers (Lemire 2019).
  std::int64_t below(std::int64_t size) {
    const auto range = static_cast<std::uint64_t>(size);
    const std::uint64_t rejected = (std::uint64_t{1} << 32) % range;
    for (;;) {
      const std::uint64_t product = (bits() >> 32) * range;
      if ((product & 0xFFFFFFFFU) >= rejected) return static_cast<std::int64_t>(product >> 32);
    }
  }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

 private:
  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace cobble::detail
