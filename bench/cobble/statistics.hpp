#pragma once

#include <cstddef>
#include <functional>
#include <vector>

// Repeated measurements, and what is reported of them.

namespace cobble::program {

/// The middle one; the mean of the two middle ones of an even number; 0 for nothing.
double median(std::vector<double> values);
/// The median of the distances from the median.
double median_absolute_deviation(const std::vector<double>& values);

/// Times in milliseconds.
struct Measurement {
  double median_ms = 0;
  double mad_ms = 0;
  std::size_t repetitions = 0;
};
Measurement summarize(const std::vector<double>& times_ms);

/// How often something is measured: at least `least` times, then until `seconds` are over or it has been `most` times.
struct Repetition {
  double seconds = 1;
  std::size_t least = 3;
  std::size_t most = 50;
};

double milliseconds_of(const std::function<void()>& work);

/// Runs each of `works` once to warm up, then one after the other as `repetition` says for each, so that what slows the
/// machine down slows all of them: times by work, as many of each. Where one of them takes longer than all of the time
/// that it has, they are run once more only.
std::vector<std::vector<double>> measure_in_turn(const Repetition& repetition,
                                                 const std::vector<std::function<void()>>& works);

/// Runs `work` once to warm up, then as `repetition` says. Work that takes longer than all of the time that it has is
/// run once more only.
std::vector<double> measure(const Repetition& repetition, const std::function<void()>& work);

}  // namespace cobble::program
