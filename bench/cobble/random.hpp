#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cobble::program {

/// Fills with pseudo-random numbers of mean 0 and variance 1, close to normal (each the sum of four uniform ones, so
/// none beyond 3.5). An element depends on `seed`, `stream` and its index only: the same numbers on every platform,
/// for any number of threads. T is float, double,
/// bfloat16 or float16, which hold the same numbers rounded.
template <class T>
void fill_random(std::span<T> values, std::uint64_t seed, std::uint64_t stream);

/// The numbers of [0, n) in a random order, the same on every platform. n is at most 2^31 - 1.
std::vector<std::int32_t> random_permutation(std::int64_t n, std::uint64_t seed, std::uint64_t stream);

/// `count` distinct numbers of [0, n), sorted, the first and the last among them; all of them when count >= n.
std::vector<std::int64_t> sample_tokens(std::int64_t n, std::int64_t count, std::uint64_t seed);

}  // namespace cobble::program
