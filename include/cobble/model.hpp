#pragma once

#include <cstdint>
#include <string_view>

// The I/O model of attention: two levels of memory, the fast one of M words, the slow one without limit; an I/O for each
// word that moves between them. Formulas and theorems are those of "On Fine-Grained I/O Complexity of Attention Backward
// Passes", arXiv 2410.09397. All sizes are of one head. Counts are in words; a bound is a double, because products of
// counts pass 2^63, and is stated without the constant that its theorem leaves open.

namespace cobble {

/// Which side of the split point M* fast memory lies on.
enum class Regime { small_fast_memory, large_fast_memory };
std::string_view to_string(Regime regime) noexcept;

/// M* = Z_input^2 / Z_QK in words (theorem 4.5), infinite when the pattern is empty.
double split_point(double z_input, double z_qk);

/// Large from M = M* on: there scores are cheaper to recompute than to store.
Regime regime(std::int64_t fast_memory_words, double split_point);

}  // namespace cobble
