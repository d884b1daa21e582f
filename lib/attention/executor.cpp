#include "attention/executor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pattern/pattern_node.hpp"

namespace cobble::detail {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

/// Copies one value a row between a tensor of 1 feature and contiguous memory.
template <class T>
void copy_column(const TensorView<const T>& tensor, const Head& head, Range rows, T* to) {
  for (std::int64_t i = 0; i < rows.size(); ++i) to[i] = *tensor.row(head.batch, head.query, rows.begin + i);
}

template <class T>
void write_column(const T* from, const TensorView<T>& tensor, const Head& head, Range rows) {
  for (std::int64_t i = 0; i < rows.size(); ++i) *tensor.row(head.batch, head.query, rows.begin + i) = from[i];
}

template <class T>
void zero_keys(const TensorView<T>& tensor, const Block& block) {
  for (std::int64_t row = block.rows.begin; row < block.rows.end; ++row) {
    T* const to = tensor.row(block.head.batch, block.head.key_value, row);
    for (std::int64_t f = block.columns.begin; f < block.columns.end; ++f) to[f * tensor.strides().features] = T{0};
  }
}

/// to += alpha from, for a row of the caller's memory.
template <class T>
void add_to_row(const kernels::TileKernels<T>& kernels, std::int64_t features, T alpha, const T* from, T* to,
                std::int64_t distance) {
  if (distance == 1) return kernels.axpy(features, alpha, from, to);
  for (std::int64_t f = 0; f < features; ++f) to[f * distance] += alpha * from[f];
}

}  // namespace

template <class T>
Executor<T>::Executor(const PlanData& plan, const PassTensors<T>& tensors, T* scratch)
    : plan_(plan),
      tensors_(tensors),
      kernels_(kernels::tile_kernels<T>()),
      scale_(static_cast<T>(*plan.problem.scale)),
      materialized_(plan.schedule == Schedule::materialize) {
  const ScratchSizes sizes = scratch_sizes(plan);
  const auto take = [&scratch](std::int64_t size) {
    T* const begin = scratch;
    scratch += size;
    return begin;
  };
  scratch_.query = take(sizes.row_panel_features);
  scratch_.grad_query = take(sizes.row_panel_features);
  scratch_.output = take(sizes.row_panel_value_features);
  scratch_.grad_output = take(sizes.row_panel_value_features);
  scratch_.key = take(sizes.column_panel_features);
  scratch_.product_key = take(sizes.column_panel_features);
  scratch_.value = take(sizes.column_panel_value_features);
  scratch_.product_value = take(sizes.column_panel_value_features);
  scratch_.row_maximum = take(sizes.row_panel);
  scratch_.row_sum = take(sizes.row_panel);
  scratch_.lse = take(sizes.row_panel);
  scratch_.delta = take(sizes.row_panel);
  scratch_.score = take(sizes.tile);
  scratch_.grad_score = take(sizes.tile);
  output_ = {scratch_.output, {}};
  grad_query_ = {scratch_.grad_query, {}};
}

template <class T>
void Executor<T>::set_tile(const Block& block) {
  const Pattern& pattern = plan_.patterns.at(block.head.batch, block.head.query);
  runs_.assign(pattern, block.rows, block.columns, block.pairs, block.kind);
  const bool in_store = tensors_.score_store != nullptr && !materialized_;
  score_ = in_store ? tensors_.score_store + block.stored_at : scratch_.score;
  grad_score_ = in_store ? tensors_.grad_score_store + block.stored_at : scratch_.grad_score;
}

template <class T>
void Executor<T>::copy_pairs(const Block& block, T* tile, T* store, bool to_store) {
  const std::vector<std::int64_t>& offsets = plan_.pair_offsets[plan_.pattern_index(block.head)];
  const PatternNode& node = plan_.patterns.at(block.head.batch, block.head.query).node();
  for (std::int64_t i = 0; i < runs_.rows(); ++i) {
    if (!to_store) clear_gaps(i, tile);
    if (runs_.row(i).empty()) continue;
    const std::int64_t row = block.rows.begin + i;
    T* stored = store + offsets[static_cast<std::size_t>(row)] +
                node.pairs_before(static_cast<std::int32_t>(row), static_cast<std::int32_t>(block.columns.begin));
    for (const TileRuns::Run& run : runs_.row(i)) {
      T* const values = tile + run.at;
      if (to_store) {
        std::copy_n(values, run.size, stored);
      } else {
        std::copy_n(stored, run.size, values);
      }
      stored += run.size;
    }
  }
}

