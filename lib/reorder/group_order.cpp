#include "reorder/group_order.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>

#include "cobble/convert.hpp"

namespace cobble::detail {
namespace {

/// Rows are nodes [0, rows), columns [rows, rows + columns).
class BipartiteGraph {
 public:
  explicit BipartiteGraph(const CsrPatternView& matrix)
      : matrix_(matrix), transposed_(transpose(matrix)), columns_(transposed_.view()) {}

  std::int64_t nodes() const { return matrix_.rows + matrix_.columns; }
  bool is_row(std::int64_t node) const { return node < matrix_.rows; }
  std::span<const std::int32_t> neighbours(std::int64_t node) const {
    return is_row(node) ? matrix_.row(node) : columns_.row(node - matrix_.rows);
  }
  std::int64_t degree(std::int64_t node) const { return std::ssize(neighbours(node)); }
  /// The node of a neighbour of `node`.
  std::int64_t neighbour_node(std::int64_t node, std::int32_t neighbour) const {
    return is_row(node) ? matrix_.rows + neighbour : std::int64_t{neighbour};
  }
  std::int64_t rows() const { return matrix_.rows; }
  std::int64_t columns() const { return matrix_.columns; }

 private:
  CsrPatternView matrix_;
  CsrPattern transposed_;
  CsrPatternView columns_;
};

class CuthillMcKee {
 public:
  explicit CuthillMcKee(const CsrPatternView& matrix)
      : graph_(matrix), visited_(static_cast<std::size_t>(graph_.nodes())) {}

  RowColumnOrder order();

 private:
  bool is_dense(std::int64_t node) const {
    const auto others = static_cast<double>(graph_.is_row(node) ? graph_.columns() : graph_.rows());
    return static_cast<double>(graph_.degree(node)) > std::max(16.0, 10 * std::sqrt(others));
  }
  bool is_visited(std::int64_t node) const { return visited_[static_cast<std::size_t>(node)] != 0; }
  /// Appends the nodes that can be reached from `start` to queue_, near ones first, and marks them.
  void search(std::int64_t start);
  void sort_by_degree(std::vector<std::int64_t>::iterator begin, std::vector<std::int64_t>::iterator end) const {
    std::sort(begin, end, [this](std::int64_t a, std::int64_t b) {
      return graph_.degree(a) != graph_.degree(b) ? graph_.degree(a) < graph_.degree(b) : a < b;
    });
  }

  BipartiteGraph graph_;
  std::vector<std::uint8_t> visited_;
  std::vector<std::int64_t> queue_;
};

void CuthillMcKee::search(std::int64_t start) {
  std::size_t next = queue_.size();
  queue_.push_back(start);
  visited_[static_cast<std::size_t>(start)] = 1;
  for (; next < queue_.size(); ++next) {
    const std::int64_t node = queue_[next];
    const auto first = static_cast<std::ptrdiff_t>(queue_.size());
    for (const std::int32_t neighbour : graph_.neighbours(node)) {
      const std::int64_t found = graph_.neighbour_node(node, neighbour);
      if (is_visited(found)) continue;
      visited_[static_cast<std::size_t>(found)] = 1;
      queue_.push_back(found);
    }
    sort_by_degree(queue_.begin() + first, queue_.end());
  }
}

RowColumnOrder CuthillMcKee::order() {
  std::vector<std::int64_t> starts(static_cast<std::size_t>(graph_.nodes()));
  std::iota(starts.begin(), starts.end(), std::int64_t{0});
  sort_by_degree(starts.begin(), starts.end());
  const auto dense = std::stable_partition(starts.begin(), starts.end(), [this](auto node) { return !is_dense(node); });
  for (auto node = dense; node != starts.end(); ++node) visited_[static_cast<std::size_t>(*node)] = 1;

  const auto search_from = [this](std::int64_t start) {
    // The last node of one search lies at the rim: from there the levels are many and narrow.
    const std::size_t first = queue_.size();
    search(start);
    const std::int64_t rim = queue_.back();
    for (std::size_t i = first; i < queue_.size(); ++i) visited_[static_cast<std::size_t>(queue_[i])] = 0;
    queue_.resize(first);
    search(rim);
  };
  for (auto start = starts.begin(); start != dense; ++start) {
    if (!is_visited(*start) && graph_.degree(*start) > 0) search_from(*start);
  }
  queue_.insert(queue_.end(), dense, starts.end());
  // What has no entry, or none but with dense ones.
  for (auto start = starts.begin(); start != dense; ++start) {
    if (!is_visited(*start)) queue_.push_back(*start);
  }

  RowColumnOrder result;
  for (const std::int64_t node : queue_) {
    const bool is_row = graph_.is_row(node);
    (is_row ? result.rows : result.columns).push_back(static_cast<std::int32_t>(is_row ? node : node - graph_.rows()));
  }
  return result;
}

}  // namespace

RowColumnOrder cuthill_mckee(const CsrPatternView& matrix) { return CuthillMcKee(matrix).order(); }

}  // namespace cobble::detail
