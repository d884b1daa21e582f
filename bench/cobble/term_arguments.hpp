#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cobble/plan.hpp"
#include "cobble/score_terms.hpp"

// The terms of scores of `cobble run`: what the flags say, and the memory that the terms refer to.

namespace CLI {
class App;
}

namespace cobble::program {

struct TermArguments {
  double softcap = 0;  ///< 0: off
  bool alibi = false;
  std::string bias_file;  ///< empty: off
  std::string sinks;      ///< empty: off; "random"; or a file

  bool any() const { return softcap != 0 || alibi || !bias_file.empty() || !sinks.empty(); }
};

void add_term_arguments(CLI::App& command, TermArguments& arguments);

/// Owns what ScoreTerms refers to. A bias is shared by all batch entries and heads.
template <class T>
struct TermValues {
  double softcap = 0;
  std::vector<double> slopes;
  Pattern bias_structure;  ///< compressed rows
  std::vector<T> bias;
  bool has_bias = false;
  std::vector<T> sinks;

  ScoreTerms<T> terms() const;
  /// "softcap 30, ALiBi, a bias of 1,234 values, sinks"
  std::string describe() const;
};

/// Reads the files. Throws Error that names the flag, what was found and what was expected.
template <class T>
TermValues<T> make_terms(const TermArguments& arguments, const Pattern& pattern, const Problem& problem,
                         std::uint64_t seed);

}  // namespace cobble::program
