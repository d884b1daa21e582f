#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "pattern/arguments.hpp"
#include "pattern/pattern_node.hpp"

namespace cobble {
namespace detail {
namespace {

/// j = position + t * step for |t| <= window.
class DilatedNode final : public PatternNode {
 public:
  DilatedNode(std::int32_t n_q, std::int32_t n_k, std::int64_t window, std::int64_t step)
      : PatternNode(n_q, n_k), window_(window), step_(step), shift_(std::int64_t{n_k} - n_q) {
    // Whatever leaves the matrix from every row is as good as infinite; clipping keeps products within 64 bits.
    const std::int64_t everything = std::int64_t{n_q} + n_k + 1;
    reach_ = std::min(window, everything);
    stride_ = std::min(step, everything);
  }

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    const Terms terms = terms_within(row, begin, end);
    const std::int64_t position = row + shift_;
    if (stride_ == 1) {
      append_clipped(position + terms.first, position + terms.last + 1, begin, end, runs.size(), runs);
      return;
    }
    for (std::int64_t t = terms.first; t <= terms.last; ++t) {
      const auto column = static_cast<std::int32_t>(position + t * stride_);
      runs.push_back({column, column + 1});
    }
  }
  std::int64_t pairs(std::int32_t row_begin, std::int32_t row_end) const override {
    std::int64_t pairs = 0;
    for (std::int32_t row = row_begin; row < row_end; ++row) {
      const Terms terms = terms_within(row, 0, columns());
      pairs += std::max<std::int64_t>(0, terms.last - terms.first + 1);
    }
    return pairs;
  }
  std::string describe() const override {
    return "dilated(" + size_text(rows(), columns()) + "," + std::to_string(window_) + "," + std::to_string(step_) +
           ")";
  }

 private:
  struct Terms {
    std::int64_t first;
    std::int64_t last;
  };

  static std::int64_t divide_down(std::int64_t numerator, std::int64_t divisor) {
    return numerator / divisor - (numerator % divisor < 0 ? 1 : 0);
  }
  /// The t whose columns lie in [begin, end).
  Terms terms_within(std::int32_t row, std::int32_t begin, std::int32_t end) const {
    const std::int64_t position = row + shift_;
    return {std::max(-reach_, -divide_down(position - begin, stride_)),
            std::min(reach_, divide_down(end - 1 - position, stride_))};
  }

  std::int64_t window_;
  std::int64_t step_;
  std::int64_t shift_;
  std::int64_t reach_;
  std::int64_t stride_;
};

}  // namespace
}  // namespace detail

Pattern dilated(std::int64_t n, std::int64_t window, std::int64_t step) {
  return dilated(checked_index(n, "n"), n, window, step);
}
Pattern dilated(std::int64_t n_q, std::int64_t n_k, std::int64_t window, std::int64_t step) {
  detail::require_at_least(window, 0, "window");
  detail::require_at_least(step, 1, "step");
  return Pattern(
      std::make_shared<detail::DilatedNode>(checked_index(n_q, "n_q"), checked_index(n_k, "n_k"), window, step));
}

}  // namespace cobble
