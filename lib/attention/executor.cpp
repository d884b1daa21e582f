#include "attention/executor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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
void write_rows(const T* from, std::int64_t stride, const TensorView<T>& tensor, const Head& head, Range rows) {
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    T* to = tensor.row(head.batch, head.query, rows.begin + i);
    for (std::int64_t f = 0; f < tensor.shape().features; ++f) to[f * tensor.strides().features] = from[i * stride + f];
  }
}

template <class T>
void zero_rows(const TensorView<T>& tensor, const Head& head, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    T* to = tensor.row(head.batch, head.key_value, row);
    for (std::int64_t f = 0; f < tensor.shape().features; ++f) to[f * tensor.strides().features] = T{0};
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
      scale_(static_cast<T>(*plan.problem.scale)) {
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
}

template <class T>
void Executor<T>::set_tile(const Block& block) {
  runs_.assign(plan_.patterns.at(block.head.batch, block.head.query), block.rows, block.columns, block.pairs,
               block.kind);
  score_ = tensors_.score_store != nullptr ? tensors_.score_store + block.stored_at : scratch_.score;
  grad_score_ = tensors_.score_store != nullptr ? tensors_.grad_score_store + block.stored_at : scratch_.grad_score;
}

template <class T>
void Executor<T>::load(const Block& block) {
  const Head& head = block.head;
  const Range rows = block.rows;
  switch (block.operand) {
    case Operand::query: query_.assign(tensors_.query, head.batch, head.query, rows, scratch_.query); break;
    case Operand::key: key_.assign(tensors_.key, head.batch, head.key_value, rows, scratch_.key); break;
    case Operand::value: value_.assign(tensors_.value, head.batch, head.key_value, rows, scratch_.value); break;
    case Operand::output: output_.assign(tensors_.result_output, head.batch, head.query, rows, scratch_.output); break;
    case Operand::grad_output:
      grad_output_.assign(tensors_.grad_output, head.batch, head.query, rows, scratch_.grad_output);
      break;
    case Operand::lse: copy_column(tensors_.result_lse, head, rows, scratch_.lse); break;
    case Operand::delta: copy_column<T>(tensors_.delta, head, rows, scratch_.delta); break;
    case Operand::grad_lse:
      if (tensors_.grad_lse.data() != nullptr) {
        copy_column(tensors_.grad_lse, head, rows, scratch_.delta);
      } else {
        std::fill_n(scratch_.delta, rows.size(), T{0});
      }
      break;
    case Operand::score: set_tile(block); break;
    case Operand::grad_score:  // lies where its score's tile does
    case Operand::grad_key:    // summed up in place
    case Operand::grad_value:
    case Operand::grad_query:
    case Operand::row_maximum:
    case Operand::row_sum: break;
  }
}

template <class T>
void Executor<T>::create(const Block& block) {
  const std::int64_t rows = block.rows.size();
  switch (block.operand) {
    case Operand::output:
      std::fill_n(scratch_.output, rows * round_up(plan_.problem.value_dim, kPaddedElements), T{0});
      break;
    case Operand::grad_query:
      std::fill_n(scratch_.grad_query, rows * round_up(plan_.problem.head_dim, kPaddedElements), T{0});
      break;
    case Operand::row_maximum: std::fill_n(scratch_.row_maximum, rows, -kInfinity<T>); break;
    case Operand::row_sum: std::fill_n(scratch_.row_sum, rows, T{0}); break;
    case Operand::grad_key: zero_rows(tensors_.grad_key, block.head, block.rows); break;
    case Operand::grad_value: zero_rows(tensors_.grad_value, block.head, block.rows); break;
    case Operand::score:
    case Operand::grad_score: set_tile(block); break;
    case Operand::query:
    case Operand::key:
    case Operand::value:
    case Operand::lse:
    case Operand::grad_output:
    case Operand::grad_lse:
    case Operand::delta: break;
  }
}

template <class T>
void Executor<T>::store(const Block& block) {
  switch (block.operand) {
    case Operand::output:
      write_rows<T>(scratch_.output, round_up(plan_.problem.value_dim, kPaddedElements), tensors_.output, block.head,
                    block.rows);
      break;
    case Operand::grad_query:
      write_rows<T>(scratch_.grad_query, round_up(plan_.problem.head_dim, kPaddedElements), tensors_.grad_query,
                    block.head, block.rows);
      break;
    case Operand::lse: write_column<T>(scratch_.lse, tensors_.lse, block.head, block.rows); break;
    case Operand::delta: write_column<T>(scratch_.delta, tensors_.delta, block.head, block.rows); break;
    default: break;  // already where it belongs
  }
}

template <class T>
void Executor<T>::drop(const Block&) {}

template <class T>
void Executor<T>::compute(const Step& step) {
  switch (step.operation) {
    case Operation::scores: return compute_scores(step);
    case Operation::online_softmax: return update_softmax(step);
    case Operation::accumulate_output: return accumulate_output(step);
    case Operation::finish_output: return finish_output(step);
    case Operation::delta: return compute_delta(step);
    case Operation::probabilities: return compute_probabilities(step);
    case Operation::grad_probabilities: return compute_grad_probabilities();
    case Operation::grad_scores: return compute_grad_scores(step);
    case Operation::grad_query: return accumulate_grad_query(step);
    case Operation::grad_key:
      return add_to_columns(scale_, grad_score_, query_, plan_.problem.head_dim, step.kind, scratch_.product_key,
                            tensors_.grad_key, step);
    case Operation::grad_value:
      return add_to_columns(T{1}, score_, grad_output_, plan_.problem.value_dim, step.kind, scratch_.product_value,
                            tensors_.grad_value, step);
  }
}

template <class T>
void Executor<T>::compute_scores(const Step&) {
  multiply_pairs(scale_, query_, key_, plan_.problem.head_dim, score_);
}

template <class T>
void Executor<T>::compute_grad_probabilities() {
  multiply_pairs(T{1}, grad_output_, value_, plan_.problem.value_dim, grad_score_);
}

template <class T>
void Executor<T>::multiply_pairs(T alpha, Panel<T>& rows, Panel<T>& columns, std::int64_t features, T* tile) {
  if (!runs_.layout().compact) {
    kernels_.multiply_transposed(runs_.rows(), runs_.keys(), features, alpha, rows.packed(), rows.stride(),
                                 columns.packed(), columns.stride(), tile, runs_.layout().row_stride);
    return;
  }
  for (std::int64_t i = 0; i < runs_.rows(); ++i) {
    for (const TileRuns::Run& run : runs_.row(i)) {
      const T* const row = rows.row(i);
      for (std::int64_t k = 0; k < run.size; ++k) {
        tile[run.at + k] = alpha * kernels_.dot(features, row, columns.row(run.begin + k));
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
  const std::int64_t value_dim = plan_.problem.value_dim;
  const std::int64_t stride = round_up(value_dim, kPaddedElements);
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
    if (rescale != T{1}) kernels_.scale(value_dim, rescale, scratch_.output + i * stride);
  }
}

template <class T>
bool Executor<T>::may_multiply_densely(TileKind kind, Panel<T>& operand) const {
  // Outside the pattern a dense tile holds 0, and 0 times what is not finite is NaN.
  return !runs_.layout().compact && (kind == TileKind::full || operand.all_finite());
}

template <class T>
void Executor<T>::add_to_rows(T alpha, const T* tile, Panel<T>& columns, std::int64_t features, TileKind kind, T* sums,
                              std::int64_t stride) {
  if (may_multiply_densely(kind, columns)) {
    kernels_.add_product(runs_.rows(), features, runs_.keys(), alpha, tile, runs_.layout().row_stride, columns.packed(),
                         columns.stride(), sums, stride);
    return;
  }
  for (std::int64_t i = 0; i < runs_.rows(); ++i) {
    for (const TileRuns::Run& run : runs_.row(i)) {
      for (std::int64_t k = 0; k < run.size; ++k) {
        kernels_.axpy(features, alpha * tile[run.at + k], columns.row(run.begin + k), sums + i * stride);
      }
    }
  }
}

template <class T>
void Executor<T>::add_to_columns(T alpha, const T* tile, Panel<T>& rows, std::int64_t features, TileKind kind,
                                 T* product, const TensorView<T>& sums, const Step& step) {
  const std::int64_t distance = sums.strides().features;
  const auto sum_row = [&](std::int64_t column) {
    return sums.row(step.head.batch, step.head.key_value, step.keys.begin + column);
  };
  if (may_multiply_densely(kind, rows)) {
    kernels_.transposed_multiply(runs_.keys(), features, runs_.rows(), alpha, tile, runs_.layout().row_stride,
                                 rows.packed(), rows.stride(), product, rows.stride());
    for (std::int64_t j = 0; j < runs_.keys(); ++j) {
      add_to_row(kernels_, features, T{1}, product + j * rows.stride(), sum_row(j), distance);
    }
    return;
  }
  for (std::int64_t i = 0; i < runs_.rows(); ++i) {
    for (const TileRuns::Run& run : runs_.row(i)) {
      for (std::int64_t k = 0; k < run.size; ++k) {
        add_to_row(kernels_, features, alpha * tile[run.at + k], rows.row(i), sum_row(run.begin + k), distance);
      }
    }
  }
}

template <class T>
void Executor<T>::accumulate_output(const Step& step) {
  add_to_rows(T{1}, score_, value_, plan_.problem.value_dim, step.kind, scratch_.output,
              round_up(plan_.problem.value_dim, kPaddedElements));
}

template <class T>
void Executor<T>::finish_output(const Step& step) {
  const std::int64_t value_dim = plan_.problem.value_dim;
  const std::int64_t stride = round_up(value_dim, kPaddedElements);
  for (std::int64_t i = 0; i < step.rows.size(); ++i) {
    T* const output = scratch_.output + i * stride;
    const T sum = scratch_.row_sum[i];
    if (sum == T{0}) {
      std::fill_n(output, value_dim, T{0});
      scratch_.lse[i] = -kInfinity<T>;
      continue;
    }
    for (std::int64_t f = 0; f < value_dim; ++f) output[f] /= sum;
    scratch_.lse[i] = scratch_.row_maximum[i] + std::log(sum);
  }
}

template <class T>
void Executor<T>::compute_delta(const Step& step) {
  for (std::int64_t i = 0; i < step.rows.size(); ++i) {
    const T grad_lse = scratch_.delta[i];
    scratch_.delta[i] = kernels_.dot(plan_.problem.value_dim, grad_output_.row(i), output_.row(i)) - grad_lse;
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

template <class T>
void Executor<T>::accumulate_grad_query(const Step& step) {
  add_to_rows(scale_, grad_score_, key_, plan_.problem.head_dim, step.kind, scratch_.grad_query,
              round_up(plan_.problem.head_dim, kPaddedElements));
}

template class Executor<float>;
template class Executor<double>;

}  // namespace cobble::detail