template <class T>
void Executor<T>::init_statistics(const Block& block) {
  const bool maximum = block.operand == Operand::row_maximum;
  std::fill_n(maximum ? scratch_.row_maximum : scratch_.row_sum, block.rows.size(), maximum ? -kInfinity<T> : T{0});
}

template <class T>
void Executor<T>::load(const Block& block) {
  const Head& head = block.head;
  const Range rows = block.rows;
  const Range features = block.columns;
  switch (block.operand) {
    case Operand::query: return query_.assign(tensors_.query, head.batch, head.query, rows, features, scratch_.query);
    case Operand::key: return key_.assign(tensors_.key, head.batch, head.key_value, rows, features, scratch_.key);
    case Operand::value:
      return value_.assign(tensors_.value, head.batch, head.key_value, rows, features, scratch_.value);
    case Operand::output:
      return result_output_.assign(tensors_.result_output, head.batch, head.query, rows, features, scratch_.output);
    case Operand::grad_output:
      return grad_output_.assign(tensors_.grad_output, head.batch, head.query, rows, features, scratch_.grad_output);
    case Operand::lse:
      return copy_column<T>(tensors_.result_lse.data() != nullptr ? tensors_.result_lse : tensors_.lse, head, rows,
                            scratch_.lse);
    case Operand::delta: return copy_column<T>(tensors_.delta, head, rows, scratch_.delta);
    case Operand::score:
      set_tile(block);
      if (materialized_) copy_pairs(block, score_, tensors_.score_store, false);
      return;
    case Operand::grad_score:  // not materialized, it lies where its score's tile does
      if (!materialized_) return;
      set_tile(block);
      return copy_pairs(block, grad_score_, tensors_.grad_score_store, false);
    case Operand::grad_score_weights:
    case Operand::grad_value_weights: weight_part_ = weight_slice(block); return;
    case Operand::query_input:  // read in place
    case Operand::value_input:
    case Operand::score_weights:
    case Operand::value_weights:
    case Operand::grad_key:  // summed up in place
    case Operand::grad_value:
    case Operand::grad_query:
    case Operand::row_maximum:  // stay in scratch memory for the whole task
    case Operand::row_sum: return;
  }
}

template <class T>
void Executor<T>::create(const Block& block) {
  const std::int64_t rows = block.rows.size();
  switch (block.operand) {
    case Operand::output:
      output_.features = block.columns;
      std::fill_n(output_.values, rows * output_.stride(), T{0});
      return;
    case Operand::grad_query:
      grad_query_.features = block.columns;
      std::fill_n(grad_query_.values, rows * grad_query_.stride(), T{0});
      return;
    case Operand::row_maximum:
    case Operand::row_sum: return init_statistics(block);
    case Operand::grad_key: return zero_keys(tensors_.grad_key, block);
    case Operand::grad_value: return zero_keys(tensors_.grad_value, block);
    case Operand::score:
    case Operand::grad_score: return set_tile(block);
    case Operand::delta:  // begins as grad_lse
      if (tensors_.grad_lse.data() != nullptr)
        return copy_column(tensors_.grad_lse, block.head, block.rows, scratch_.delta);
      std::fill_n(scratch_.delta, rows, T{0});
      return;
    case Operand::query:
      return set_zero(head_matrix(tensors_.projected_query, block.head.batch, block.head.query), block.rows,
                      block.columns);
    case Operand::value:
      return set_zero(head_matrix(tensors_.projected_value, block.head.batch, block.head.key_value), block.rows,
                      block.columns);
    case Operand::grad_score_weights:
    case Operand::grad_value_weights: return set_zero(weight_slice(block), block.rows, block.columns);
    case Operand::query_input:
    case Operand::value_input:
    case Operand::score_weights:
    case Operand::value_weights:
    case Operand::key:
    case Operand::lse:
    case Operand::grad_output: return;
  }
}

template <class T>
HeadMatrix<T> Executor<T>::weight_slice(const Block& block) const {
  const bool scores = block.operand == Operand::grad_score_weights;
  const std::int64_t head = scores ? block.head.query : block.head.key_value;
  if (block.slice == 0) {
    return head_matrix(scores ? tensors_.grad_score_weights : tensors_.grad_value_weights, block.head.batch, head);
  }
  const TensorView<T>& slices = scores ? tensors_.score_weight_slices : tensors_.value_weight_slices;
  const std::int64_t heads = scores ? plan_.problem.query_heads : plan_.problem.key_value_heads;
  return head_matrix(slices, block.head.batch * heads + head, block.slice - 1);
}

