#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "pattern/arguments.hpp"
#include "pattern/random.hpp"
#include "pattern/sampling.hpp"
#include "pattern/stored_patterns.hpp"

namespace cobble {
namespace detail {
namespace {

std::string number_text(double number) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
}

/// An undirected edge as one sortable number.
std::uint64_t edge_key(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint64_t>(std::min(a, b)) << 32 | static_cast<std::uint64_t>(std::max(a, b));
}

/// A vertex of rank floor(n u^3): rank x is drawn with a density falling as x^(-2/3), which gives degrees with the
/// exponent 1 + 3/2 = 2.5.
std::int64_t draw_rank(std::int64_t n, Random& random) {
  const double u = random.uniform();
  return std::min(n - 1, static_cast<std::int64_t>(u * u * u * static_cast<double>(n)));
}

/// About `wanted` distinct edges (Chung and Lu 2002: both ends by weight); fewer where the hubs have no neighbour left.
std::vector<std::uint64_t> power_law_edges(std::int64_t n, std::int64_t wanted, Random& random) {
  // Ranks are dealt to the vertices at random, or else the hubs would all come first.
  std::vector<std::int32_t> vertex(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t other = random.below(i + 1);
    vertex[static_cast<std::size_t>(i)] = vertex[static_cast<std::size_t>(other)];
    vertex[static_cast<std::size_t>(other)] = static_cast<std::int32_t>(i);
  }
  constexpr int kRounds = 32;  // each draws what the one before lost to loops and duplicates
  std::vector<std::uint64_t> edges;
  for (int round = 0; round < kRounds; ++round) {
    const auto sorted = static_cast<std::ptrdiff_t>(edges.size());
    if (sorted >= wanted) break;
    for (std::int64_t missing = wanted - sorted; missing > 0; --missing) {
      const std::int64_t a = vertex[static_cast<std::size_t>(draw_rank(n, random))];
      const std::int64_t b = vertex[static_cast<std::size_t>(draw_rank(n, random))];
      if (a != b) edges.push_back(edge_key(a, b));
    }
    std::sort(edges.begin() + sorted, edges.end());
    std::inplace_merge(edges.begin(), edges.begin() + sorted, edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }
  return edges;
}

/// Both directions of each edge in compressed rows. The edges are sorted, so every row comes out sorted: first its
/// smaller neighbours, then its greater ones.
CsrPattern symmetric_rows(std::int64_t n, const std::vector<std::uint64_t>& edges) {
  CsrPattern matrix{n, n, std::vector<std::int64_t>(static_cast<std::size_t>(n) + 1), {}};
  const auto smaller = [](std::uint64_t edge) { return static_cast<std::size_t>(edge >> 32); };
  const auto greater = [](std::uint64_t edge) { return static_cast<std::size_t>(edge & 0xFFFFFFFFU); };
  for (const std::uint64_t edge : edges) {
    ++matrix.row_offsets[smaller(edge) + 1];
    ++matrix.row_offsets[greater(edge) + 1];
  }
  for (std::size_t row = 0; row < static_cast<std::size_t>(n); ++row) {
    matrix.row_offsets[row + 1] += matrix.row_offsets[row];
  }
  matrix.column_indices.resize(edges.size() * 2);
  std::vector<std::int64_t> next(matrix.row_offsets.begin(), matrix.row_offsets.end() - 1);
  for (const std::uint64_t edge : edges) {
    matrix.column_indices[static_cast<std::size_t>(next[greater(edge)]++)] = static_cast<std::int32_t>(smaller(edge));
  }
  for (const std::uint64_t edge : edges) {
    matrix.column_indices[static_cast<std::size_t>(next[smaller(edge)]++)] = static_cast<std::int32_t>(greater(edge));
  }
  return matrix;
}

}  // namespace
}  // namespace detail

using detail::DistinctSampler;
using detail::Random;
using detail::require_at_least;
using detail::require_at_most;

Pattern random_blocks(std::int64_t n, std::int64_t block, std::int64_t per_row, std::uint64_t seed) {
  checked_index(n, "n");
  require_at_least(block, 1, "block");
  const std::int32_t block_size = checked_index(block, "block");
  const std::int64_t panels = divide_up(n, block);
  require_at_least(per_row, 0, "per_row");
  require_at_most(per_row, panels, "per_row", "the number of blocks");
  BsrPattern matrix{n, n, block_size, block_size, {0}, {}, {}};
  detail::reserve_entries(matrix.block_column_indices, panels * per_row, "the list of blocks");
  DistinctSampler sampler(panels);
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    Random random(seed, panel);
    sampler.append(per_row, panels, random, matrix.block_column_indices);
    matrix.block_row_offsets.push_back((panel + 1) * per_row);
  }
  return detail::bsr_pattern(std::move(matrix), "blocks(" + std::to_string(n) + "," + std::to_string(block) + "," +
                                                    std::to_string(per_row) + "," + std::to_string(seed) + ")");
}

Pattern random_pairs(std::int64_t n_q, std::int64_t n_k, std::int64_t per_row, std::uint64_t seed) {
  checked_index(n_q, "n_q");
  checked_index(n_k, "n_k");
  require_at_least(per_row, 0, "per_row");
  require_at_most(per_row, n_k, "per_row", "n_k");
  CsrPattern matrix{n_q, n_k, {0}, {}};
  matrix.row_offsets.reserve(static_cast<std::size_t>(n_q) + 1);
  detail::reserve_entries(matrix.column_indices, n_q * per_row, "the list of pairs");
  DistinctSampler sampler(n_k);
  for (std::int64_t row = 0; row < n_q; ++row) {
    Random random(seed, row);
    sampler.append(per_row, n_k, random, matrix.column_indices);
    matrix.row_offsets.push_back((row + 1) * per_row);
  }
  return detail::csr_pattern(std::move(matrix), "random(" + detail::size_text(n_q, n_k) + "," +
                                                    std::to_string(per_row) + "," + std::to_string(seed) + ")");
}

Pattern power_law_graph(std::int64_t n, double mean_degree, std::uint64_t seed) {
  checked_index(n, "n");
  const double most = static_cast<double>(std::max<std::int64_t>(n - 1, 0));
  if (!(mean_degree >= 0 && mean_degree <= most)) {
    throw Error(ErrorCode::invalid_argument, "mean_degree = " + detail::number_text(mean_degree) +
                                                 ", expected a number in [0, n - 1 = " + detail::number_text(most) +
                                                 "]");
  }
  const auto edges_wanted = std::llround(static_cast<double>(n) * mean_degree / 2);
  Random random(seed);
  CsrPattern matrix = detail::symmetric_rows(n, detail::power_law_edges(n, edges_wanted, random));
  return detail::csr_pattern(std::move(matrix), "graph(" + std::to_string(n) + "," + detail::number_text(mean_degree) +
                                                    "," + std::to_string(seed) + ")");
}

}  // namespace cobble
