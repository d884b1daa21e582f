#include "attention/executor.hpp"

#include <algorithm>
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

/// Whether a block is a part of sums over rows, which stands in a slot.
bool is_row_part(const Block& block) {
  if (block.slice == 0) return false;
  switch (block.operand) {
    case Operand::output:
    case Operand::row_maximum:
    case Operand::row_sum:
    case Operand::grad_query: return true;
    default: return false;
  }
}

}  // namespace

template <class Storage>
Executor<Storage>::Executor(const PlanData& plan, const PassTensors<Storage>& tensors, T* scratch)
    : plan_(plan),
      tensors_(tensors),
      kernels_(kernels::tile_kernels<T>()),
      scale_(static_cast<T>(*plan.problem.scale)),
      terms_(tensors.terms, plan.patterns.rows(), plan.patterns.columns()) {
  const ScratchSizes sizes = scratch_sizes(plan);
  const auto take = [&scratch](std::int64_t size) {
    T* const begin = scratch;
    scratch += size;
    return begin;
  };
  scratch_.query = take(sizes.row_panel_features);
  scratch_.query_transposed = take(sizes.transposed_features);
  scratch_.grad_query = take(sizes.row_panel_features);
  scratch_.output = take(sizes.row_panel_value_features);
  scratch_.grad_output = take(sizes.row_panel_value_features);
  scratch_.grad_output_transposed = take(sizes.transposed_value_features);
  // Of bfloat16, pairs of keys and copied keys stand side by side.
  const auto one_more_row = [](std::int64_t features) {
    return std::is_same_v<Storage, bfloat16> ? round_up(features, kPaddedElements) : 0;
  };
  scratch_.key = take(sizes.column_panel_features + one_more_row(plan.problem.head_dim));
  scratch_.product_key = take(sizes.column_panel_features);
  scratch_.value = take(sizes.column_panel_value_features + one_more_row(plan.problem.value_dim));
  scratch_.product_value = take(sizes.column_panel_value_features);
  for (T** statistic :
       {&scratch_.row_maximum, &scratch_.row_sum, &scratch_.lse, &scratch_.shift, &scratch_.delta, &scratch_.rescale}) {
    *statistic = take(sizes.row_panel);
  }
  scratch_.score = take(sizes.tile);
  scratch_.grad_score = take(sizes.tile);
  scratch_.slope = tensors.terms.slopes ? take(sizes.tile) : nullptr;
  scratch_.rounded =
      std::is_same_v<Storage, bfloat16> ? reinterpret_cast<std::uint32_t*>(take(plan.largest_tile)) : nullptr;
  output_ = {scratch_.output, {}};
  grad_query_ = {scratch_.grad_query, {}};
  if (tensors.compressed_key.sparse_products) grad_query_.transposed = take(sizes.transposed_features);
  if (tensors.compressed_value.sparse_products) output_.transposed = take(sizes.transposed_value_features);
}

template <class Storage>
void Executor<Storage>::set_tile(const Block& block) {
  const Pattern& pattern = plan_.patterns.at(block.head.batch, block.head.query);
  // Terms of scores look for keys where they stand. Of what is written out in full a list's keys alone are worth it.
  const auto copied = [](const CompressedOperand<T>& operand) {
    return operand.input != nullptr && !operand.listed_products;
  };
  const bool copies = copied(tensors_.compressed_key) || copied(tensors_.compressed_value);
  const TileForms gathered = terms_.change_scores() ? TileForms::gathered_lists : TileForms::gathered;
  const TileForms lists = copies ? TileForms::gathered_lists : TileForms::lists;
  const TileForms form = plan_.lists ? lists : plan_.gathers ? gathered : TileForms::tiles;
  map_.assign(pattern, block.rows, block.columns, block.tokens, block.pairs, block.kind, form);
  terms_.set_tile(block.head, block.rows, block.columns);
}

template <class Storage>
void Executor<Storage>::copy_pairs(const Block& block, T* tile, T* store, bool to_store) {
  const std::vector<std::int64_t>& offsets = plan_.pair_offsets[plan_.pattern_index(block.head)];
  const PatternNode& node = plan_.patterns.at(block.head.batch, block.head.query).node();
  if (!to_store && map_.is_dense()) std::fill_n(tile, map_.keys() * map_.stride(), T{0});
  for (std::int64_t i = 0; i < map_.rows(); ++i) {
    const std::int64_t row = block.rows.begin + i;
    T* stored = store + offsets[static_cast<std::size_t>(row)] +
                node.pairs_before(static_cast<std::int32_t>(row), static_cast<std::int32_t>(block.columns.begin));
    map_.for_each_key(i, [&](std::int64_t, std::int64_t at) {
      if (to_store) {
        *stored++ = tile[at];
      } else {
        tile[at] = *stored++;
      }
    });
  }
}