template <class T>
void Executor<T>::add_slice(const Step& step) {
  for (std::int64_t row = step.rows.begin; row < step.rows.end; ++row) {
    add_scaled<T>(step.features.size(), T{1}, weight_part_.at(row, 0), weight_part_.feature_distance,
                  weight_sums_.at(row, 0), weight_sums_.feature_distance);
  }
}

template <class T>
void Executor<T>::stream(const Block& block, std::int64_t, Stream direction) {
  const bool weights = block.operand == Operand::grad_score_weights || block.operand == Operand::grad_value_weights;
  if (weights && direction != Stream::in) weight_sums_ = weight_slice(block);
  if (direction == Stream::out) {
    create(block);
  } else if (!weights || direction == Stream::in) {
    load(block);
  }
}

template <class T>
void Executor<T>::write(const Sums& sums, const TensorView<T>& tensor, const Block& block) const {
  const std::int64_t distance = tensor.strides().features;
  for (std::int64_t i = 0; i < block.rows.size(); ++i) {
    T* const to = tensor.row(block.head.batch, block.head.query, block.rows.begin + i);
    const T* const from = sums.at(i, 0);
    for (std::int64_t f = block.columns.begin; f < block.columns.end; ++f) to[f * distance] = from[f];
  }
}

template <class T>
void Executor<T>::store(const Block& block) {
  switch (block.operand) {
    case Operand::output: return write(output_, tensors_.output, block);
    case Operand::grad_query: return write(grad_query_, tensors_.grad_query, block);
    case Operand::lse: return write_column<T>(scratch_.lse, tensors_.lse, block.head, block.rows);
    case Operand::delta: return write_column<T>(scratch_.delta, tensors_.delta, block.head, block.rows);
    case Operand::score:
      if (materialized_) copy_pairs(block, score_, tensors_.score_store, true);
      return;
    case Operand::grad_score:
      if (materialized_) copy_pairs(block, grad_score_, tensors_.grad_score_store, true);
      return;
    default: return;  // already where it belongs
  }
}

template <class T>
void Executor<T>::drop(const Block&) {}

template <class T>
void Executor<T>::compute(const Step& step) {
  switch (step.operation) {
    case Operation::scores: return multiply_pairs(scale_, query_, key_, step.features, score_);
    case Operation::grad_probabilities: return multiply_pairs(T{1}, grad_output_, value_, step.features, grad_score_);
    case Operation::online_softmax: return update_softmax(step);
    case Operation::row_statistics: return update_statistics(step);
    case Operation::accumulate_output: return add_to_rows(T{1}, score_, value_, step, output_);
    case Operation::finish_output: return finish_output(step);
    case Operation::finish_lse:
      for (std::int64_t i = 0; i < step.rows.size(); ++i) scratch_.lse[i] = finished_lse(i);
      return write_column<T>(scratch_.lse, tensors_.lse, step.head, step.rows);
    case Operation::delta: return compute_delta(step);
    case Operation::probabilities: return compute_probabilities(step);
    case Operation::grad_scores: return compute_grad_scores(step);
    case Operation::grad_query: return add_to_rows(scale_, grad_score_, key_, step, grad_query_);
    case Operation::grad_key:
      return add_to_columns(scale_, grad_score_, query_, step, scratch_.product_key, tensors_.grad_key);
    case Operation::grad_value:
      return add_to_columns(T{1}, score_, grad_output_, step, scratch_.product_value, tensors_.grad_value);
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
      const T* const origin = grad_query_.at(-step.rows.begin, 0);  // so that rows count from the tensor's first
      return add_fold<T>(head_matrix(tensors_.query_input, step.head.batch, step.head.query),
                         {origin, grad_query_.stride(), 1}, weight_sums_, step.rows, plan_.problem.head_dim,
                         step.features);
    }
    case Operation::fold_value: {
      const HeadMatrix<T> sums = head_matrix(tensors_.grad_value, step.head.batch, step.head.key_value);
      return add_fold<T>(head_matrix(tensors_.value_input, step.head.batch, step.head.key_value),
                         {sums.data, sums.row_distance, sums.feature_distance}, weight_sums_, step.keys,
                         plan_.problem.head_dim, step.features);
    }
    case Operation::add_score_slice:
    case Operation::add_value_slice: return add_slice(step);
  }
}

