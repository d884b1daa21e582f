#pragma once

// What arithmetic and traffic cost on a machine, as far as choosing between schedules needs to know.

namespace cobble {

/// Rates of one thread. The defaults were measured with the kernels of lib/kernels in single precision on one core of
/// a server processor (2.1 GHz, 2 MiB of L2); only their ratios matter for a choice.
struct CostModel {
  double dense_flop_per_second = 2.4e10;  ///< products of whole tiles
  double pair_flop_per_second = 5e9;      ///< products pair by pair
  double exponential_per_second = 4e8;
  double bytes_per_second = 8e9;   ///< between fast and slow memory
  double seconds_per_tile = 2e-7;  ///< of finding out what a tile holds, and of calling kernels
};

}  // namespace cobble
