#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "support/random.hpp"

namespace cobble::test {

/// Chooses combinations of factors' levels so that soon any two levels of different factors have met (pairwise
/// testing): most faults need no more than two factors to show.
class Pairwise {
 public:
  explicit Pairwise(std::vector<int> levels) : levels_(std::move(levels)) {
    const std::size_t factors = levels_.size();
    met_.resize(factors * factors);
    for (std::size_t a = 0; a < factors; ++a) {
      for (std::size_t b = 0; b < factors; ++b) {
        met_[a * factors + b].resize(static_cast<std::size_t>(levels_[a] * levels_[b]));
      }
    }
  }

  /// A level for each factor; the first ones are given. The best of a few random combinations.
  std::vector<int> next(const std::vector<int>& given, Random& random) {
    constexpr int kCandidates = 100;
    std::vector<int> best;
    int best_gain = -1;
    for (int candidate = 0; candidate < kCandidates; ++candidate) {
      std::vector<int> combination = given;
      for (std::size_t factor = given.size(); factor < levels_.size(); ++factor) {
        combination.push_back(static_cast<int>(random.below(levels_[factor])));
      }
      int gain = 0;
      for_each_pair(combination, [&gain](std::vector<bool>::reference met) { gain += met ? 0 : 1; });
      if (gain > best_gain) {
        best_gain = gain;
        best = combination;
      }
    }
    for_each_pair(best, [](std::vector<bool>::reference met) { met = true; });
    return best;
  }

  /// Whether any two levels have met.
  bool complete() const {
    for (std::size_t a = 0; a < levels_.size(); ++a) {
      for (std::size_t b = a + 1; b < levels_.size(); ++b) {
        const std::vector<bool>& met = met_[a * levels_.size() + b];
        if (std::find(met.begin(), met.end(), false) != met.end()) return false;
      }
    }
    return true;
  }

 private:
  template <class F>
  void for_each_pair(const std::vector<int>& combination, F f) {
    for (std::size_t a = 0; a < levels_.size(); ++a) {
      for (std::size_t b = a + 1; b < levels_.size(); ++b) {
        f(met_[a * levels_.size() + b][static_cast<std::size_t>(combination[a] * levels_[b] + combination[b])]);
      }
    }
  }

  std::vector<int> levels_;
  std::vector<std::vector<bool>> met_;
};

}  // namespace cobble::test