template <class Storage>
void Executor<Storage>::init_statistics(const Block& block) {
  // A sink is a pair that every row has met already, if in none of its parts.
  const T sink = block.slice > 0 ? -kInfinity<T> : terms_.sink(block.head);
  const bool maximum = block.operand == Operand::row_maximum;
  std::fill_n(maximum ? scratch_.row_maximum : scratch_.row_sum, round_up(block.rows.size(), kPaddedElements),
              maximum ? sink : static_cast<T>(sink == -kInfinity<T> ? 0 : 1));
}

template <class Storage>
void Executor<Storage>::load(const Block& block) {
  if (is_row_part(block)) return load_part(block);
  const Head& head = block.head;
  const Range rows = block.rows;
  const Range features = block.columns;
  const CompressedOperand<T>& query = tensors_.compressed_query;
  const CompressedOperand<T>& key = tensors_.compressed_key;
  const CompressedOperand<T>& value = tensors_.compressed_value;
  switch (block.operand) {
    case Operand::query:
      if (query.input != nullptr) {
        return query_.assign(*query.input, head.batch, head.query, rows, features, tensors_.finite.query,
                             scratch_.query, scratch_.query_transposed);
      }
      return query_.assign(tensors_.query, head.batch, head.query, rows, features, tensors_.finite.query,
                           scratch_.query, scratch_.query_transposed);
    case Operand::key:
      if (key.input != nullptr) {
        return key_.assign(*key.input, head.batch, head.key_value, rows, features, tensors_.finite.key, scratch_.key,
                           nullptr, map_.gathered_keys());
      }
      key_.assign(tensors_.key, head.batch, head.key_value, rows, features, tensors_.finite.key, scratch_.key);
      return key_.gather(map_.gathered_keys());
    case Operand::value:
      if (value.input != nullptr) {
        return value_.assign(*value.input, head.batch, head.key_value, rows, features, tensors_.finite.value,
                             scratch_.value, nullptr, map_.gathered_keys());
      }
      value_.assign(tensors_.value, head.batch, head.key_value, rows, features, tensors_.finite.value, scratch_.value);
      return value_.gather(map_.gathered_keys());
    case Operand::output:  // forward's is summed up in scratch memory
      if (tensors_.result_output.data() == nullptr) return;
      return result_output_.assign(tensors_.result_output, head.batch, head.query, rows, features, false,
                                   scratch_.output);
    case Operand::grad_output:
      return grad_output_.assign(tensors_.grad_output, head.batch, head.query, rows, features,
                                 tensors_.finite.grad_output, scratch_.grad_output, scratch_.grad_output_transposed);
    case Operand::lse:
      copy_column<T>(tensors_.result_lse.data() != nullptr ? tensors_.result_lse : tensors_.lse, head, rows,
                     scratch_.lse);
      return set_shift(rows.size());
    case Operand::delta: return copy_column<T>(tensors_.delta, head, rows, scratch_.delta);
    case Operand::score:
      set_tile(block);
      copy_pairs(block, scratch_.score, tensors_.score_store, false);
      if (tensors_.terms.slope_store != nullptr) copy_pairs(block, scratch_.slope, tensors_.terms.slope_store, false);
      return;
    case Operand::grad_score:
      set_tile(block);
      return copy_pairs(block, scratch_.grad_score, tensors_.grad_score_store, false);
    case Operand::grad_score_weights:
    case Operand::grad_value_weights: part_ = {weight_slice(block)}; return;
    case Operand::grad_key:
    case Operand::grad_value: named_key_sums(block.operand) = key_sums(block); return;
    case Operand::query_input:  // read in place
    case Operand::value_input:
    case Operand::score_weights:
    case Operand::value_weights:
    case Operand::grad_query:
    case Operand::row_maximum:  // stay in scratch memory for the whole task
    case Operand::row_sum: return;
  }
}

