#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "attention/panel.hpp"
#include "attention/tile_map.hpp"
#include "attention/tile_terms.hpp"
#include "attention/weight_products.hpp"
#include "cobble/tensor.hpp"
#include "kernels/amx.hpp"
#include "kernels/bf16_product.hpp"
#include "kernels/tile_kernels.hpp"
#include "plan/plan_data.hpp"

namespace cobble::detail {

static_assert(kPaddedElements == kernels::kPaddedElements);

/// Which inputs hold neither NaN nor infinity, as far as is known or hoped for.
struct FiniteInputs {
  bool query = false;
  bool key = false;
  bool value = false;
  bool grad_output = false;
};

/// Q, K or V in compressed storage.
template <class T>
struct CompressedOperand {
  const FeaturesView<T>* input = nullptr;  ///< null: it is dense
  bool sparse_products = false;            ///< products of dense tiles take its entries instead of a panel in full
  bool listed_products = false;            ///< those of lists of pairs do
  /// Where its gradient goes, batch entry by batch entry and head by head, in the order of the input's values; empty:
  /// to the dense gradient.
  std::span<const std::span<T>> grad_values = {};
  std::int64_t slot_values = 0;  ///< of a slot for the gradient of a panel of keys
};

/// The slow memory of a pass: the caller's tensors and what the pass keeps for itself. What a pass does not use has no
/// data. Inputs, the output and the gradient of queries are as they are stored; what is summed up over tasks has the
/// type that is computed in.
template <class Storage>
struct PassTensors {
  using T = ComputeType<Storage>;

  TensorView<const Storage> query = {};
  TensorView<const Storage> key = {};
  TensorView<const Storage> value = {};
  TensorView<const Storage> result_output = {};  ///< of forward, read by backward
  TensorView<const T> result_lse = {};
  TensorView<const Storage> grad_output = {};
  TensorView<const T> grad_lse = {};
  TensorView<Storage> output = {};  ///< written by forward
  TensorView<T> lse = {};
  TensorView<T> delta = {};  ///< batch x H_q x n_q x 1
  TensorView<Storage> grad_query = {};
  TensorView<T> grad_key = {};
  TensorView<T> grad_value = {};
  TensorView<const T> query_input = {};  ///< of parameter gradients: A1, A3, X and Y
  TensorView<const T> value_input = {};
  TensorView<const T> score_weights = {};
  TensorView<const T> value_weights = {};
  TensorView<T> projected_query = {};  ///< where query and value are written before they are read
  TensorView<T> projected_value = {};
  TensorView<T> grad_score_weights = {};  ///< slice 0 of each head
  TensorView<T> grad_value_weights = {};
  TensorView<T> score_weight_slices = {};  ///< the others: head by head, as further heads
  TensorView<T> value_weight_slices = {};
  CompressedOperand<T> compressed_query = {};  ///< in the place of query, key and value and of their gradients
  CompressedOperand<T> compressed_key = {};
  CompressedOperand<T> compressed_value = {};
  FiniteInputs finite = {};
  /// Where `finite` is a hope: set as soon as a result says that it may be wrong.
  std::atomic<bool>* doubtful = nullptr;
  T* key_slots = nullptr;  ///< slices of gradients of keys, as KeySlices says
  T* value_slots = nullptr;
  T* row_slots = nullptr;    ///< parts of sums of shared row panels
  T* score_store = nullptr;  ///< pair values that outlive a task, or null
  T* grad_score_store = nullptr;
  PassTerms<T> terms = {};
};

/// Elements of scratch memory that an executor needs.
template <class Storage>
std::int64_t executor_scratch(const PlanData& plan, const PassTensors<Storage>& tensors) noexcept {
  const ScratchSizes sizes = scratch_sizes(plan);
  return sizes.total() + (tensors.terms.slopes ? sizes.tile : 0) +
         (tensors.compressed_key.sparse_products ? sizes.transposed_features : 0) +
         (tensors.compressed_value.sparse_products ? sizes.transposed_value_features : 0) +
         (std::is_same_v<Storage, bfloat16> ? bf16_scratch(plan) : 0);
}

/// The visitor that does the arithmetic; one per task. Sums into the gradients of keys go straight to the
/// memory of the pass, everything else to aligned scratch memory first. executor.cpp moves blocks, executor_steps.cpp
/// computes, executor_compressed.cpp has what compressed inputs need, executor_bf16.cpp products of bfloat16.
template <class Storage>
class Executor final : public WalkVisitor {
 public:
  using T = ComputeType<Storage>;

