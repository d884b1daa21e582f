#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/executor.hpp"

// What the executor computes: one function a step, each on dense tiles and on lists of pairs.

namespace cobble::detail {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();
/// Smaller ones make subnormal numbers of what counts.
template <class T>
constexpr T kLeastFactor = T{1} / T{1 << 20};

}  // namespace

template <class Storage>
void Executor<Storage>::compute(const Step& step) {
  switch (step.operation) {
    case Operation::scores: return compute_scores(step);
    case Operation::grad_probabilities:
      return multiply_pairs(grad_scale(), grad_output_, value_, step.features, scratch_.grad_score);
    case Operation::online_softmax: return update_softmax();
    case Operation::row_statistics: return update_statistics();
    case Operation::accumulate_output: return add_to_rows(T{1}, scratch_.score, value_, step, output_);
    case Operation::finish_output: return finish_output(step);
    case Operation::finish_lse:
      finish_rows(step.rows.size());
      return write_column(scratch_.lse, tensors_.lse, step.head, step.rows);
    case Operation::delta: return compute_delta(step);
    case Operation::probabilities: return compute_probabilities();
    case Operation::grad_scores: return compute_grad_scores();
    case Operation::grad_query: return add_to_rows(rest_of_scale(), scratch_.grad_score, key_, step, grad_query_);
    case Operation::finish_grad_query:
      return write_grad_query({Operand::grad_query, step.head, step.rows, grad_query_.features});
    case Operation::grad_key:
      return add_to_columns(rest_of_scale(), scratch_.grad_score, query_, step, scratch_.product_key, grad_key_);
    case Operation::grad_value:
      return add_to_columns(T{1}, scratch_.score, grad_output_, step, scratch_.product_value, grad_value_);
    case Operation::project_query:
      return add_projection<T>(head_matrix(tensors_.query_input, step.head.batch, step.head.query),
                               head_matrix(tensors_.score_weights, step.head.batch, step.head.query),
                               head_matrix(tensors_.projected_query, step.head.batch, step.head.query), step.rows,
                               step.features, step.keys);
    case Operation::project_value:
      return add_projection<T>(head_matrix(tensors_.value_input, step.head.batch, step.head.key_value),
                               head_matrix(tensors_.value_weights, step.head.batch, step.head.key_value),
                               head_matrix(tensors_.projected_value, step.head.batch, step.head.key_value), step.rows,
                               step.features, step.keys);
    case Operation::fold_query: {
      begin_sums(grad_query_, step.rows.size());
      const T* const origin = grad_query_.at(-step.rows.begin, 0);  // so that rows count from the tensor's first
      return add_fold<T>(head_matrix(tensors_.query_input, step.head.batch, step.head.query),
                         {origin, grad_query_.stride(), 1}, weight_sums_.matrix, step.rows, plan_.problem.head_dim,
                         step.features);
    }
    case Operation::fold_value: {
      const HeadMatrix<T> sums = head_matrix(tensors_.grad_value, step.head.batch, step.head.key_value);
      return add_fold<T>(head_matrix(tensors_.value_input, step.head.batch, step.head.key_value),
                         {sums.data, sums.row_distance, sums.feature_distance}, weight_sums_.matrix, step.keys,
                         plan_.problem.head_dim, step.features);
    }
    case Operation::add_score_weight_slice:
    case Operation::add_value_weight_slice: return add_slice(weight_sums_, step.rows, step.features);
    case Operation::add_output_part: return add_output_part(step.rows.size());
    case Operation::add_query_part: return add_query_part(step.rows.size());
    case Operation::add_key_slice: return add_slice(grad_key_, step.keys, step.features);
    case Operation::add_value_slice: return add_slice(grad_value_, step.keys, step.features);
  }
}

template <class Storage>
void Executor<Storage>::set_shift(std::int64_t rows) {
  has_empty_rows_ = false;
  for (std::int64_t i = 0; i < rows; ++i) {
    const bool empty = scratch_.lse[i] == -kInfinity<T>;
    has_empty_rows_ = has_empty_rows_ || empty;
    scratch_.shift[i] = empty ? kInfinity<T> : scratch_.lse[i];
  }
  std::fill(scratch_.shift + rows, scratch_.shift + round_up(rows, kPaddedElements), kInfinity<T>);
}

