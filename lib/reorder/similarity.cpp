#include "reorder/similarity.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "reorder/row_groups.hpp"

namespace cobble::detail {
namespace {

/// Row groups x column groups: an entry where the two share a pair.
CsrPattern quotient(const CsrPatternView& matrix, const RowGroups& rows, const RowGroups& columns) {
  std::vector<std::vector<std::int32_t>> members(static_cast<std::size_t>(rows.groups));
  for (std::size_t row = 0; row < rows.group_of.size(); ++row) {
    const std::int32_t group = rows.group_of[row];
    if (group >= 0) members[static_cast<std::size_t>(group)].push_back(static_cast<std::int32_t>(row));
  }
  CsrPattern result;
  result.rows = rows.groups;
  result.columns = columns.groups;
  std::vector<std::int32_t> last_seen(static_cast<std::size_t>(columns.groups), -1);
  for (std::int32_t group = 0; group < rows.groups; ++group) {
    const auto first = static_cast<std::ptrdiff_t>(result.column_indices.size());
    for (const std::int32_t row : members[static_cast<std::size_t>(group)]) {
      for (const std::int32_t column : matrix.row(row)) {
        const std::int32_t column_group = columns.group_of[static_cast<std::size_t>(column)];
        std::int32_t& seen = last_seen[static_cast<std::size_t>(column_group)];
        if (seen == group) continue;
        seen = group;
        result.column_indices.push_back(column_group);
      }
    }
    std::sort(result.column_indices.begin() + first, result.column_indices.end());
    result.row_offsets.push_back(static_cast<std::int64_t>(result.column_indices.size()));
  }
  return result;
}

/// One axis: its tokens' groups, and the order that is found for them.
class Axis {
 public:
  Axis(const RowGroups& groups, const std::vector<std::int32_t>& group_order)
      : place_of_group_(groups.group_of.size()), order_(groups.group_of.size()), place_(order_.size()) {
    std::vector<std::int32_t> place(group_order.size());
    for (std::size_t i = 0; i < group_order.size(); ++i) {
      place[static_cast<std::size_t>(group_order[i])] = static_cast<std::int32_t>(i);
    }
    for (std::size_t token = 0; token < order_.size(); ++token) {
      const std::int32_t group = groups.group_of[token];
      // Tokens without pairs stand last.
      place_of_group_[token] = group < 0 ? groups.groups : place[static_cast<std::size_t>(group)];
    }
    std::iota(order_.begin(), order_.end(), 0);
    sort([](std::int32_t) { return 0.0; });
  }

  /// Within each group by the mean place of what a token has pairs with on the other axis.
  void sort_within_groups(const CsrPatternView& pairs, const Axis& other) {
    std::vector<double> means(order_.size());
    for (std::size_t token = 0; token < means.size(); ++token) {
      const auto partners = pairs.row(static_cast<std::int64_t>(token));
      std::int64_t sum = 0;
      for (const std::int32_t partner : partners) sum += other.place_[static_cast<std::size_t>(partner)];
      if (!partners.empty()) means[token] = static_cast<double>(sum) / static_cast<double>(partners.size());
    }
    sort([&means](std::int32_t token) { return means[static_cast<std::size_t>(token)]; });
  }

  std::vector<std::int32_t> take_order() { return std::move(order_); }

 private:
  template <class Key>
  void sort(Key key) {
    std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
      const std::int32_t group_a = place_of_group_[static_cast<std::size_t>(a)];
      const std::int32_t group_b = place_of_group_[static_cast<std::size_t>(b)];
      if (group_a != group_b) return group_a < group_b;
      const double key_a = key(a);
      const double key_b = key(b);
      return key_a != key_b ? key_a < key_b : a < b;
    });
    for (std::size_t i = 0; i < order_.size(); ++i) {
      place_[static_cast<std::size_t>(order_[i])] = static_cast<std::int32_t>(i);
    }
  }

  std::vector<std::int32_t> place_of_group_;  ///< of each token's group
  std::vector<std::int32_t> order_;
  std::vector<std::int32_t> place_;
};

}  // namespace

RowColumnOrder order_by_similarity(const CsrPatternView& matrix, const CsrPatternView& transposed) {
  constexpr int kRounds = 2;
  const RowGroups row_groups = group_similar_rows(matrix);
  const RowGroups column_groups = group_similar_rows(transposed);
  const RowColumnOrder group_order = cuthill_mckee(quotient(matrix, row_groups, column_groups));
  Axis rows(row_groups, group_order.rows);
  Axis columns(column_groups, group_order.columns);
  for (int round = 0; round < kRounds; ++round) {
    rows.sort_within_groups(matrix, columns);
    columns.sort_within_groups(transposed, rows);
  }
  return {rows.take_order(), columns.take_order()};
}

}  // namespace cobble::detail
