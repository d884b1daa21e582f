#include "random.hpp"

#include <doctest/doctest.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

using namespace cobble::program;

namespace {

std::vector<double> random_numbers(std::size_t count, std::uint64_t seed, std::uint64_t stream) {
  std::vector<double> values(count);
  fill_random(std::span<double>(values), seed, stream);
  return values;
}

}  // namespace

TEST_CASE("random numbers have mean 0 and variance 1") {
  const std::vector<double> values = random_numbers(200000, 1, 1);
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
    REQUIRE(std::abs(value) < 3.47);
  }
  const auto count = static_cast<double>(values.size());
  CHECK(std::abs(sum / count) < 0.01);
  CHECK(squares / count == doctest::Approx(1).epsilon(0.01));
}

TEST_CASE("random numbers are the same for any number of threads, and every element depends on its index alone") {
  std::vector<double> one_thread(300000);
  tbb::task_arena arena(1);
  arena.execute([&] { fill_random(std::span<double>(one_thread), 5, 2); });
  CHECK(random_numbers(one_thread.size(), 5, 2) == one_thread);
  const std::vector<double> fewer = random_numbers(100, 5, 2);
  CHECK(std::equal(fewer.begin(), fewer.end(), one_thread.begin()));
}

TEST_CASE("random numbers are the same on every platform") {
  // From an independent computation in Python.
  const std::vector<double> values = random_numbers(3, 0, 1);
  CHECK(values[0] == doctest::Approx(2.3363234162431867).epsilon(1e-14));
  CHECK(values[1] == doctest::Approx(-2.5186042149064134).epsilon(1e-14));
  CHECK(values[2] == doctest::Approx(0.03049906360118368).epsilon(1e-14));
}

TEST_CASE("seeds and streams give different numbers") {
  CHECK(random_numbers(4, 1, 1) != random_numbers(4, 2, 1));
  CHECK(random_numbers(4, 1, 1) != random_numbers(4, 1, 2));
}

TEST_CASE("a sample of tokens is sorted, distinct, and holds the first and the last") {
  const std::vector<std::int64_t> sample = sample_tokens(100000, 64, 3);
  CHECK(sample.size() == 64);
  CHECK(sample.front() == 0);
  CHECK(sample.back() == 99999);
  CHECK(std::adjacent_find(sample.begin(), sample.end(), std::greater_equal<>()) == sample.end());
  CHECK(sample_tokens(100000, 64, 4) != sample);
}

TEST_CASE("a sample larger than the range is the range") {
  CHECK(sample_tokens(3, 64, 0) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(sample_tokens(0, 64, 0).empty());
}

TEST_CASE("a random permutation holds every number once and follows seed and stream") {
  for (const std::int64_t n : {0, 1, 2, 1000}) {
    CAPTURE(n);
    std::vector<std::int32_t> permutation = random_permutation(n, 7, 1);
    CHECK(permutation == random_permutation(n, 7, 1));
    if (n == 1000) {
      CHECK(permutation != random_permutation(n, 8, 1));
      CHECK(permutation != random_permutation(n, 7, 2));
      CHECK_FALSE(std::is_sorted(permutation.begin(), permutation.end()));
    }
    std::sort(permutation.begin(), permutation.end());
    REQUIRE(std::ssize(permutation) == n);
    for (std::int64_t i = 0; i < n; ++i) CHECK(permutation[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("every order of three is about as frequent") {
  std::map<std::vector<std::int32_t>, int> counts;
  constexpr int kSeeds = 6000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) ++counts[random_permutation(3, seed, 1)];
  CHECK(counts.size() == 6);
  for (const auto& entry : counts) {
    CHECK(entry.second > 850);
    CHECK(entry.second < 1150);
  }
}