template <class T>
void Executor<T>::multiply_pairs(T alpha, Panel<T>& rows, Panel<T>& columns, Range features, T* tile) {
  const bool add = features.begin > 0;
  if (!runs_.layout().compact) {
    kernels_.multiply_transposed(runs_.rows(), runs_.keys(), features.size(), alpha, rows.packed(features),
                                 rows.stride(), columns.packed(features), columns.stride(), tile,
                                 runs_.layout().row_stride, add);
    return;
  }
  for (std::int64_t i = 0; i < runs_.rows(); ++i) {
    for (const TileRuns::Run& run : runs_.row(i)) {
      const T* const row = rows.row(i, features);
      for (std::int64_t k = 0; k < run.size; ++k) {
        const T product = alpha * kernels_.dot(features.size(), row, columns.row(run.begin + k, features));
        tile[run.at + k] = add ? tile[run.at + k] + product : product;
      }
    }
  }
}

template <class T>
void Executor<T>::clear_gaps(std::int64_t row, T* tile) const {
  if (runs_.layout().compact) return;
  T* const values = tile + row * runs_.layout().row_stride;
  std::int64_t filled = 0;
  for (const TileRuns::Run& run : runs_.row(row)) {
    std::fill(values + filled, values + run.begin, T{0});
    filled = run.begin + run.size;
  }
  std::fill(values + filled, values + runs_.keys(), T{0});
}

template <class T>
void Executor<T>::clear_row(std::int64_t row, T* tile) const {
  for (const TileRuns::Run& run : runs_.row(row)) std::fill_n(tile + run.at, run.size, T{0});
}

template <class T>
void Executor<T>::update_softmax(const Step& step) {
  for (std::int64_t i = 0; i < step.rows.size(); ++i) {
    clear_gaps(i, score_);
    const auto row_runs = runs_.row(i);
    if (row_runs.empty()) continue;
    T maximum = scratch_.row_maximum[i];
    for (const TileRuns::Run& run : row_runs) {
      maximum = std::max(maximum, kernels_.maximum(run.size, score_ + run.at));
    }
    // A row whose scores are all -infinity so far has nothing to be measured against: exp(-inf - -inf) is no number.
    const T shift = maximum == -kInfinity<T> ? T{0} : maximum;
    T rescale = scratch_.row_maximum[i] - shift;
    kernels_.exp_shifted(1, T{0}, &rescale);
    T sum = 0;
    for (const TileRuns::Run& run : row_runs) {
      kernels_.exp_shifted(run.size, shift, score_ + run.at);
      sum += kernels_.sum(run.size, score_ + run.at);
    }
    scratch_.row_maximum[i] = maximum;
    scratch_.row_sum[i] = scratch_.row_sum[i] * rescale + sum;
    if (rescale != T{1}) kernels_.scale(output_.features.size(), rescale, output_.at(i, output_.features.begin));
  }
}

template <class T>
void Executor<T>::update_statistics(const Step& step) {
  // The scores are stored as they are; what their exponentials add up to is computed on the tile for grad_score.
  for (std::int64_t i = 0; i < step.rows.size(); ++i) {
    const auto row_runs = runs_.row(i);
    if (row_runs.empty()) continue;
    T maximum = scratch_.row_maximum[i];
    for (const TileRuns::Run& run : row_runs) {
      maximum = std::max(maximum, kernels_.maximum(run.size, score_ + run.at));
    }
    const T shift = maximum == -kInfinity<T> ? T{0} : maximum;
    T sum = 0;
    for (const TileRuns::Run& run : row_runs) {
      T* const exponentials = grad_score_ + run.at;
      std::copy_n(score_ + run.at, run.size, exponentials);
      kernels_.exp_shifted(run.size, shift, exponentials);
      sum += kernels_.sum(run.size, exponentials);
    }
    T rescale = scratch_.row_maximum[i] - shift;
    kernels_.exp_shifted(1, T{0}, &rescale);
    scratch_.row_maximum[i] = maximum;
    scratch_.row_sum[i] = scratch_.row_sum[i] * rescale + sum;
  }
}

template <class T>
bool Executor<T>::may_multiply_densely(TileKind kind, Panel<T>& operand) const {
  // Outside the pattern a dense tile holds 0, and 0 times what is not finite is NaN.
  return !runs_.layout().compact && (kind == TileKind::full || operand.all_finite());
}