template <class Storage>
void Executor<Storage>::multiply_pairs(T alpha, Panel<Storage>& rows, Panel<Storage>& columns, Range features,
                                       T* tile) {
  if (multiply_pairs_in_bf16(alpha, rows, columns, features, tile)) return;
  const bool add = features.begin > 0;
  if (multiplies_entries(columns, features)) return multiply_entries(alpha, rows, columns.entries(), features, tile);
  if (const EntryRows<T> entries = listed_entries(columns, features); entries.row_offsets != nullptr) {
    return multiply_listed_entries(map_.pairs(), entries, alpha, rows.rows(features), tile, add);
  }
  const kernels::FeatureRows<const T> keys = columns.rows(features);
  if (!map_.is_dense()) {
    kernels_.pair_products(map_.pairs(), features.size(), alpha, rows.rows(features), keys, tile, add);
    return;
  }
  // Once a panel instead of once a tile, where a factor can make nothing infinite.
  const bool scaled = !rows.is_compressed() && alpha >= kLeastFactor<T> && alpha <= T{1};
  const kernels::FeatureRows<const T> queries = rows.transposed(features, scaled ? alpha : T{1});
  kernels_.multiply(pair_product<T, T>(scaled ? T{1} : alpha, keys, queries, features, tile));
}

template <class Storage>
void Executor<Storage>::compute_scores(const Step& step) {
  multiply_pairs(scale_, query_, key_, step.features, scratch_.score);
  const bool complete = step.features.end == plan_.problem.head_dim;
  if (complete && terms_.change_scores()) terms_.apply(map_, scratch_.score, scratch_.slope);
}

template <class Storage>
void Executor<Storage>::update_softmax() {
  T* const maximum = scratch_.row_maximum;
  T* const sum = scratch_.row_sum;
  const bool rescaled =
      map_.is_dense() ? kernels_.online_softmax(map_.dense(scratch_.score), maximum, sum, scratch_.rescale)
                      : kernels_.pair_online_softmax(map_.pairs(), scratch_.score, maximum, sum, scratch_.rescale);
  if (!rescaled) return;
  const std::int64_t begun_rows = output_.begun ? map_.rows() : 0;
  for (std::int64_t i = 0; i < begun_rows; ++i) {
    if (scratch_.rescale[i] == T{1}) continue;
    kernels_.scale(output_.features.size(), scratch_.rescale[i], output_.at(i, output_.features.begin));
  }
  if (output_.transposed_stride == 0) return;
  for (std::int64_t f = 0; f < output_.features.size(); ++f) {
    kernels_.multiply_by(map_.rows(), scratch_.rescale, output_.transposed + f * output_.transposed_stride);
  }
}

template <class Storage>
void Executor<Storage>::update_statistics() {
  if (map_.is_dense()) {
    kernels_.row_statistics(map_.dense(scratch_.score), scratch_.row_maximum, scratch_.row_sum);
  } else {
    kernels_.pair_row_statistics(map_.pairs(), scratch_.score, scratch_.row_maximum, scratch_.row_sum);
  }
}

template <class Storage>
bool Executor<Storage>::may_multiply_densely(TileKind kind, Panel<Storage>& operand) {
  // Where a pair does not count the tile holds 0, and 0 times what is not finite is NaN.
  const bool all_count = kind == TileKind::full && !has_empty_rows_ && !terms_.removes_pairs();
  return map_.is_dense() && (all_count || operand.all_finite());
}

template <class Storage>
bool Executor<Storage>::all_pairs_count(Panel<Storage>& operand) {
  return !terms_.removes_pairs() || operand.all_finite();
}

