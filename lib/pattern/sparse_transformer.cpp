#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "pattern/arguments.hpp"
#include "pattern/closed_sums.hpp"
#include "pattern/pattern_node.hpp"

// The two factorized patterns of the Sparse Transformer (arXiv 1904.10509, section 4.3).

namespace cobble {
namespace detail {
namespace {

class StridedNode final : public PatternNode {
 public:
  StridedNode(std::int32_t n, std::int64_t stride)
      : PatternNode(n, n), given_stride_(stride), stride_(std::min(stride, n + std::int64_t{1})) {}

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    const std::size_t first = runs.size();
    const std::int64_t local = std::int64_t{row} - stride_ + 1;  // where the local run begins
    if (stride_ > 1) {
      // Single columns row - k * stride from the first one that is not before `begin`.
      std::int64_t column = row % stride_;
      if (column < begin) column += divide_up(begin - column, stride_) * stride_;
      for (; column < local && column < end; column += stride_)
        append_clipped(column, column + 1, begin, end, first, runs);
    }
    append_clipped(stride_ == 1 ? 0 : local, std::int64_t{row} + 1, begin, end, first, runs);
  }
  std::int64_t pairs(std::int32_t row_begin, std::int32_t row_end) const override {
    return sum_clamped(row_begin + std::int64_t{1}, row_end + std::int64_t{1}, stride_) +
           sum_quotients(row_begin, row_end, stride_);
  }
  std::string describe() const override {
    return "strided(" + std::to_string(rows()) + "," + std::to_string(given_stride_) + ")";
  }

 private:
  std::int64_t given_stride_;
  std::int64_t stride_;  ///< no longer than needed, so that sums stay within 64 bits
};

class FixedNode final : public PatternNode {
 public:
  FixedNode(std::int32_t n, std::int64_t stride, std::int64_t summary)
      : PatternNode(n, n), stride_(stride), summary_(summary) {}

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    const std::size_t first = runs.size();
    const std::int64_t own = row / stride_ * stride_;  // where the row's own stretch begins
    if (summary_ == stride_) {
      append_clipped(0, own, begin, end, first, runs);
    } else if (summary_ > 0) {
      for (std::int64_t next = (begin / stride_ + 1) * stride_; next <= own && next - summary_ < end; next += stride_) {
        append_clipped(next - summary_, next, begin, end, first, runs);
      }
    }
    append_clipped(own, std::int64_t{row} + 1, begin, end, first, runs);
  }
  std::int64_t pairs(std::int32_t row_begin, std::int32_t row_end) const override {
    const std::int64_t quotients = sum_quotients(row_begin, row_end, stride_);
    const std::int64_t own = sum_range(row_begin, row_end) - quotients * stride_ + (row_end - row_begin);
    return row_begin >= row_end ? 0 : quotients * summary_ + own;
  }
  std::string describe() const override {
    return "fixed(" + std::to_string(rows()) + "," + std::to_string(stride_) + "," + std::to_string(summary_) + ")";
  }

 private:
  std::int64_t stride_;
  std::int64_t summary_;
};

}  // namespace
}  // namespace detail

Pattern strided(std::int64_t n, std::int64_t stride) {
  detail::require_at_least(stride, 1, "stride");
  return Pattern(std::make_shared<detail::StridedNode>(checked_index(n, "n"), stride));
}

Pattern fixed(std::int64_t n, std::int64_t stride, std::int64_t summary) {
  detail::require_at_least(stride, 1, "stride");
  detail::require_at_least(summary, 0, "summary");
  detail::require_at_most(summary, stride, "summary", "stride");
  return Pattern(std::make_shared<detail::FixedNode>(checked_index(n, "n"), stride, summary));
}

}  // namespace cobble