  /// `scratch` holds executor_scratch(plan, tensors) elements.
  Executor(const PlanData& plan, const PassTensors<Storage>& tensors, T* scratch);

  void load(const Block& block) override;
  void create(const Block& block) override;
  void stream(const Block& block, std::int64_t window, Stream direction) override;
  void compute(const Step& step) override;
  void store(const Block& block) override;
  void drop(const Block& block) override;
  bool looks_ahead() const noexcept override { return !plan_.lists && !plan_.gathers; }
  void expect(std::span<const Block> blocks) override;

 private:
  struct Scratch {
    T* query;
    T* query_transposed;
    T* grad_query;
    T* output;
    T* grad_output;
    T* grad_output_transposed;
    T* key;
    T* product_key;  ///< products on their way to grad_key
    T* value;
    T* product_value;  ///< products on their way to grad_value
    T* row_maximum;
    T* row_sum;
    T* lse;
    T* shift;  ///< lse, but +infinity for an empty row
    T* delta;
    T* rescale;
    T* score;
    T* grad_score;
    T* slope;                ///< of softcap; null when no one asks for it
    std::uint32_t* rounded;  ///< a tile in pairs of bfloat16; null for other types
  };

  /// A panel of sums in scratch memory.
  struct Sums {
    T* values;
    Range features;
    /// A second part of the sums, features x rows, that is added at the end: products with the entries of compressed
    /// inputs go there. Null: there is none.
    T* transposed = nullptr;
    std::int64_t transposed_stride = 0;  ///< 0: nothing has gone there yet
    bool begun = true;                   ///< or else `values` holds nothing yet, and counts as 0

    std::int64_t stride() const noexcept { return round_up(features.size(), kPaddedElements); }
    T* at(std::int64_t row, std::int64_t feature) const noexcept {
      return values + row * stride() + (feature - features.begin);
    }
  };

  /// Sums of gradients of keys or values in the caller's memory or a slot: a matrix, or the entries that a compressed
  /// input stores.
  struct KeySums {
    HeadMatrix<T> matrix = {};
    const CompressedOperand<T>* operand = nullptr;  ///< null: dense
    Head head = {};
    T* entries = nullptr;  ///< of the whole matrix
    bool begun = true;     ///< or else the rows and features that the block names hold nothing yet, and count as 0
  };

  void set_tile(const Block& block);
  /// Copies a tile of pairs from or to the store, where the pairs of a head stand row by row.
  void copy_pairs(const Block& block, T* tile, T* store, bool to_store);
  void init_statistics(const Block& block);
  /// Where a slot holds the part of sums over rows that a block names.
  T* row_slot(const Block& block) const;
  void store_part(const Block& block);
  void load_part(const Block& block);
  void add_output_part(std::int64_t rows);
  void add_query_part(std::int64_t rows);
  /// The slice of a gradient of weights that a block names.
  HeadMatrix<T> weight_slice(const Block& block) const;
  /// Where the gradients of keys or values that a block names are summed up; rows count from the tensor's first.
  KeySums key_sums(const Block& block) const;
  KeySums compressed_key_sums(const CompressedOperand<T>& operand, const Block& block) const;
  /// grad_key_ or grad_value_.
  KeySums& named_key_sums(Operand operand);
  /// Lets it be what a block names, not begun.
  void name_new_key_sums(const Block& block);
  /// Sets sums that have not begun to 0.
  void begin_key_sums(KeySums& sums, Range rows, Range features);
  void begin_sums(Sums& sums, std::int64_t rows) const;
  /// Adds part_.
  void add_slice(const KeySums& to, Range rows, Range features);
  void write(const Sums& sums, const TensorView<Storage>& tensor, const Block& block) const;
  /// Looks for NaN and infinity in a row of results.
  void doubt(const T* row, std::int64_t count) const;
  void write_grad_query(const Block& block);
  void create_sums(Sums& sums, const Block& block);
  /// Begins sums that nothing was added to, and adds their transposed part.
  void settle(Sums& sums, std::int64_t rows);
  /// One value a row.
  void write_column(const T* from, const TensorView<T>& tensor, const Head& head, Range rows) const;

