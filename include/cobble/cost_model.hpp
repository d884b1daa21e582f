#pragma once

// What arithmetic and traffic cost on a machine, as far as choosing between schedules needs to know.

namespace cobble {

/// Rates of one thread. The defaults are rounded medians of processor time with the kernels of lib/kernels in single
/// precision (products of 64 x 64 x 64, pairs of 64 features at random places of 4 MiB, copies of 256 MiB in pieces of
/// 256 KiB, tiles of one or two pairs), on one core of a server processor of 2.1 GHz with 2 MiB of L2, built for the
/// baseline instruction set. Only their ratios matter for a choice.
struct CostModel {
  double dense_flop_per_second = 1.7e10;  ///< products of whole tiles
  double pair_flop_per_second = 3.2e9;    ///< products pair by pair
  double exponential_per_second = 1.3e8;
  double bytes_per_second = 8.4e9;  ///< between fast and slow memory
  double seconds_per_tile = 4e-6;   ///< of finding out what a tile holds, and of calling kernels
};

}  // namespace cobble