template <class T>
void Executor<T>::add_to_rows(T alpha, const T* tile, Panel<T>& columns, const Step& step, const Sums& sums) {
  const Range features = step.features;
  if (may_multiply_densely(step.kind, columns)) {
    kernels_.add_product(runs_.rows(), features.size(), runs_.keys(), alpha, tile, runs_.layout().row_stride,
                         columns.packed(features), columns.stride(), sums.at(0, features.begin), sums.stride());
    return;
  }
  for (std::int64_t i = 0; i < runs_.rows(); ++i) {
    for (const TileRuns::Run& run : runs_.row(i)) {
      for (std::int64_t k = 0; k < run.size; ++k) {
        kernels_.axpy(features.size(), alpha * tile[run.at + k], columns.row(run.begin + k, features),
                      sums.at(i, features.begin));
      }
    }
  }
}

template <class T>
void Executor<T>::add_to_columns(T alpha, const T* tile, Panel<T>& rows, const Step& step, T* product,
                                 const TensorView<T>& sums) {
  const Range features = step.features;
  const std::int64_t distance = sums.strides().features;
  const auto sum_row = [&](std::int64_t column) {
    return sums.row(step.head.batch, step.head.key_value, step.keys.begin + column) + features.begin * distance;
  };
  if (may_multiply_densely(step.kind, rows)) {
    kernels_.transposed_multiply(runs_.keys(), features.size(), runs_.rows(), alpha, tile, runs_.layout().row_stride,
                                 rows.packed(features), rows.stride(), product, rows.stride());
    for (std::int64_t j = 0; j < runs_.keys(); ++j) {
      add_to_row(kernels_, features.size(), T{1}, product + j * rows.stride(), sum_row(j), distance);
    }
    return;
  }
  for (std::int64_t i = 0; i < runs_.rows(); ++i) {
    for (const TileRuns::Run& run : runs_.row(i)) {
      for (std::int64_t k = 0; k < run.size; ++k) {
        add_to_row(kernels_, features.size(), alpha * tile[run.at + k], rows.row(i, features), sum_row(run.begin + k),
                   distance);
      }
    }
  }
}

template <class T>
T Executor<T>::finished_lse(std::int64_t row) const {
  const T sum = scratch_.row_sum[row];
  return sum == T{0} ? -kInfinity<T> : scratch_.row_maximum[row] + std::log(sum);
}

template <class T>
void Executor<T>::finish_output(const Step& step) {
  for (std::int64_t i = 0; i < step.rows.size(); ++i) {
    scratch_.lse[i] = finished_lse(i);
    T* const output = output_.at(i, output_.features.begin);
    const T sum = scratch_.row_sum[i];
    for (std::int64_t f = 0; f < output_.features.size(); ++f) output[f] = sum == T{0} ? T{0} : output[f] / sum;
  }
}

template <class T>
void Executor<T>::compute_delta(const Step& step) {
  const Range features{0, plan_.problem.value_dim};
  for (std::int64_t i = 0; i < step.rows.size(); ++i) {
    const T grad_lse = scratch_.delta[i];
    scratch_.delta[i] =
        kernels_.dot(features.size(), grad_output_.row(i, features), result_output_.row(i, features)) - grad_lse;
  }
}

template <class T>
void Executor<T>::compute_probabilities(const Step& step) {
  for (std::int64_t i = 0; i < step.rows.size(); ++i) {
    clear_gaps(i, score_);
    const T lse = scratch_.lse[i];
    if (lse == -kInfinity<T>) {
      clear_row(i, score_);
      continue;
    }
    for (const TileRuns::Run& run : runs_.row(i)) kernels_.exp_shifted(run.size, lse, score_ + run.at);
  }
}

template <class T>
void Executor<T>::compute_grad_scores(const Step& step) {
  for (std::int64_t i = 0; i < step.rows.size(); ++i) {
    clear_gaps(i, grad_score_);
    if (scratch_.lse[i] == -kInfinity<T>) {
      clear_row(i, grad_score_);
      continue;
    }
    const T delta = scratch_.delta[i];
    for (const TileRuns::Run& run : runs_.row(i)) {
      for (std::int64_t k = run.at; k < run.at + run.size; ++k) {
        grad_score_[k] = score_[k] * (grad_score_[k] - delta);
      }
    }
  }
}

template class Executor<float>;
template class Executor<double>;

}  // namespace cobble::detail