  void compute_scores(const Step& step);
  void update_softmax();
  void update_statistics();
  /// lse and, in rescale, what the output is multiplied with.
  void finish_rows(std::int64_t rows);
  void finish_output(const Step& step);
  void compute_delta(const Step& step);
  /// What dP and dS are multiplied with from the start, so that dQ and dK need not be: the scale of scores, but 1 where
  /// terms take dS as it is.
  T grad_scale() const noexcept { return terms_.change_scores() ? T{1} : scale_; }
  /// What is left for dQ and dK.
  T rest_of_scale() const noexcept { return terms_.change_scores() ? scale_ : T{1}; }
  void compute_probabilities();
  void compute_grad_scores();

  /// tile = alpha rows columns^T on the pattern, as the tile's map stores it. Chunks of features after the first are
  /// added.
  void multiply_pairs(T alpha, Panel<Storage>& rows, Panel<Storage>& columns, Range features, T* tile);
  /// What these and multiply_columns() do with bfloat16 where the instruction set multiplies it; false when it does not
  /// take this product. Values of the tile are rounded to bfloat16.
  bool multiply_pairs_in_bf16(T alpha, Panel<Storage>& rows, Panel<Storage>& columns, Range features, T* tile);
  bool add_to_rows_in_bf16(T alpha, const T* tile, Panel<Storage>& columns, Range features, kernels::FeatureRows<T> to,
                           bool add);
  bool multiply_columns_in_bf16(T alpha, const T* tile, Panel<Storage>& rows, Range features,
                                kernels::FeatureRows<T> to, bool add);
  /// sums_i += alpha sum_j tile_ij columns_j
  void add_to_rows(T alpha, const T* tile, Panel<Storage>& columns, const Step& step, Sums& sums);
  /// sums_j += alpha sum_i tile_ij rows_i, in the memory of the pass
  void add_to_columns(T alpha, const T* tile, Panel<Storage>& rows, const Step& step, T* product, KeySums& sums);
  /// to_j = alpha sum_i tile_ij rows_i, or += when `add`, over a dense tile and whole vectors of features.
  void multiply_columns(T alpha, const T* tile, Panel<Storage>& rows, Range features, kernels::FeatureRows<T> to,
                        bool add);
  /// What these three do with compressed operands: multiply_entries() and add_entries_to_rows() where the columns are,
  /// add_to_entries() where the sums are.
  bool multiplies_entries(const Panel<Storage>& columns, Range features) const noexcept;
  /// The entries of the columns that a product of a list of pairs takes; none: it takes them in full.
  EntryRows<T> listed_entries(Panel<Storage>& columns, Range features) noexcept;
  const CompressedOperand<T>& compressed_operand(const Panel<Storage>& columns) const noexcept {
    return &columns == &key_ ? tensors_.compressed_key : tensors_.compressed_value;
  }
  void multiply_entries(T alpha, Panel<Storage>& rows, SparseRows<T>& columns, Range features, T* tile);
  void add_entries_to_rows(T alpha, const T* tile, SparseRows<T>& columns, Range features, Sums& sums);
  void add_to_entries(T alpha, const T* tile, Panel<Storage>& rows, const Step& step, T* product, const KeySums& sums);
  void add_to_blocks(T alpha, const T* tile, kernels::FeatureRows<const T> queries, const KeySums& sums);
  /// The products of a dense tile that multiply_pairs(), add_to_rows() and multiply_columns() compute, with operands of
  /// whatever type.
  template <class A, class B>
  kernels::Product<T, A, B> pair_product(T alpha, kernels::FeatureRows<const A> keys,
                                         kernels::FeatureRows<const B> queries, Range features, T* tile);
  template <class A, class B>
  kernels::Product<T, A, B> row_product(T alpha, const A* tile, kernels::FeatureRows<const B> keys, Range features,
                                        kernels::FeatureRows<T> to, bool add);
  template <class A, class B>
  kernels::Product<T, A, B> column_product(T alpha, const A* tile, kernels::FeatureRows<const B> queries,
                                           Range features, kernels::FeatureRows<T> to, bool add);
  /// Whether a product over this dense tile may touch pairs that do not count.
  bool may_multiply_densely(TileKind kind, Panel<Storage>& operand);
  /// The same of a list of pairs.
  bool all_pairs_count(Panel<Storage>& operand);
  /// Calls visit(query, key, place of the value) for the pairs that count.
  template <class Visit>
  void for_each_pair(const T* tile, Visit visit) const;
  /// shift from lse, for a panel of rows.
  void set_shift(std::int64_t rows);