template <class Storage>
void Executor<Storage>::add_to_rows(T alpha, const T* tile, Panel<Storage>& columns, const Step& step, Sums& sums) {
  const Range features = step.features;
  const bool by_entries = multiplies_entries(columns, features);
  const bool dense = !by_entries && may_multiply_densely(step.kind, columns);
  const bool begins = dense && !sums.begun && features == sums.features;
  if (begins) {
    sums.begun = true;
  } else {
    begin_sums(sums, map_.rows());
  }
  if (by_entries) return add_entries_to_rows(alpha, tile, columns.entries(), features, sums);
  T* const first = sums.at(0, features.begin);
  if (const EntryRows<T> entries = listed_entries(columns, features); entries.row_offsets != nullptr) {
    return add_listed_entries_to_rows<T>(map_.pairs(), entries, alpha, tile, {first, sums.stride()});
  }
  if (!map_.is_dense() && all_pairs_count(columns)) {
    kernels_.pairs_to_rows(map_.pairs(), features.size(), alpha, tile, columns.rows(features), {first, sums.stride()});
    return;
  }
  if (dense) {
    if (add_to_rows_in_bf16(alpha, tile, columns, features, {first, sums.stride()}, !begins)) return;
    const kernels::FeatureRows<const T> keys = columns.padded(features);
    kernels_.multiply(row_product<T, T>(alpha, tile, keys, features, {first, sums.stride()}, !begins));
    return;
  }
  const kernels::FeatureRows<const T> keys = columns.rows(features);
  for_each_pair(tile, [&](std::int64_t query, std::int64_t key, std::int64_t at) {
    kernels_.axpy(features.size(), alpha * tile[at], keys.data + key * keys.stride, first + query * sums.stride());
  });
}

template <class Storage>
void Executor<Storage>::multiply_columns(T alpha, const T* tile, Panel<Storage>& rows, Range features,
                                         kernels::FeatureRows<T> to, bool add) {
  if (multiply_columns_in_bf16(alpha, tile, rows, features, to, add)) return;
  const kernels::FeatureRows<const T> queries = rows.padded(features);
  kernels_.multiply(column_product<T, T>(alpha, tile, queries, features, to, add));
}

template <class Storage>
void Executor<Storage>::add_to_columns(T alpha, const T* tile, Panel<Storage>& rows, const Step& step, T* product,
                                       KeySums& key_sums) {
  const bool dense = key_sums.operand == nullptr && may_multiply_densely(step.kind, rows);
  const bool in_place = dense && map_.gathered_keys().empty() && key_sums.matrix.feature_distance == 1 &&
                        step.features.size() % kPaddedElements == 0;
  const bool begins = in_place && !key_sums.begun;
  if (begins) {
    key_sums.begun = true;
  } else {
    begin_key_sums(key_sums, step.keys, step.features);
  }
  if (key_sums.operand != nullptr) return add_to_entries(alpha, tile, rows, step, product, key_sums);
  const HeadMatrix<T>& sums = key_sums.matrix;
  const Range features = step.features;
  const std::int64_t distance = sums.feature_distance;
  T* const first = sums.at(step.keys.begin, features.begin);
  const std::int64_t stride = sums.row_distance;
  const std::span<const std::int32_t> gathered = map_.gathered_keys();
  const auto row_of = [gathered](std::int64_t key) -> std::int64_t {
    return gathered.empty() ? key : gathered[static_cast<std::size_t>(key)];
  };
  if (!map_.is_dense() && distance == 1 && gathered.empty() && all_pairs_count(rows)) {
    kernels_.pairs_to_keys(map_.pairs(), features.size(), alpha, tile, rows.rows(features), {first, stride});
    return;
  }
  const std::int64_t product_stride = round_up(features.size(), kPaddedElements);
  const auto add_product = [&] {
    for (std::int64_t key = 0; key < map_.keys(); ++key) {
      add_scaled<T>(features.size(), T{1}, product + key * product_stride, 1, first + row_of(key) * stride, distance);
    }
  };
  if (!map_.is_dense() && !gathered.empty() && all_pairs_count(rows)) {
    std::fill_n(product, map_.keys() * product_stride, T{0});
    kernels_.pairs_to_keys(map_.pairs(), features.size(), alpha, tile, rows.rows(features), {product, product_stride});
    return add_product();
  }
  if (dense) {
    multiply_columns(
        alpha, tile, rows, features,
        in_place ? kernels::FeatureRows<T>{first, stride} : kernels::FeatureRows<T>{product, product_stride},
        in_place && !begins);
    if (!in_place) add_product();
    return;
  }
  const kernels::FeatureRows<const T> queries = rows.rows(features);
  for_each_pair(tile, [&](std::int64_t query, std::int64_t key, std::int64_t at) {
    add_scaled<T>(features.size(), alpha * tile[at], queries.data + query * queries.stride, 1,
                  first + row_of(key) * stride, distance);
  });
}

