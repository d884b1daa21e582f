#include "cobble/reorder.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "cobble/convert.hpp"
#include "cobble/error.hpp"
#include "pattern/stored_patterns.hpp"
#include "reorder/graph_orderings.hpp"
#include "reorder/similarity.hpp"

namespace cobble {
namespace {

constexpr std::array kMethods{ReorderMethod::automatic, ReorderMethod::identity,          ReorderMethod::amd,
                              ReorderMethod::colamd,    ReorderMethod::nested_dissection, ReorderMethod::similarity};

std::vector<std::int32_t> identity_permutation(std::int64_t size) {
  std::vector<std::int32_t> permutation(static_cast<std::size_t>(size));
  std::iota(permutation.begin(), permutation.end(), 0);
  return permutation;
}

Reordering identity_reordering(const Pattern& pattern) {
  return {ReorderMethod::identity, identity_permutation(pattern.rows()), identity_permutation(pattern.columns())};
}

/// The rows of `a` and `b`, which have as many of the same length, united.
CsrPattern unite(const CsrPatternView& a, const CsrPatternView& b) {
  CsrPattern result;
  result.rows = a.rows;
  result.columns = a.columns;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const auto of_a = a.row(row);
    const auto of_b = b.row(row);
    std::set_union(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(result.column_indices));
    result.row_offsets.push_back(static_cast<std::int64_t>(result.column_indices.size()));
  }
  return result;
}

/// Nodes are rows, then columns; an edge for each pair.
CsrPattern bipartite_graph(const CsrPatternView& matrix, const CsrPatternView& transposed) {
  CsrPattern graph;
  graph.rows = graph.columns = matrix.rows + matrix.columns;
  graph.column_indices.reserve(static_cast<std::size_t>(2 * matrix.entries()));
  for (const std::int32_t column : matrix.column_indices) {
    graph.column_indices.push_back(static_cast<std::int32_t>(matrix.rows + column));
  }
  graph.column_indices.insert(graph.column_indices.end(), transposed.column_indices.begin(),
                              transposed.column_indices.end());
  graph.row_offsets.assign(matrix.row_offsets.begin(), matrix.row_offsets.end());
  for (std::int64_t column = 1; column <= matrix.columns; ++column) {
    graph.row_offsets.push_back(matrix.entries() + transposed.row_offsets[static_cast<std::size_t>(column)]);
  }
  return graph;
}

/// A matrix and what several methods need of it.
class Reorderer {
 public:
  explicit Reorderer(const Pattern& pattern) : matrix_(pattern.to_csr()), transposed_(transpose(matrix_.view())) {}

  Reordering order(ReorderMethod method) const {
    switch (method) {
      case ReorderMethod::amd: return order_graph(method, detail::amd_order);
      case ReorderMethod::nested_dissection: return order_graph(method, detail::nested_dissection_order);
      case ReorderMethod::colamd:
        return {method, detail::colamd_column_order(transposed_), detail::colamd_column_order(matrix_)};
      case ReorderMethod::similarity: {
        detail::RowColumnOrder found = detail::order_by_similarity(matrix_, transposed_);
        return {method, std::move(found.rows), std::move(found.columns)};
      }
      case ReorderMethod::automatic:
      case ReorderMethod::identity: break;
    }
    return {ReorderMethod::identity, identity_permutation(matrix_.rows), identity_permutation(matrix_.columns)};
  }

  /// tile_fill() of the permuted pattern, without making it.
  double fill(const Reordering& reordering, std::int64_t tile) const;

