#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "feature_options.hpp"

// What `cobble bench` measures.

namespace cobble::program {

/// Cases that make one curve of the page.
enum class Sweep {
  none,
  head_dim,  ///< one pattern, d varies
  tokens,    ///< a window of fixed width, n varies
  density,   ///< evenly random pairs at fixed n: where pair by pair and tile by tile change places
  features   ///< compressed Q and K of one pattern: where entry by entry and panels in full change places
};
const char* to_string(Sweep sweep) noexcept;

struct BenchCase {
  std::string name = {};     ///< case_name(), distinct within a suite but for the threads
  std::string pattern = {};  ///< a file or an expression
  bool shuffled = false;     ///< queries and keys stand in a random order, by the seed
  std::string reorder = {};  ///< the method by which the plan orders tokens again; empty: not at all
  std::int64_t head_dim = 64;
  std::int64_t value_dim = 0;  ///< 0: as head_dim
  FeatureOptions features = {};
  std::int64_t heads = 1;
  std::int64_t batch = 1;
  std::string dtype = "f32";
  Sweep sweep = Sweep::none;

  bool compressed() const { return features.features.has_value(); }
};

/// The pattern, sizes, type, and what else makes it another case: "blocks(8192,64,4), shuffled, d = 64, f32,
/// reordered".
std::string case_name(const BenchCase& measured);
BenchCase make_case(const std::string& pattern, std::int64_t head_dim = 64, const std::string& dtype = "f32",
                    Sweep sweep = Sweep::none);

/// The names that suite_cases takes.
const std::vector<std::string>& suite_names();
/// Throws std::out_of_range for another name.
std::vector<BenchCase> suite_cases(const std::string& suite);

}  // namespace cobble::program
