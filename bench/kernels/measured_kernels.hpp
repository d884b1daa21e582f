#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <type_traits>

#include "cobble/aligned_buffer.hpp"
#include "cobble/isa.hpp"

// What benchmarks of kernels have in common.

namespace cobble::kernels {

template <class T>
AlignedBuffer<T> random_buffer(std::int64_t size) {
  std::mt19937 generator(1);
  std::normal_distribution<T> normal;
  AlignedBuffer<T> buffer(size);
  for (T& value : buffer) value = normal(generator);
  return buffer;
}

/// Work of one iteration as a rate: "flop/s" is printed as 123.4G/s.
inline void count(benchmark::State& state, const char* what, double work) {
  state.counters[what] =
      benchmark::Counter(work, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

/// "NAME/f32/avx2", on that instruction set.
template <class T>
auto* register_benchmark(const char* name, Isa chosen, void (*work)(benchmark::State&)) {
  const std::string full_name =
      std::string(name) + (std::is_same_v<T, float> ? "/f32/" : "/f64/") + std::string(to_string(chosen));
  return benchmark::RegisterBenchmark(full_name.c_str(), [chosen, work](benchmark::State& state) {
    set_isa(chosen);
    work(state);
  });
}

/// main() of a program that has register_all<T>(isa).
template <class Register>
int run_benchmarks(int argument_count, char** arguments, Register register_all) {
  benchmark::Initialize(&argument_count, arguments);
  if (benchmark::ReportUnrecognizedArguments(argument_count, arguments)) return 2;
  for (const Isa available : available_isas()) register_all(available);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace cobble::kernels