 private:
  template <class Order>
  Reordering order_graph(ReorderMethod method, Order order_of) const {
    if (matrix_.rows == matrix_.columns) {
      CsrPattern united = unite(matrix_, transposed_);
      const std::int64_t mirrored = 2 * matrix_.view().entries() - united.view().entries();
      if (2 * mirrored >= matrix_.view().entries()) {
        std::vector<std::int32_t> both = order_of(united);
        return {method, both, std::move(both)};
      }
    }
    if (matrix_.rows + matrix_.columns > std::int64_t{2147483647}) {
      throw Error(ErrorCode::overflow, "rows + columns = " + std::to_string(matrix_.rows + matrix_.columns) +
                                           ", expected at most 2147483647 for this ordering");
    }
    Reordering result{method, {}, {}};
    for (const std::int32_t node : order_of(bipartite_graph(matrix_, transposed_))) {
      const bool is_query = node < matrix_.rows;
      (is_query ? result.queries : result.keys).push_back(is_query ? node : node - static_cast<int>(matrix_.rows));
    }
    return result;
  }

  CsrPattern matrix_;
  CsrPattern transposed_;
};

double Reorderer::fill(const Reordering& reordering, std::int64_t tile) const {
  const std::vector<std::int32_t> key_places = inverse_permutation(reordering.keys);
  std::vector<std::int64_t> last_seen(static_cast<std::size_t>(matrix_.columns / tile + 1), -1);
  std::int64_t area = 0;
  for (std::int64_t place = 0; place < matrix_.rows; ++place) {
    const std::int64_t panel = place / tile;
    for (const std::int32_t column : matrix_.view().row(reordering.queries[static_cast<std::size_t>(place)])) {
      const std::int64_t column_panel = key_places[static_cast<std::size_t>(column)] / tile;
      std::int64_t& seen = last_seen[static_cast<std::size_t>(column_panel)];
      if (seen == panel) continue;
      seen = panel;
      area += (std::min(matrix_.rows, (panel + 1) * tile) - panel * tile) *
              (std::min(matrix_.columns, (column_panel + 1) * tile) - column_panel * tile);
    }
  }
  return area == 0 ? 0 : static_cast<double>(matrix_.view().entries()) / static_cast<double>(area);
}

Reordering reorder_automatically(const Pattern& pattern) {
  // From here on the other methods have little left to win.
  constexpr double kFullEnough = 0.9;
  Reordering best = identity_reordering(pattern);
  double best_fill = tile_fill(pattern, kReorderTile);
  if (best_fill >= kFullEnough || pattern.pairs() == 0) return best;
  const Reorderer reorderer(pattern);
  for (const ReorderMethod method : {ReorderMethod::similarity, ReorderMethod::nested_dissection, ReorderMethod::amd}) {
    Reordering candidate;
    try {
      candidate = reorderer.order(method);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::unsupported) continue;  // too many pairs for METIS
      throw;
    }
    const double fill = reorderer.fill(candidate, kReorderTile);
    if (fill <= best_fill) continue;
    best = std::move(candidate);
    best_fill = fill;
    if (best_fill >= kFullEnough) break;
  }
  return best;
}

void require_permutation(std::span<const std::int32_t> permutation, const std::string& name) {
  const std::int64_t size = std::ssize(permutation);
  std::vector<std::uint8_t> seen(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    const std::int32_t token = permutation[i];
    const bool in_range = token >= 0 && token < size;
    if (in_range && seen[static_cast<std::size_t>(token)] == 0) {
      seen[static_cast<std::size_t>(token)] = 1;
      continue;
    }
    throw Error(ErrorCode::invalid_structure,
                name + "[" + std::to_string(i) + "] = " + std::to_string(token) +
                    (in_range ? " stands twice in the permutation"
                              : " is outside [0, " + std::to_string(size) + ") of the permutation"));
  }
}

}  // namespace

std::string_view to_string(ReorderMethod method) noexcept {
  switch (method) {
    case ReorderMethod::automatic: return "automatic";
    case ReorderMethod::identity: return "identity";
    case ReorderMethod::amd: return "amd";
    case ReorderMethod::colamd: return "colamd";
    case ReorderMethod::nested_dissection: return "nested_dissection";
    case ReorderMethod::similarity: return "similarity";
  }
  return "unknown";
}