  const PlanData& plan_;
  const PassTensors<Storage>& tensors_;
  const kernels::TileKernels<T>& kernels_;
  Scratch scratch_;
  T scale_;
  Panel<Storage> query_;
  Panel<Storage> key_;
  Panel<Storage> value_;
  Panel<Storage> result_output_;
  Panel<Storage> grad_output_;
  Sums output_;
  Sums grad_query_;
  TileMap map_;
  kernels::LinesAhead ahead_;  ///< what is expected
  TileTerms<T> terms_;
  bool uses_amx_ = std::is_same_v<Storage, bfloat16> && kernels::uses_amx();
  bool uses_avx512_bf16_ = std::is_same_v<Storage, bfloat16> && kernels::uses_avx512_bf16();
  bool has_empty_rows_ = false;  ///< a row of lse is -infinity
  KeySums grad_key_;
  KeySums grad_value_;
  KeySums weight_sums_;          ///< the slice of a gradient of weights that is summed up
  KeySums part_;                 ///< the slice that is added to another
  const T* row_part_ = nullptr;  ///< of output or grad_query, to be added; with that of output go the other two
  const T* maximum_part_ = nullptr;
  const T* sum_part_ = nullptr;
  SparseRows<T> entries_;        ///< of a gradient
  std::vector<T> entry_values_;  ///< of entries that do not stand side by side
};

template <class Storage>
template <class A, class B>
auto Executor<Storage>::pair_product(T alpha, kernels::FeatureRows<const A> keys, kernels::FeatureRows<const B> queries,
                                     Range features, T* tile) -> kernels::Product<T, A, B> {
  return {.rows = map_.keys(),
          .columns = map_.stride(),
          .inner = features.size(),
          .alpha = alpha,
          .a = keys.data,
          .a_stride = keys.stride,
          .b = queries.data,
          .b_stride = queries.stride,
          .c = tile,
          .c_stride = map_.stride(),
          .add = features.begin > 0,
          .columns_of_row = map_.queries_of_key(),
          .ahead = &ahead_};
}

template <class Storage>
template <class A, class B>
auto Executor<Storage>::row_product(T alpha, const A* tile, kernels::FeatureRows<const B> keys, Range features,
                                    kernels::FeatureRows<T> to, bool add) -> kernels::Product<T, A, B> {
  return {.rows = map_.rows(),
          .columns = round_up(features.size(), kPaddedElements),
          .inner = map_.keys(),
          .alpha = alpha,
          .a = tile,
          .a_stride = 1,
          .a_inner_stride = map_.stride(),
          .b = keys.data,
          .b_stride = keys.stride,
          .c = to.data,
          .c_stride = to.stride,
          .add = add,
          .inner_of_row = map_.keys_of_query(),
          .ahead = &ahead_};
}

template <class Storage>
template <class A, class B>
auto Executor<Storage>::column_product(T alpha, const A* tile, kernels::FeatureRows<const B> queries, Range features,
                                       kernels::FeatureRows<T> to, bool add) -> kernels::Product<T, A, B> {
  return {.rows = map_.keys(),
          .columns = round_up(features.size(), kPaddedElements),
          .inner = map_.rows(),
          .alpha = alpha,
          .a = tile,
          .a_stride = map_.stride(),
          .a_inner_stride = 1,
          .b = queries.data,
          .b_stride = queries.stride,
          .c = to.data,
          .c_stride = to.stride,
          .add = add,
          .inner_of_row = map_.queries_of_key(),
          .ahead = &ahead_};
}

template <class Storage>
template <class Visit>
void Executor<Storage>::for_each_pair(const T* tile, Visit visit) const {
  map_.for_each_pair([&](std::int64_t query, std::int64_t key, std::int64_t at) {
    if (tile[at] != T{0} || !terms_.removes(query, map_.key_in_range(key))) visit(query, key, at);
  });
}

}  // namespace cobble::detail
