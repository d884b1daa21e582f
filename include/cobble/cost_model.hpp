#pragma once

#include <cstdint>

// What arithmetic and traffic cost on a machine, as far as choosing between candidate plans needs to know.

namespace cobble {

/// Rates of one thread. A choice depends on their ratios, and on how many threads are worth starting. The defaults are
/// rounded medians in single precision with 64 features, AVX-512 kernels, on one core of a server processor with 48 KiB
/// of L1 and 2 MiB of L2.
struct CostModel {
  double dense_flop_per_second = 1.4e11;        ///< products of whole tiles
  double near_pair_flop_per_second = 6e10;      ///< products pair by pair, a panel of keys in L1
  double middle_pair_flop_per_second = 3.8e10;  ///< in L2
  double far_pair_flop_per_second = 1.4e10;     ///< in the last cache, with values and both gradients
  double memory_pair_flop_per_second = 6e9;     ///< beyond
  double exponential_per_second = 3.5e9;
  double bytes_per_second = 3e10;             ///< between fast and slow memory, beside arithmetic
  double seconds_per_row = 3e-8;              ///< of a row in a list of pairs, each time a product comes to it
  double seconds_per_masked_place = 1.5e-10;  ///< of a dense tile that is not full
  double seconds_per_tile = 6e-7;             ///< of finding out what a tile holds, and of calling kernels
  std::int64_t near_bytes = 40 << 10;         ///< how large a panel of keys may be to be near
  std::int64_t far_bytes = 16 << 20;          ///< and keys, values and both gradients to be far

  bool operator==(const CostModel&) const = default;
};

/// Measures the rates of this machine with the kernels in use, for elements of 4 or 8 bytes and `features` features a
/// token. Takes about a second and up to 300 MB on the calling thread. Throws Error{invalid_argument}.
CostModel measure_cost_model(std::int64_t element_bytes = 4, std::int64_t features = 64);

}  // namespace cobble