ReorderMethod parse_reorder_method(std::string_view name) {
  std::string names;
  for (const ReorderMethod method : kMethods) {
    if (name == to_string(method)) return method;
    names += (names.empty() ? "" : ", ") + std::string(to_string(method));
  }
  throw Error(ErrorCode::invalid_argument, "reorder method '" + std::string(name) + "', expected one of " + names);
}

void validate(const Reordering& reordering, std::int64_t rows, std::int64_t columns) {
  const auto require_size = [](std::size_t found, std::int64_t expected, const char* name, const char* of) {
    if (static_cast<std::int64_t>(found) == expected) return;
    throw Error(ErrorCode::shape_mismatch, std::string(name) + " of the reordering has " + std::to_string(found) +
                                               " entries, expected as many as " + of + ", " + std::to_string(expected));
  };
  require_size(reordering.queries.size(), rows, "queries", "rows");
  require_size(reordering.keys.size(), columns, "keys", "columns");
  require_permutation(reordering.queries, "queries");
  require_permutation(reordering.keys, "keys");
}

std::vector<std::int32_t> inverse_permutation(std::span<const std::int32_t> permutation) {
  require_permutation(permutation, "permutation");
  std::vector<std::int32_t> inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    inverse[static_cast<std::size_t>(permutation[i])] = static_cast<std::int32_t>(i);
  }
  return inverse;
}

Reordering reorder(const Pattern& pattern, ReorderMethod method) {
  if (method == ReorderMethod::automatic) return reorder_automatically(pattern);
  if (method == ReorderMethod::identity) return identity_reordering(pattern);
  return Reorderer(pattern).order(method);
}

Pattern permute(const Pattern& pattern, const Reordering& reordering) {
  validate(reordering, pattern.rows(), pattern.columns());
  const CsrPattern transposed = transpose(pattern.to_csr());
  const std::vector<std::int32_t> query_places = inverse_permutation(reordering.queries);
  CsrPattern result;
  result.rows = pattern.rows();
  result.columns = pattern.columns();
  result.row_offsets.assign(static_cast<std::size_t>(result.rows + 1), 0);
  for (const std::int32_t row : transposed.column_indices) {
    ++result.row_offsets[static_cast<std::size_t>(query_places[static_cast<std::size_t>(row)]) + 1];
  }
  std::partial_sum(result.row_offsets.begin(), result.row_offsets.end(), result.row_offsets.begin());
  result.column_indices.resize(transposed.column_indices.size());
  // Column by column in the new order, so that rows come out sorted.
  std::vector<std::int64_t> next(result.row_offsets.begin(), result.row_offsets.end());
  for (std::size_t place = 0; place < reordering.keys.size(); ++place) {
    for (const std::int32_t row : transposed.view().row(reordering.keys[place])) {
      const auto new_row = static_cast<std::size_t>(query_places[static_cast<std::size_t>(row)]);
      result.column_indices[static_cast<std::size_t>(next[new_row]++)] = static_cast<std::int32_t>(place);
    }
  }
  return detail::csr_pattern(std::move(result));
}

double tile_fill(const Pattern& pattern, std::int64_t tile) {
  if (tile < 1) {
    throw Error(ErrorCode::invalid_argument, "tile = " + std::to_string(tile) + ", expected at least 1");
  }
  tile = std::min(tile, std::max<std::int64_t>({pattern.rows(), pattern.columns(), 1}));
  std::vector<PatternTile> tiles;
  double area = 0;
  double pairs = 0;
  for (std::int64_t row = 0; row < pattern.rows(); row += tile) {
    const std::int64_t row_end = std::min(pattern.rows(), row + tile);
    pattern.tiles(row, row_end, tile, tiles);
    for (const PatternTile& found : tiles) {
      const std::int64_t column = found.column_panel * tile;
      area += static_cast<double>((row_end - row) * (std::min(pattern.columns(), column + tile) - column));
      pairs += static_cast<double>(found.pairs);
    }
  }
  return area == 0 ? 0 : pairs / area;
}

}  // namespace cobble