template <class Storage>
void Executor<Storage>::add_output_part(std::int64_t rows) {
  begin_sums(output_, rows);
  const std::int64_t features = output_.features.size();
  for (std::int64_t i = 0; i < rows; ++i) {
    T& maximum = scratch_.row_maximum[i];
    T& sum = scratch_.row_sum[i];
    const T most = std::max(maximum, maximum_part_[i]);
    if (most == -kInfinity<T>) continue;  // no pair yet
    const T kept = std::exp(maximum - most);
    const T added = std::exp(maximum_part_[i] - most);
    T* const output = output_.at(i, output_.features.begin);
    kernels_.scale(features, kept, output);
    kernels_.axpy(features, added, row_part_ + i * output_.stride(), output);
    sum = sum * kept + sum_part_[i] * added;
    maximum = most;
  }
}

template <class Storage>
void Executor<Storage>::add_query_part(std::int64_t rows) {
  begin_sums(grad_query_, rows);
  kernels_.axpy(rows * grad_query_.stride(), T{1}, row_part_, grad_query_.values);
}

template <class Storage>
void Executor<Storage>::finish_rows(std::int64_t rows) {
  kernels_.finish_rows(round_up(rows, kPaddedElements), scratch_.row_maximum, scratch_.row_sum, scratch_.lse,
                       scratch_.rescale);
}

template <class Storage>
void Executor<Storage>::finish_output(const Step& step) {
  finish_rows(step.rows.size());
  settle(output_, step.rows.size());
  for (std::int64_t i = 0; i < step.rows.size(); ++i) {
    T* const output = output_.at(i, output_.features.begin);
    if (scratch_.row_sum[i] == T{0}) {
      std::fill_n(output, output_.features.size(), T{0});
    } else {
      kernels_.scale(output_.features.size(), scratch_.rescale[i], output);
    }
  }
  if (!plan_.product(Product::forward).rows_pass) return;
  write(output_, tensors_.output, {Operand::output, step.head, step.rows, output_.features});
  write_column(scratch_.lse, tensors_.lse, step.head, step.rows);
}

template <class Storage>
void Executor<Storage>::compute_delta(const Step& step) {
  const Range features{0, plan_.problem.value_dim};
  const kernels::FeatureRows<const T> grads = grad_output_.rows(features);
  const kernels::FeatureRows<const T> outputs = result_output_.rows(features);
  for (std::int64_t i = 0; i < step.rows.size(); ++i) {
    const T grad_lse = scratch_.delta[i];
    scratch_.delta[i] =
        kernels_.dot(features.size(), grads.data + i * grads.stride, outputs.data + i * outputs.stride) - grad_lse;
  }
  doubt(scratch_.delta, step.rows.size());
}

template <class Storage>
void Executor<Storage>::compute_probabilities() {
  if (map_.is_dense()) {
    kernels_.probabilities(map_.dense(scratch_.score), scratch_.shift);
  } else {
    kernels_.pair_probabilities(map_.pairs(), scratch_.score, scratch_.shift);
  }
}

template <class Storage>
void Executor<Storage>::compute_grad_scores() {
  if (map_.is_dense()) {
    kernels_.grad_scores(map_.dense(scratch_.grad_score), scratch_.score, scratch_.shift, scratch_.delta, grad_scale());
  } else {
    kernels_.pair_grad_scores(map_.pairs(), scratch_.grad_score, scratch_.score, scratch_.shift, scratch_.delta,
                              grad_scale());
  }
  if (terms_.change_scores()) terms_.finish_gradients(map_, scratch_.slope, scratch_.grad_score);
}

template class Executor<float>;
template class Executor<double>;
template class Executor<bfloat16>;
template class Executor<float16>;

}  // namespace cobble::detail