template <class Storage>
void Executor<Storage>::create(const Block& block) {
  const std::int64_t rows = block.rows.size();
  switch (block.operand) {
    case Operand::output: return create_sums(output_, block);
    case Operand::grad_query: return create_sums(grad_query_, block);
    case Operand::row_maximum:
    case Operand::row_sum: return init_statistics(block);
    case Operand::grad_key:
    case Operand::grad_value:
      name_new_key_sums(block);
      return begin_key_sums(named_key_sums(block.operand), block.rows, block.columns);
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

template <class Storage>
auto Executor<Storage>::weight_slice(const Block& block) const -> HeadMatrix<T> {
  const bool scores = block.operand == Operand::grad_score_weights;
  const std::int64_t head = scores ? block.head.query : block.head.key_value;
  if (block.slice == 0) {
    return head_matrix(scores ? tensors_.grad_score_weights : tensors_.grad_value_weights, block.head.batch, head);
  }
  const TensorView<T>& slices = scores ? tensors_.score_weight_slices : tensors_.value_weight_slices;
  const std::int64_t heads = scores ? plan_.problem.query_heads : plan_.problem.key_value_heads;
  return head_matrix(slices, block.head.batch * heads + head, block.slice - 1);
}

template <class Storage>
auto Executor<Storage>::key_sums(const Block& block) const -> KeySums {
  const bool keys = block.operand == Operand::grad_key;
  const CompressedOperand<T>& operand = keys ? tensors_.compressed_key : tensors_.compressed_value;
  if (!operand.grad_values.empty()) return compressed_key_sums(operand, block);
  if (block.slice == 0) {
    return {head_matrix(keys ? tensors_.grad_key : tensors_.grad_value, block.head.batch, block.head.key_value)};
  }
  const std::int64_t width = plan_.column_range(Product::backward_rows, 0).size();
  const std::int64_t panel = plan_.key_panel(block.rows.begin);
  const std::int64_t features = keys ? plan_.problem.head_dim : plan_.problem.value_dim;
  const std::int64_t stride = round_up(features, kPaddedElements);
  const std::int64_t group = block.head.batch * plan_.problem.key_value_heads + block.head.key_value;
  const std::int64_t slot = plan_.slices(block.head).slot(block.slice, panel) - 1;
  T* const values = (keys ? tensors_.key_slots : tensors_.value_slots) +
                    (group * plan_.most_slots() + slot) * slot_values(plan_, features);
  return {{values - panel * width * stride, stride, 1}};  // so that rows count from the tensor's first
}

template <class Storage>
auto Executor<Storage>::named_key_sums(Operand operand) -> KeySums& {
  return operand == Operand::grad_key ? grad_key_ : grad_value_;
}

template <class Storage>
void Executor<Storage>::name_new_key_sums(const Block& block) {
  KeySums& sums = named_key_sums(block.operand);
  sums = key_sums(block);
  sums.begun = false;
}

template <class Storage>
void Executor<Storage>::create_sums(Sums& sums, const Block& block) {
  sums.features = block.columns;
  sums.begun = false;
  sums.transposed_stride = 0;
}

template <class Storage>
void Executor<Storage>::begin_sums(Sums& sums, std::int64_t rows) const {
  if (!sums.begun) std::fill_n(sums.values, rows * sums.stride(), T{0});
  sums.begun = true;
}

template <class Storage>
auto Executor<Storage>::row_slot(const Block& block) const -> T* {
  const bool query = block.operand == Operand::grad_query;
  const Product product = query ? Product::backward_rows : Product::forward;
  const std::int64_t head = block.head.batch * plan_.problem.query_heads + block.head.query;
  T* const slot =
      tensors_.row_slots + (head * plan_.most_row_slots(product) + block.slice - 1) * row_slot_values(plan_, product);
  if (query || block.operand == Operand::output) return slot;
  const std::int64_t rows = block.rows.size();
  T* const statistics = slot + rows * round_up(plan_.problem.value_dim, kPaddedElements);
  return block.operand == Operand::row_maximum ? statistics : statistics + rows;
}

template <class Storage>
void Executor<Storage>::store_part(const Block& block) {
  const std::int64_t rows = block.rows.size();
  switch (block.operand) {
    case Operand::output:
    case Operand::grad_query: {
      Sums& sums = block.operand == Operand::output ? output_ : grad_query_;
      settle(sums, rows);
      std::copy_n(sums.values, rows * sums.stride(), row_slot(block));
      return;
    }
    case Operand::row_maximum: std::copy_n(scratch_.row_maximum, rows, row_slot(block)); return;
    default: std::copy_n(scratch_.row_sum, rows, row_slot(block)); return;
  }
}

template <class Storage>
void Executor<Storage>::load_part(const Block& block) {
  const std::int64_t rows = block.rows.size();
  switch (block.operand) {
    case Operand::output:
    case Operand::grad_query: {
      Sums& sums = block.operand == Operand::output ? output_ : grad_query_;
      create_sums(sums, block);
      std::copy_n(row_slot(block), rows * sums.stride(), sums.values);
      sums.begun = true;
      return;
    }
    case Operand::row_maximum: std::copy_n(row_slot(block), rows, scratch_.row_maximum); return;
    default: std::copy_n(row_slot(block), rows, scratch_.row_sum); return;
  }
}

template <class Storage>
void Executor<Storage>::stream(const Block& block, std::int64_t, Stream direction) {
  if (is_row_part(block)) {
    switch (block.operand) {
      case Operand::row_maximum: maximum_part_ = row_slot(block); return;
      case Operand::row_sum: sum_part_ = row_slot(block); return;
      default: row_part_ = row_slot(block); return;
    }
  }
  const bool weights = block.operand == Operand::grad_score_weights || block.operand == Operand::grad_value_weights;
  const bool keys = block.operand == Operand::grad_key || block.operand == Operand::grad_value;
  if (weights && direction != Stream::in) weight_sums_ = {weight_slice(block)};
  if (keys && direction == Stream::in) {
    part_ = key_sums(block);
  } else if (keys && direction == Stream::out) {
    name_new_key_sums(block);
  } else if (direction == Stream::out) {
    create(block);
  } else if (!weights || direction == Stream::in) {
    load(block);
  }
}

template <class Storage>
void Executor<Storage>::doubt(const T* row, std::int64_t count) const {
  if (tensors_.doubtful == nullptr || kernels_.all_finite(count, row)) return;
  tensors_.doubtful->store(true, std::memory_order_relaxed);
}

template <class Storage>
void Executor<Storage>::write(const Sums& sums, const TensorView<Storage>& tensor, const Block& block) const {
  const std::int64_t distance = tensor.strides().features;
  const Range features = block.columns;
  for (std::int64_t i = 0; i < block.rows.size(); ++i) {
    doubt(sums.at(i, features.begin), features.size());
    Storage* const to = tensor.row(block.head.batch, block.head.query, block.rows.begin + i);
    convert(features.size(), sums.at(i, features.begin), 1, to + features.begin * distance, distance);
  }
}

template <class Storage>
void Executor<Storage>::write_column(const T* from, const TensorView<T>& tensor, const Head& head, Range rows) const {
  for (std::int64_t i = 0; i < rows.size(); ++i) *tensor.row(head.batch, head.query, rows.begin + i) = from[i];
}

template <class Storage>
void Executor<Storage>::store(const Block& block) {
  if (is_row_part(block)) return store_part(block);
  switch (block.operand) {
    case Operand::output: settle(output_, block.rows.size()); return write(output_, tensors_.output, block);
    case Operand::grad_query: return write_grad_query(block);
    case Operand::lse: return write_column(scratch_.lse, tensors_.lse, block.head, block.rows);
    case Operand::delta: return write_column(scratch_.delta, tensors_.delta, block.head, block.rows);
    case Operand::score:
      copy_pairs(block, scratch_.score, tensors_.score_store, true);
      if (tensors_.terms.slope_store != nullptr) copy_pairs(block, scratch_.slope, tensors_.terms.slope_store, true);
      return;
    case Operand::grad_score: return copy_pairs(block, scratch_.grad_score, tensors_.grad_score_store, true);
    default: return;  // already where it belongs
  }
}

template <class Storage>
void Executor<Storage>::drop(const Block& block) {
  const bool keys = block.operand == Operand::grad_key || block.operand == Operand::grad_value;
  if (keys) begin_key_sums(named_key_sums(block.operand), block.rows, block.columns);
}

template <class Storage>
void Executor<Storage>::expect(std::span<const Block> blocks) {
  ahead_.clear();
  const auto add = [this](const Block& block, const auto* data, std::int64_t row_distance,
                          std::int64_t feature_distance) {
    if (data == nullptr || feature_distance != 1) return;
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(*data));
    ahead_.add(data, block.rows.size(), block.columns.size() * kBytes, row_distance * kBytes);
  };
  const auto add_input = [&add](const Block& block, const TensorView<const Storage>& tensor, std::int64_t head) {
    if (tensor.data() == nullptr) return;
    add(block, tensor.row(block.head.batch, head, block.rows.begin) + block.columns.begin * tensor.strides().features,
        tensor.strides().tokens, tensor.strides().features);
  };
  for (const Block& block : blocks) {
    switch (block.operand) {
      case Operand::query: add_input(block, tensors_.query, block.head.query); break;
      case Operand::output: add_input(block, tensors_.result_output, block.head.query); break;
      case Operand::grad_output: add_input(block, tensors_.grad_output, block.head.query); break;
      case Operand::key: add_input(block, tensors_.key, block.head.key_value); break;
      case Operand::value: add_input(block, tensors_.value, block.head.key_value); break;
      case Operand::grad_key:
      case Operand::grad_value: {
        const KeySums sums = key_sums(block);
        if (sums.operand != nullptr) break;
        add(block, sums.matrix.at(block.rows.begin, block.columns.begin), sums.matrix.row_distance,
            sums.matrix.feature_distance);
        break;
      }
      default: break;
    }
  }
}

template class Executor<float>;
template class Executor<double>;
template class Executor<bfloat16>;
template class Executor<float16>;

}  // namespace cobble::detail
