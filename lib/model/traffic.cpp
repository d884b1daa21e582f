#include "cobble/traffic.hpp"

#include <algorithm>
#include <cmath>

#include "core/checked.hpp"

namespace cobble {
namespace {

double words(std::int64_t rows, std::int64_t columns) {
  return static_cast<double>(rows) * static_cast<double>(columns);
}

double panels(std::int64_t length, std::int64_t panel) { return static_cast<double>(divide_up(length, panel)); }

double density(const ProductSize& product) {
  return cobble::density(AttentionSize{product.rows, product.columns, product.pairs, 0, 0});
}

/// The sizes of the products with the scores whose features are d and d_v.
ProductSize by_head_dim(const AttentionSize& size) { return {size.queries, size.keys, size.pairs, size.head_dim}; }
ProductSize by_value_dim(const AttentionSize& size) { return {size.queries, size.keys, size.pairs, size.value_dim}; }

ProductSize transposed(const ProductSize& product) {
  return {product.columns, product.rows, product.pairs, product.features};
}

/// Loads of a panelled operand: each of `length` rows or columns once for each panel of the other side that touches it.
double streamed_loads(std::int64_t length, std::int64_t other_length, std::int64_t panel, double density) {
  const std::int64_t whole_panels = other_length / panel;
  const double touches = static_cast<double>(whole_panels) * touched_share(density, static_cast<double>(panel)) +
                         touched_share(density, static_cast<double>(other_length % panel));
  return static_cast<double>(length) * touches;
}

Traffic delta_traffic(const AttentionSize& size) {
  return {2.0 * words(size.queries, size.value_dim), static_cast<double>(size.queries)};
}

/// P stored; then dP, which becomes dS beside P. Each tile loads the LSE and delta of its rows.
Traffic score_gradients_traffic(const AttentionSize& size, const MaterializeTiles& tiles) {
  const double pairs = static_cast<double>(size.pairs);
  const double rho = density(by_head_dim(size));
  const double lse_loads = streamed_loads(size.queries, size.keys, tiles.scores.columns, rho);
  const double delta_loads = streamed_loads(size.queries, size.keys, tiles.grad_probabilities.columns, rho);
  Traffic traffic{score_operand_loads(by_head_dim(size), tiles.scores) + lse_loads, pairs};
  return traffic += {score_operand_loads(by_value_dim(size), tiles.grad_probabilities) + delta_loads + pairs, pairs};
}

/// A panel of `held` rows of `features` each is folded into an inner x features matrix, in chunks of `chunk`.
Traffic fold_traffic(std::int64_t rows, std::int64_t held, std::int64_t features, std::int64_t chunk,
                     std::int64_t inner) {
  const double matrix = words(inner, features);
  const double stores = panels(rows, held) * matrix;
  return {panels(features, chunk) * words(rows, inner) + std::max(0.0, stores - matrix), stores};
}

/// Recompute's pass over rows: Q, dO, O and LSE in, dQ and delta out, K and V once for each panel that touches them.
Traffic row_pass_traffic(const AttentionSize& size, const PanelTile& tile) {
  const double visits = streamed_loads(size.keys, size.queries, tile.rows, density(size));
  return {words(size.queries, size.head_dim + 2 * size.value_dim + 1) +
              visits * static_cast<double>(size.head_dim + size.value_dim),
          words(size.queries, size.head_dim + 1)};
}

/// Q = A1 X and V = A3 Y.
Traffic weight_products_traffic(const AttentionSize& size, std::int64_t fast_memory_words) {
  const auto product_traffic = [fast_memory_words](std::int64_t tokens, std::int64_t features, std::int64_t inner) {
    const ProductSize product{tokens, features, tokens * features, inner};
    return weight_product_traffic(product, choose_score_tile(product, fast_memory_words));
  };
  return product_traffic(size.queries, size.head_dim, size.head_dim) +
         product_traffic(size.keys, size.value_dim, size.head_dim);
}

}  // namespace

double touched_share(double density, double length) {
  if (density >= 1.0) return length > 0.0 ? 1.0 : 0.0;
  return -std::expm1(length * std::log1p(-density));
}

double score_operand_loads(const ProductSize& product, const ScoreTile& tile) {
  const double rho = density(product);
  return static_cast<double>(product.features) * (streamed_loads(product.rows, product.columns, tile.columns, rho) +
                                                  streamed_loads(product.columns, product.rows, tile.rows, rho));
}

Traffic value_product_traffic(const ProductSize& product, const ValueTile& tile) {
  const double scores = panels(product.features, tile.features) * static_cast<double>(product.pairs);
  const double operand = static_cast<double>(product.features) *
                         streamed_loads(product.columns, product.rows, tile.rows, density(product));
  return {scores + operand + words(product.rows, tile.statistics), words(product.rows, product.features)};
}

Traffic materialize_forward_traffic(const AttentionSize& size, const MaterializeTiles& tiles) {
  const double queries = static_cast<double>(size.queries);
  const double pairs = static_cast<double>(size.pairs);
  // A row's maximum and sum are read and written again by every tile of the row but the first; the last leaves the LSE.
  const double visits = streamed_loads(size.queries, size.keys, tiles.scores.columns, density(size));
  const double revisits = std::max(0.0, visits - queries);
  Traffic traffic{score_operand_loads(by_head_dim(size), tiles.scores) + 2.0 * revisits,
                  pairs + 2.0 * revisits + queries};
  return traffic += value_product_traffic(by_value_dim(size), tiles.output);
}

Traffic materialize_backward_traffic(const AttentionSize& size, const MaterializeTiles& tiles) {
  Traffic traffic = delta_traffic(size) + score_gradients_traffic(size, tiles);
  traffic += value_product_traffic(transposed(by_value_dim(size)), tiles.grad_value);
  traffic += value_product_traffic(by_head_dim(size), tiles.grad_query);
  traffic += value_product_traffic(transposed(by_head_dim(size)), tiles.grad_key);
  return traffic;
}

Traffic recompute_forward_traffic(const AttentionSize& size, const PanelTile& tile) {
  const double streamed = streamed_loads(size.keys, size.queries, tile.rows, density(size)) *
                          static_cast<double>(size.head_dim + size.value_dim);
  return {words(size.queries, size.head_dim) + streamed, words(size.queries, size.value_dim + 1)};
}

Traffic recompute_backward_traffic(const AttentionSize& size, const RecomputeBackwardTiles& tiles) {
  const double rho = density(size);
  const double d = static_cast<double>(size.head_dim);
  const double d_v = static_cast<double>(size.value_dim);
  const double queries = static_cast<double>(size.queries);
  const double keys = static_cast<double>(size.keys);

  // The pass over columns: K, V in, dK, dV out; Q, dO, LSE and delta once for each panel that touches the row.
  const double row_visits = streamed_loads(size.queries, size.keys, tiles.columns.columns, rho);
  const Traffic columns{keys * (d + d_v) + row_visits * (d + d_v + 2.0), keys * (d + d_v)};
  if (tiles.fused) {
    // dQ is written on every visit and read on all but the first; rows never visited are written as 0.
    const Traffic grad_query{std::max(0.0, row_visits - queries) * d, std::max(row_visits, queries) * d};
    return delta_traffic(size) + columns + grad_query;
  }
  return row_pass_traffic(size, tiles.rows) + columns;
}

Traffic weight_product_traffic(const ProductSize& product, const ScoreTile& tile) {
  return {score_operand_loads(product, tile), words(product.rows, product.columns)};
}

Traffic folded_value_product_traffic(const ProductSize& product, const ValueTile& tile, std::int64_t inner) {
  Traffic traffic = value_product_traffic(product, tile);
  traffic.stores -= words(product.rows, product.features);
  return traffic += fold_traffic(product.rows, tile.rows, product.features, tile.features, inner);
}

Traffic materialize_parameter_gradients_traffic(const AttentionSize& size, std::int64_t fast_memory_words) {
  const MaterializeTiles tiles = choose_materialize(size, fast_memory_words);
  Traffic traffic = weight_products_traffic(size, fast_memory_words);
  traffic += materialize_forward_traffic(size, tiles);
  traffic += delta_traffic(size) + score_gradients_traffic(size, tiles);
  traffic += folded_value_product_traffic(by_head_dim(size), tiles.grad_query, size.head_dim);
  traffic += folded_value_product_traffic(transposed(by_value_dim(size)), tiles.grad_value, size.head_dim);
  return traffic;
}

std::optional<Traffic> recompute_parameter_gradients_traffic(const AttentionSize& size,
                                                             std::int64_t fast_memory_words) {
  const auto forward = choose_panel(RecomputePass::forward, size, fast_memory_words);
  const auto rows = choose_panel(RecomputePass::backward_rows, size, fast_memory_words);
  const auto values = choose_panel(RecomputePass::backward_values, size, fast_memory_words);
  if (!forward || !rows || !values) return std::nullopt;

  Traffic traffic = weight_products_traffic(size, fast_memory_words);
  traffic += recompute_forward_traffic(size, *forward);
  traffic += row_pass_traffic(size, *rows);
  traffic.stores -= words(size.queries, size.head_dim);
  traffic += fold_traffic(size.queries, rows->rows, size.head_dim, size.head_dim, size.head_dim);
  const double row_visits = streamed_loads(size.queries, size.keys, values->columns, density(size));
  traffic.loads +=
      words(size.keys, size.head_dim) + row_visits * static_cast<double>(size.head_dim + size.value_dim + 1);
  return traffic += fold_traffic(size.keys, values->columns, size.value_dim, size.value_dim, size.head_dim);
}

}  // namespace cobble
