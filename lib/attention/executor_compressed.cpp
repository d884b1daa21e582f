#include <algorithm>

#include "attention/executor.hpp"

// What the executor does where Q, K or V is compressed. A panel of rows that a kernel wants in full is written out in
// full; of a list of pairs that is the keys that have one. With few entries products take those of K and V alone, of
// lists pair by pair (listed_entries.hpp).
// Dense tiles stand keys x queries, so that the entries of a panel of keys are to the kernels of pairs what a list of
// pairs is: a row of the list is a key, and what it holds are features, each of them a row of a panel that lies
// features x queries. A stored block is a matrix of its own to the kernel of products.
//
//   S^T[j, :] = sum_f K[j, f] Q^T[f, :]    sums of rows of the list
//   dQ^T[f, :] = sum_j K[j, f] dS^T[j, :]  sums of what they hold
//   dK[j, f] = <dS^T[j, :], Q^T[f, :]>     products of both, the values of the list

namespace cobble::detail {

template <class Storage>
bool Executor<Storage>::multiplies_entries(const Panel<Storage>& columns, Range features) const noexcept {
  return map_.is_dense() && compressed_operand(columns).sparse_products && columns.features() == features;
}

template <class Storage>
auto Executor<Storage>::listed_entries(Panel<Storage>& columns, Range features) noexcept -> EntryRows<T> {
  const bool takes = !map_.is_dense() && compressed_operand(columns).listed_products && columns.features() == features;
  return takes ? columns.entries().rows_in_place() : EntryRows<T>{};
}

template <class Storage>
void Executor<Storage>::multiply_entries(T alpha, Panel<Storage>& rows, SparseRows<T>& columns, Range features,
                                         T* tile) {
  const kernels::FeatureRows<const T> queries = rows.transposed(features);
  if (features.begin == 0) std::fill_n(tile, map_.keys() * map_.stride(), T{0});
  if (!columns.has_blocks()) {
    return kernels_.pairs_to_rows(columns.entries(), map_.stride(), alpha, columns.values(), queries,
                                  {tile, map_.stride()});
  }
  columns.for_each_block([&](const PanelBlock<T>& block) {
    kernels_.multiply(
        {.rows = block.rows.size(),
         .columns = map_.stride(),
         .inner = block.features.size(),
         .alpha = alpha,
         .a = block.values,
         .a_stride = block.stride,
         .b = queries.data + block.features.begin * queries.stride,
         .b_stride = queries.stride,
         .c = tile + block.rows.begin * map_.stride(),
         .c_stride = map_.stride(),
         .add = true,
         .columns_of_row = map_.queries_of_key() == nullptr ? nullptr : map_.queries_of_key() + block.rows.begin});
  });
}

template <class Storage>
void Executor<Storage>::add_entries_to_rows(T alpha, const T* tile, SparseRows<T>& columns, Range features,
                                            Sums& sums) {
  if (sums.transposed_stride == 0) {
    sums.transposed_stride = map_.stride();
    std::fill_n(sums.transposed, sums.features.size() * sums.transposed_stride, T{0});
  }
  T* const first = sums.transposed + (features.begin - sums.features.begin) * sums.transposed_stride;
  if (!columns.has_blocks()) {
    return kernels_.pairs_to_keys(columns.entries(), map_.stride(), alpha, columns.values(), {tile, map_.stride()},
                                  {first, sums.transposed_stride});
  }
  columns.for_each_block([&](const PanelBlock<T>& block) {
    kernels_.multiply({.rows = block.features.size(),
                       .columns = map_.stride(),
                       .inner = block.rows.size(),
                       .alpha = alpha,
                       .a = block.values,
                       .a_stride = 1,
                       .a_inner_stride = block.stride,
                       .b = tile + block.rows.begin * map_.stride(),
                       .b_stride = map_.stride(),
                       .c = first + block.features.begin * sums.transposed_stride,
                       .c_stride = sums.transposed_stride,
                       .add = true});
  });
}

template <class Storage>
void Executor<Storage>::add_to_entries(T alpha, const T* tile, Panel<Storage>& rows, const Step& step, T* product,
                                       const KeySums& sums) {
  const Range features = step.features;
  entries_.assign(*sums.operand->input, step.head.batch, step.head.key_value, step.keys, features,
                  map_.gathered_keys());
  if (may_multiply_densely(step.kind, rows) && sums.operand->sparse_products) {
    if (entries_.has_blocks_of(kPaddedElements)) return add_to_blocks(alpha, tile, rows.padded(features), sums);
    T* values = sums.entries + (entries_.count() > 0 ? entries_.place(0) : 0);
    if (!entries_.in_place()) {
      entry_values_.assign(static_cast<std::size_t>(entries_.count()), T{0});
      values = entry_values_.data();
    }
    kernels_.pair_products(entries_.entries(), map_.stride(), alpha, {tile, map_.stride()}, rows.transposed(features),
                           values, true);
    if (entries_.in_place()) return;
    for (std::int64_t k = 0; k < entries_.count(); ++k) sums.entries[entries_.place(k)] += values[k];
    return;
  }
  if (may_multiply_densely(step.kind, rows)) {
    const std::int64_t stride = round_up(features.size(), kPaddedElements);
    multiply_columns(alpha, tile, rows, features, {product, stride}, false);
    for (std::int64_t key = 0; key < map_.keys(); ++key) {
      entries_.for_each(key, [&](std::int64_t entry, std::int64_t feature) {
        sums.entries[entries_.place(entry)] += product[key * stride + feature];
      });
    }
    return;
  }
  const kernels::FeatureRows<const T> queries = rows.rows(features);
  const EntryRows<T> in_place = sums.operand->listed_products ? entries_.rows_in_place() : EntryRows<T>{};
  if (!map_.is_dense() && in_place.row_offsets != nullptr) {
    return add_to_listed_entries(map_.pairs(), in_place, alpha, tile, queries, sums.entries);
  }
  for_each_pair(tile, [&](std::int64_t query, std::int64_t key, std::int64_t at) {
    const T* const row = queries.data + query * queries.stride;
    const T weight = alpha * tile[at];
    entries_.for_each(key, [&](std::int64_t entry, std::int64_t feature) {
      sums.entries[entries_.place(entry)] += weight * row[feature];
    });
  });
}

template <class Storage>
void Executor<Storage>::add_to_blocks(T alpha, const T* tile, kernels::FeatureRows<const T> queries,
                                      const KeySums& sums) {
  entries_.for_each_block([&](const PanelBlock<T>& block) {
    kernels_.multiply(
        {.rows = block.rows.size(),
         .columns = block.features.size(),
         .inner = map_.rows(),
         .alpha = alpha,
         .a = tile + block.rows.begin * map_.stride(),
         .a_stride = map_.stride(),
         .a_inner_stride = 1,
         .b = queries.data + block.features.begin,
         .b_stride = queries.stride,
         .c = sums.entries + block.place,
         .c_stride = block.stride,
         .add = true,
         .inner_of_row = map_.queries_of_key() == nullptr ? nullptr : map_.queries_of_key() + block.rows.begin});
  });
}

template <class Storage>
auto Executor<Storage>::compressed_key_sums(const CompressedOperand<T>& operand, const Block& block) const -> KeySums {
  const Head& head = block.head;
  const std::int64_t group = head.batch * plan_.problem.key_value_heads + head.key_value;
  KeySums sums{{}, &operand, head, operand.grad_values[static_cast<std::size_t>(group)].data()};
  if (block.slice == 0) return sums;
  const std::int64_t panel = plan_.key_panel(block.rows.begin);
  const std::int64_t slot = plan_.slices(head).slot(block.slice, panel) - 1;
  T* const slots = block.operand == Operand::grad_key ? tensors_.key_slots : tensors_.value_slots;
  const Range keys = plan_.column_range(Product::backward_rows, panel);
  // So that places count from the matrix's first.
  sums.entries = slots + (group * plan_.most_slots() + slot) * operand.slot_values -
                 places_of_rows(*operand.input, head.batch, head.key_value, keys).begin;
  return sums;
}

template <class Storage>
void Executor<Storage>::begin_key_sums(KeySums& sums, Range rows, Range features) {
  if (sums.begun) return;
  sums.begun = true;
  if (sums.operand == nullptr) return set_zero(sums.matrix, rows, features);
  entries_.assign(*sums.operand->input, sums.head.batch, sums.head.key_value, rows, features);
  for (std::int64_t k = 0; k < entries_.count(); ++k) sums.entries[entries_.place(k)] = T{0};
}

template <class Storage>
void Executor<Storage>::add_slice(const KeySums& to, Range rows, Range features) {
  if (to.operand != nullptr) {
    entries_.assign(*to.operand->input, to.head.batch, to.head.key_value, rows, features);
    for (std::int64_t k = 0; k < entries_.count(); ++k) {
      to.entries[entries_.place(k)] += part_.entries[entries_.place(k)];
    }
    return;
  }
  const HeadMatrix<T>& sums = to.matrix;
  const HeadMatrix<T>& part = part_.matrix;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    add_scaled<T>(features.size(), T{1}, part.at(row, features.begin), part.feature_distance,
                  sums.at(row, features.begin), sums.feature_distance);
  }
}

