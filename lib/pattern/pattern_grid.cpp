#include "cobble/pattern_grid.hpp"

#include <string>
#include <utility>

#include "core/checked.hpp"

namespace cobble {

PatternGrid::PatternGrid(Pattern pattern) : patterns_{std::move(pattern)} {}

PatternGrid::PatternGrid(std::vector<Pattern> patterns, std::int64_t batch, std::int64_t heads)
    : patterns_(std::move(patterns)), batch_(batch), heads_(heads) {
  if (batch < 1 || heads < 1) {
    throw Error(ErrorCode::invalid_argument, "a pattern grid of " + std::to_string(batch) + " x " +
                                                 std::to_string(heads) + " (batch x heads); both must be at least 1");
  }
  const std::int64_t expected = checked_product({batch, heads}, "batch x heads");
  if (static_cast<std::int64_t>(patterns_.size()) != expected) {
    throw Error(ErrorCode::shape_mismatch, "patterns holds " + std::to_string(patterns_.size()) + ", expected batch " +
                                               std::to_string(batch) + " x heads " + std::to_string(heads) + " = " +
                                               std::to_string(expected));
  }
  for (std::size_t i = 1; i < patterns_.size(); ++i) {
    if (patterns_[i].rows() != rows() || patterns_[i].columns() != columns()) {
      throw Error(ErrorCode::shape_mismatch, "patterns[" + std::to_string(i) + "] is " +
                                                 std::to_string(patterns_[i].rows()) + " x " +
                                                 std::to_string(patterns_[i].columns()) + ", patterns[0] is " +
                                                 std::to_string(rows()) + " x " + std::to_string(columns()));
    }
  }
}

}  // namespace cobble
