#include "random.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "cobble/half.hpp"

namespace cobble::program {
namespace {

constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15;

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

/// The sum of the four 16-bit parts, centred and scaled to variance 1: 4 (2^32 - 1) / 12 is the variance of the sum.
double near_normal(std::uint64_t bits) {
  constexpr double kInverseDeviation = 1 / 37837.22723720648;
  const std::uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  return (static_cast<double>(sum) - 2 * 65535.0) * kInverseDeviation;
}

}  // namespace

template <class T>
void fill_random(std::span<T> values, std::uint64_t seed, std::uint64_t stream) {
  const std::uint64_t key = mix(mix(seed + kGoldenGamma) + stream);
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, values.size(), std::size_t{1} << 16),
                    [&](const tbb::blocked_range<std::size_t>& range) {
                      for (std::size_t i = range.begin(); i != range.end(); ++i) {
                        values[i] = static_cast<T>(near_normal(mix(key + i * kGoldenGamma)));
                      }
                    });
}

template void fill_random(std::span<float>, std::uint64_t, std::uint64_t);
template void fill_random(std::span<double>, std::uint64_t, std::uint64_t);
template void fill_random(std::span<bfloat16>, std::uint64_t, std::uint64_t);
template void fill_random(std::span<float16>, std::uint64_t, std::uint64_t);

std::vector<std::int32_t> random_permutation(std::int64_t n, std::uint64_t seed, std::uint64_t stream) {
  std::vector<std::int32_t> permutation(static_cast<std::size_t>(n));
  std::iota(permutation.begin(), permutation.end(), 0);
  const std::uint64_t key = mix(mix(seed + kGoldenGamma) + stream);
  for (std::size_t left = permutation.size(); left > 1; --left) {
    std::swap(permutation[left - 1], permutation[mix(key + left * kGoldenGamma) % left]);
  }
  return permutation;
}

std::vector<std::int64_t> sample_tokens(std::int64_t n, std::int64_t count, std::uint64_t seed) {
  if (count >= n) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(std::max<std::int64_t>(n, 0)));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::set<std::int64_t> chosen = {0, n - 1};
  for (std::uint64_t i = 0; static_cast<std::int64_t>(chosen.size()) < count; ++i) {
    chosen.insert(static_cast<std::int64_t>(mix(mix(seed) + (i + 1) * kGoldenGamma) % static_cast<std::uint64_t>(n)));
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace cobble::program