template <class Storage>
void Executor<Storage>::settle(Sums& sums, std::int64_t rows) {
  begin_sums(sums, rows);
  if (sums.transposed_stride == 0) return;
  constexpr std::int64_t kBlock = 16;  // a cache line of the rows, read from as many of the other
  for (std::int64_t begin = 0; begin < sums.features.size(); begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, sums.features.size());
    for (std::int64_t i = 0; i < rows; ++i) {
      T* const to = sums.values + i * sums.stride();
      for (std::int64_t f = begin; f < end; ++f) to[f] += sums.transposed[f * sums.transposed_stride + i];
    }
  }
  sums.transposed_stride = 0;
}

template <class Storage>
void Executor<Storage>::write_grad_query(const Block& block) {
  const CompressedOperand<T>& operand = tensors_.compressed_query;
  if (operand.grad_values.empty()) {
    settle(grad_query_, block.rows.size());
    return write(grad_query_, tensors_.grad_query, block);
  }
  begin_sums(grad_query_, block.rows.size());
  const Head& head = block.head;
  const std::int64_t matrix = head.batch * plan_.problem.query_heads + head.query;
  T* const to = operand.grad_values[static_cast<std::size_t>(matrix)].data();
  const std::int64_t distance = grad_query_.transposed_stride;
  entries_.assign(*operand.input, head.batch, head.query, block.rows, block.columns);
  for (std::int64_t i = 0; i < block.rows.size(); ++i) {
    const T* const from = grad_query_.at(i, block.columns.begin);
    const T* const transposed = grad_query_.transposed + (block.columns.begin - grad_query_.features.begin) * distance;
    entries_.for_each(i, [&](std::int64_t entry, std::int64_t feature) {
      const T rest = distance > 0 ? transposed[feature * distance + i] : T{0};
      to[entries_.place(entry)] = from[feature] + rest;
    });
  }
}

template class Executor<float>;
template class Executor<double>;
template class Executor<bfloat16>;
template class Executor<float16>;

}  // namespace cobble::detail
