#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cobble/error.hpp"
#include "pattern/pattern_node.hpp"

namespace cobble {
namespace detail {
namespace {

using NodePointer = std::shared_ptr<const PatternNode>;

/// Set operations deeper than this are refused: every question descends the whole tree.
constexpr int kDeepestNesting = 1000;

std::string enclosed(const PatternNode& node, PatternNode::Binding at_least) {
  const std::string text = node.describe();
  return node.binding() >= at_least ? text : "(" + text + ")";
}

int checked_depth(int below) {
  if (below >= kDeepestNesting) {
    throw Error(ErrorCode::unsupported,
                "set operations nest deeper than " + std::to_string(kDeepestNesting) + "; store the pattern (to_csr)");
  }
  return below + 1;
}

/// Appends to `runs` the runs within [begin, end) where `combine(in_a, in_b)` holds; a's runs are
/// runs[a_begin, b_begin), b's are runs[b_begin, size). Then drops a's and b's.
template <class Combine>
void sweep(std::int32_t begin, std::int32_t end, std::size_t a_begin, std::size_t b_begin, std::vector<ColumnRun>& runs,
           Combine combine) {
  const std::size_t b_end = runs.size();
  std::size_t a = a_begin;
  std::size_t b = b_begin;
  for (std::int32_t column = begin; column < end;) {
    std::int32_t next = end;
    bool in_a = false;
    bool in_b = false;
    if (a < b_begin) {
      in_a = runs[a].begin <= column;
      next = std::min(next, in_a ? runs[a].end : runs[a].begin);
    }
    if (b < b_end) {
      in_b = runs[b].begin <= column;
      next = std::min(next, in_b ? runs[b].end : runs[b].begin);
    }
    if (combine(in_a, in_b)) append_clipped(column, next, begin, end, b_end, runs);
    if (in_a && runs[a].end == next) ++a;
    if (in_b && runs[b].end == next) ++b;
    column = next;
  }
  runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(a_begin), runs.begin() + static_cast<std::ptrdiff_t>(b_end));
}

class ComplementNode final : public PatternNode {
 public:
  explicit ComplementNode(NodePointer part)
      : PatternNode(part->rows(), part->columns()), part_(std::move(part)), depth_(checked_depth(part_->depth())) {}

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    const std::size_t first = runs.size();
    part_->append_runs(row, begin, end, runs);
    sweep(begin, end, first, runs.size(), runs, [](bool in_part, bool) { return !in_part; });
  }
  std::uint64_t bits(std::int32_t row, std::int32_t column) const override {
    return ~part_->bits(row, column) & interval_bits(0, columns(), column);
  }
  std::int64_t pairs(std::int32_t row_begin, std::int32_t row_end) const override {
    const bool whole = row_begin == 0 && row_end == rows();
    return std::int64_t{row_end - row_begin} * columns() -
           (whole ? part_->total_pairs() : part_->pairs(row_begin, row_end));
  }
  std::int32_t alike_until(std::int32_t row) const override { return part_->alike_until(row); }
  std::int64_t index_words(std::int64_t pairs) const override { return part_->index_words(pairs); }
  std::string describe() const override { return "!" + enclosed(*part_, Binding::prefix); }
  Binding binding() const noexcept override { return Binding::prefix; }
  int depth() const noexcept override { return depth_; }

  const NodePointer& part() const noexcept { return part_; }

 private:
  NodePointer part_;
  int depth_;
};

/// Union, intersection or difference. The runs of the parts stand on top of the caller's, are merged above them and
/// moved down: no memory of its own.
class BooleanNode final : public PatternNode {
 public:
  enum class Operation { unite, intersect, subtract };

  BooleanNode(Operation operation, NodePointer a, NodePointer b)
      : PatternNode(a->rows(), a->columns()),
        operation_(operation),
        a_(std::move(a)),
        b_(std::move(b)),
        depth_(checked_depth(std::max(a_->depth(), b_->depth()))) {}

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    const std::size_t a_begin = runs.size();
    a_->append_runs(row, begin, end, runs);
    const std::size_t b_begin = runs.size();
    if (operation_ == Operation::unite) {
      b_->append_runs(row, begin, end, runs);
      if (a_begin == b_begin || b_begin == runs.size()) return;
      return sweep(begin, end, a_begin, b_begin, runs, [](bool in_a, bool in_b) { return in_a || in_b; });
    }
    if (a_begin == b_begin) return;
    // Only the stretch that a reaches matters, which may be much shorter than what b would answer for.
    begin = runs[a_begin].begin;
    end = runs.back().end;
    b_->append_runs(row, begin, end, runs);
    if (operation_ == Operation::intersect) {
      return sweep(begin, end, a_begin, b_begin, runs, [](bool in_a, bool in_b) { return in_a && in_b; });
    }
    if (b_begin == runs.size()) return;
    sweep(begin, end, a_begin, b_begin, runs, [](bool in_a, bool in_b) { return in_a && !in_b; });
  }
  std::uint64_t bits(std::int32_t row, std::int32_t column) const override {
    const std::uint64_t a = a_->bits(row, column);
    if (operation_ == Operation::unite) return a | b_->bits(row, column);
    if (a == 0) return 0;
    const std::uint64_t b = b_->bits(row, column);
    return operation_ == Operation::intersect ? a & b : a & ~b;
  }
  std::int32_t alike_until(std::int32_t row) const override {
    return std::min(a_->alike_until(row), b_->alike_until(row));
  }
  std::int64_t index_words(std::int64_t pairs) const override {
    return a_->index_words(pairs) + b_->index_words(pairs);
  }
  std::string describe() const override {
    const bool product = operation_ == Operation::intersect;
    const char* const sign = product ? " & " : operation_ == Operation::unite ? " | " : " - ";
    return enclosed(*a_, product ? Binding::product : Binding::sum) + sign +
           enclosed(*b_, product ? Binding::prefix : Binding::product);
  }
  Binding binding() const noexcept override {
    return operation_ == Operation::intersect ? Binding::product : Binding::sum;
  }
  int depth() const noexcept override { return depth_; }

 private:
  Operation operation_;
  NodePointer a_;
  NodePointer b_;
  int depth_;
};

NodePointer combined(BooleanNode::Operation operation, const NodePointer& a, const NodePointer& b) {
  if (a->rows() != b->rows() || a->columns() != b->columns()) {
    throw Error(ErrorCode::shape_mismatch, "a set operation on patterns of " + std::to_string(a->rows()) + " x " +
                                               std::to_string(a->columns()) + " and " + std::to_string(b->rows()) +
                                               " x " + std::to_string(b->columns()) + ", expected the same size");
  }
  return std::make_shared<BooleanNode>(operation, a, b);
}

}  // namespace
}  // namespace detail

using detail::BooleanNode;

Pattern operator|(const Pattern& a, const Pattern& b) {
  return Pattern(detail::combined(BooleanNode::Operation::unite, a.node_, b.node_));
}
Pattern operator&(const Pattern& a, const Pattern& b) {
  return Pattern(detail::combined(BooleanNode::Operation::intersect, a.node_, b.node_));
}
Pattern operator-(const Pattern& a, const Pattern& b) {
  return Pattern(detail::combined(BooleanNode::Operation::subtract, a.node_, b.node_));
}
Pattern operator!(const Pattern& a) {
  if (const auto* complement = dynamic_cast<const detail::ComplementNode*>(a.node_.get())) {
    return Pattern(complement->part());
  }
  return Pattern(std::make_shared<detail::ComplementNode>(a.node_));
}

}  // namespace cobble
