#pragma once

#include <cstdint>
#include <vector>

#include "cobble/pattern.hpp"

namespace cobble {

/// Which pattern each batch entry and query head uses: one for all, or one per head, per batch entry, or both. All
/// have the same rows and columns; their pairs may differ.
class PatternGrid {
 public:
  /// One pattern for everything.
  PatternGrid(Pattern pattern);  // NOLINT(google-explicit-constructor): a pattern is a grid of one
  /// `patterns[b * heads + h]`; batch and heads are 1 or the problem's. Throws Error{invalid_argument,
  /// shape_mismatch}.
  PatternGrid(std::vector<Pattern> patterns, std::int64_t batch, std::int64_t heads);

  std::int64_t rows() const noexcept { return patterns_.front().rows(); }
  std::int64_t columns() const noexcept { return patterns_.front().columns(); }
  std::int64_t batch() const noexcept { return batch_; }
  std::int64_t heads() const noexcept { return heads_; }
  const std::vector<Pattern>& patterns() const noexcept { return patterns_; }

  /// Which of patterns() applies. An axis of 1 is broadcast.
  std::int64_t index(std::int64_t batch, std::int64_t head) const noexcept {
    return (batch_ == 1 ? 0 : batch) * heads_ + (heads_ == 1 ? 0 : head);
  }
  const Pattern& at(std::int64_t batch, std::int64_t head) const noexcept {
    return patterns_[static_cast<std::size_t>(index(batch, head))];
  }

 private:
  std::vector<Pattern> patterns_;
  std::int64_t batch_ = 1;
  std::int64_t heads_ = 1;
};

}  // namespace cobble
