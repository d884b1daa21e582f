#include "statistics.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace cobble::program {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double median_absolute_deviation(const std::vector<double>& values) {
  const double centre = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - centre));
  return median(std::move(distances));
}

Measurement summarize(const std::vector<double>& times_ms) {
  return {median(times_ms), median_absolute_deviation(times_ms), times_ms.size()};
}

double milliseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::vector<double>> measure_in_turn(const Repetition& repetition,
                                                 const std::vector<std::function<void()>>& works) {
  const double budget_ms = repetition.seconds * 1e3;
  double slowest_ms = 0;
  for (const auto& work : works) slowest_ms = std::max(slowest_ms, milliseconds_of(work));
  const std::size_t least = slowest_ms > budget_ms ? 1 : repetition.least;
  std::vector<std::vector<double>> times(works.size());
  double total_ms = 0;  // of the slowest of each round
  for (std::size_t round = 0; round < least || (total_ms < budget_ms && round < repetition.most); ++round) {
    slowest_ms = 0;
    for (std::size_t i = 0; i < works.size(); ++i) {
      times[i].push_back(milliseconds_of(works[i]));
      slowest_ms = std::max(slowest_ms, times[i].back());
    }
    total_ms += slowest_ms;
  }
  return times;
}

std::vector<double> measure(const Repetition& repetition, const std::function<void()>& work) {
  return std::move(measure_in_turn(repetition, {work}).front());
}

}  // namespace cobble::program
