#pragma once

#include <cstdint>

// Random numbers that are the same on every platform (std::distributions are not).

namespace cobble::test {

/// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  /// In [0, size), size > 0.
  std::int64_t below(std::int64_t size) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(size)); }
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
  /// Nearly normal, mean 0, variance 1: a sum of twelve uniform numbers needs no libm.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  std::uint64_t state_;
};

}  // namespace cobble::test
