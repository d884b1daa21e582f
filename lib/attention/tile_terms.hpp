#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "attention/tile_map.hpp"
#include "cobble/score_terms.hpp"
#include "kernels/tile_kernels.hpp"
#include "pattern/stored_values.hpp"
#include "plan/walk.hpp"

namespace cobble::detail {

/// The terms of scores in a pass, and where their gradients go.
template <class T>
struct PassTerms {
  ScoreTerms<T> given = {};
  bool slopes = false;           ///< the pass needs the derivative of softcap
  T* slope_store = nullptr;      ///< where it outlives a task, as pair values do
  TensorView<T> grad_bias = {};  ///< as given.bias.values; no data: not in this pass
  bool add_to_grad_bias = false;
};

/// What the terms do to one tile of pairs: to its scores before the softmax, to their gradients after it. Queries and
/// keys count from the tile's first.
template <class T>
class TileTerms {
 public:
  TileTerms(const PassTerms<T>& terms, std::int64_t query_tokens, std::int64_t key_tokens);

  /// Whether there is anything between <q_i, k_j> and s_ij.
  bool change_scores() const noexcept { return softcap_ != T{0} || bias_.has_value() || has_alibi_; }
  /// -infinity without sinks.
  T sink(const Head& head) const noexcept {
    if (terms_.given.sinks.empty()) return -std::numeric_limits<T>::infinity();
    return terms_.given.sinks[static_cast<std::size_t>(head.query)];
  }

  void set_tile(const Head& head, Range queries, Range keys) noexcept {
    head_ = head;
    queries_ = queries;
    keys_ = keys;
    removal_ = Removal::unknown;
  }
  /// Products become scores; `slope` receives the derivatives of softcap, unless null.
  void apply(const TileMap& map, T* score, T* slope) const;
  /// From the gradients of scores, takes those of biases and turns them into those of products.
  void finish_gradients(const TileMap& map, const T* slope, T* grad_score);

  /// Whether a bias of -infinity takes a pair out of the tile. Such a pair's score is -infinity and its probability 0,
  /// but a product with what its tokens hold need not be.
  bool removes_pairs();
  bool removes(std::int64_t query, std::int64_t key) const;

 private:
  enum class Removal : std::uint8_t { unknown, none, some };

  /// Calls visit(query, first key, count, place of the values) for the biases stored on the tile.
  template <class Visit>
  void for_each_run(Visit&& visit) const;
  /// Calls visit(pair, place) for the pairs of a list that have a bias.
  template <class Visit>
  void for_each_listed(const TileMap& map, Visit&& visit) const;
  void apply_dense(const TileMap& map, T* score, T* slope) const;
  void apply_listed(const TileMap& map, T* score, T* slope) const;
  void add_dense_bias(const TileMap& map, T* score) const;
  void clear_removed(const TileMap& map, T* grad_score) const;
  void store_bias_gradient(const TileMap& map, const T* grad_score) const;
  void multiply_slopes(const TileMap& map, const T* slope, T* grad_score) const;
  std::int64_t matrix_offset(const TensorShape& shape, const TensorStrides& strides) const noexcept {
    return (shape.batch == 1 ? 0 : head_.batch) * strides.batch + (shape.heads == 1 ? 0 : head_.query) * strides.heads;
  }
  /// The values of the head's matrix.
  const T* bias() const noexcept {
    const TensorView<const T>& values = terms_.given.bias.values;
    return values.data() + matrix_offset(values.shape(), values.strides());
  }
  T* grad_bias() const noexcept {
    return terms_.grad_bias.data() + matrix_offset(terms_.grad_bias.shape(), terms_.grad_bias.strides());
  }
  T alibi_slope() const noexcept {
    return static_cast<T>(terms_.given.alibi_slopes[static_cast<std::size_t>(head_.query)]);
  }

  const PassTerms<T>& terms_;
  const kernels::TileKernels<T>& kernels_;
  std::int64_t position_shift_;  ///< from a query's number to its position among keys
  T softcap_;
  bool has_alibi_;
  std::optional<StoredValues> bias_;
  Head head_;
  Range queries_;
  Range keys_;
  Removal removal_ = Removal::unknown;
};

}  // namespace cobble::detail
