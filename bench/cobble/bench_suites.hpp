#pragma once

#include <cstdint>
#include <string>
#include <vector>

// What `cobble bench` measures.

namespace cobble::program {

/// Cases that make one curve of the page.
enum class Sweep {
  none,
  head_dim,  ///< one pattern, d varies
  tokens,    ///< a window of fixed width, n varies
  density    ///< evenly random pairs at fixed n: where pair by pair and tile by tile change places
};
const char* to_string(Sweep sweep) noexcept;

struct BenchCase {
  std::string name;     ///< of the file or expression, sizes and type; distinct within a suite but for the threads
  std::string pattern;  ///< a file or an expression
  std::int64_t head_dim = 64;
  std::int64_t heads = 1;
  std::int64_t batch = 1;
  std::string dtype = "f32";
  Sweep sweep = Sweep::none;
};

BenchCase make_case(const std::string& pattern, std::int64_t head_dim = 64, const std::string& dtype = "f32",
                    Sweep sweep = Sweep::none);

/// The names that suite_cases takes.
const std::vector<std::string>& suite_names();
/// Throws std::out_of_range for another name.
std::vector<BenchCase> suite_cases(const std::string& suite);

}  // namespace cobble::program
