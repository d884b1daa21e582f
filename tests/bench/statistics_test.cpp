#include "statistics.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

using namespace cobble::program;

TEST_CASE("the median is the middle one, or between the two in the middle") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 3, 2}) == 2.5);
  CHECK(median({7}) == 7);
  CHECK(median({}) == 0);
}

TEST_CASE("the median absolute deviation does not see one outlier") {
  CHECK(median_absolute_deviation({1, 2, 3, 4, 1000}) == 1);
  CHECK(median_absolute_deviation({5, 5, 5}) == 0);
  CHECK(median_absolute_deviation({1, 1, 2, 2, 4, 6, 9}) == 1);  // distances from 2: 1 1 0 0 2 4 7
}

TEST_CASE("a summary says how many there were") {
  const Measurement summary = summarize({1, 2, 9});
  CHECK(summary.median_ms == 2);
  CHECK(summary.mad_ms == 1);
  CHECK(summary.repetitions == 3);
}

TEST_CASE("work runs once to warm up, then at least and at most as often as asked") {
  int runs = 0;
  const auto count = [&runs] { ++runs; };
  CHECK(measure({0, 3, 50}, count).size() == 1);  // any run is longer than no time
  CHECK(runs == 2);
  runs = 0;
  CHECK(measure({10, 3, 5}, count).size() == 5);
  CHECK(runs == 6);
}

TEST_CASE("work of its time's length is run at least as often as asked, longer work once") {
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  CHECK(measure({0.001, 3, 50}, sleep).size() == 1);
  const std::vector<double> times = measure({0.004, 3, 50}, sleep);
  CHECK(times.size() <= 3);
  for (const double ms : times) CHECK(ms >= 2);
}

TEST_CASE("works that are measured in turn run one after the other, as often as each other") {
  std::vector<int> order;
  const std::vector<std::vector<double>> times =
      measure_in_turn({10, 3, 4}, {[&order] { order.push_back(1); }, [&order] { order.push_back(2); }});
  REQUIRE(times.size() == 2);
  CHECK(times[0].size() == 4);
  CHECK(times[1].size() == 4);
  CHECK(order == std::vector<int>{1, 2, 1, 2, 1, 2, 1, 2, 1, 2});  // the first of each warms up
}

TEST_CASE("where one of several works is longer than the time of each, all are run once") {
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); };
  const std::vector<std::vector<double>> times = measure_in_turn({0.001, 3, 50}, {[] {}, sleep});
  CHECK(times[0].size() == 1);
  CHECK(times[1].size() == 1);
  CHECK(times[1][0] >= 3);
}
