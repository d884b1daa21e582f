#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pattern/arguments.hpp"
#include "pattern/closed_sums.hpp"
#include "pattern/column_sets.hpp"
#include "pattern/pattern_node.hpp"

namespace cobble {
namespace detail {
namespace {

/// The first `count` tokens see all and are seen by all; the others also see `window` to either side (Longformer), or
/// nothing else when window < 0.
class LeadingGlobalsNode final : public PatternNode {
 public:
  LeadingGlobalsNode(std::int32_t n_q, std::int32_t n_k, std::int64_t count, std::int64_t window, std::string text)
      : PatternNode(n_q, n_k),
        count_(count),
        window_(std::min(window, std::int64_t{n_q} + n_k)),
        text_(std::move(text)) {}

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    const std::size_t first = runs.size();
    append_clipped(0, row < count_ ? columns() : count_, begin, end, first, runs);
    append_clipped(row - window_, row + window_ + 1, begin, end, first, runs);
  }
  std::int64_t pairs(std::int32_t row_begin, std::int32_t row_end) const override {
    const auto global_end = static_cast<std::int32_t>(std::clamp<std::int64_t>(count_, row_begin, row_end));
    const std::int64_t low = std::min<std::int64_t>(count_, columns());
    std::int64_t pairs = std::int64_t{global_end - row_begin} * columns() + (row_end - global_end) * low;
    if (window_ >= 0) {
      // A column of the window counts once it lies beyond the global ones.
      pairs += sum_clamped(global_end + window_ + 1, row_end + window_ + 1, low, columns()) -
               sum_clamped(global_end - window_, row_end - window_, low, columns());
    }
    return pairs;
  }
  std::string describe() const override { return text_; }

 private:
  std::int64_t count_;
  std::int64_t window_;
  std::string text_;
};

/// The tokens at given positions see all and are seen by all.
class PlacedGlobalsNode final : public PatternNode {
 public:
  PlacedGlobalsNode(std::int32_t n, std::vector<std::int32_t> positions)
      : PatternNode(n, n), positions_(std::move(positions)), runs_(runs_of(positions_)) {}

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    if (std::binary_search(positions_.begin(), positions_.end(), row)) {
      append_clipped(0, columns(), begin, end, runs.size(), runs);
      return;
    }
    const std::size_t first = runs.size();
    for (auto run = first_ending_after(runs_, begin); run != runs_.end() && run->begin < end; ++run) {
      append_clipped(run->begin, run->end, begin, end, first, runs);
    }
  }
  std::int64_t pairs(std::int32_t row_begin, std::int32_t row_end) const override {
    const auto first = std::lower_bound(positions_.begin(), positions_.end(), row_begin);
    const std::int64_t global = std::lower_bound(first, positions_.end(), row_end) - first;
    return global * columns() + (row_end - row_begin - global) * static_cast<std::int64_t>(positions_.size());
  }
  std::string describe() const override {
    return "global_tokens(" + std::to_string(rows()) + "," + list_text(positions_) + ")";
  }

 private:
  std::vector<std::int32_t> positions_;
  std::vector<ColumnRun> runs_;
};

}  // namespace
}  // namespace detail

Pattern global_tokens(std::int64_t n, std::int64_t count) { return global_tokens(checked_index(n, "n"), n, count); }
Pattern global_tokens(std::int64_t n_q, std::int64_t n_k, std::int64_t count) {
  detail::require_at_least(count, 0, "count");
  std::string text = "global_tokens(" + detail::size_text(n_q, n_k) + "," + std::to_string(count) + ")";
  return Pattern(std::make_shared<detail::LeadingGlobalsNode>(checked_index(n_q, "n_q"), checked_index(n_k, "n_k"),
                                                              count, -1, std::move(text)));
}
Pattern global_tokens(std::int64_t n, std::vector<std::int32_t> positions) {
  const std::int32_t size = checked_index(n, "n");
  detail::require_distinct_positions(positions, n, "positions");
  return Pattern(std::make_shared<detail::PlacedGlobalsNode>(size, std::move(positions)));
}

Pattern longformer(std::int64_t n, std::int64_t window, std::int64_t globals) {
  const std::int32_t size = checked_index(n, "n");
  detail::require_at_least(window, 0, "window");
  detail::require_at_least(globals, 0, "globals");
  std::string text =
      "longformer(" + std::to_string(n) + "," + std::to_string(window) + "," + std::to_string(globals) + ")";
  return Pattern(std::make_shared<detail::LeadingGlobalsNode>(size, size, globals, window, std::move(text)));
}

}  // namespace cobble
