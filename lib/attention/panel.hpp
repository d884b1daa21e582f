#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "attention/conversions.hpp"
#include "attention/sparse_rows.hpp"
#include "cobble/tensor.hpp"
#include "core/checked.hpp"
#include "kernels/bf16_pairs.hpp"
#include "kernels/bf16_product.hpp"
#include "kernels/tile_kernels.hpp"
#include "plan/plan_data.hpp"

namespace cobble::detail {

/// A panel of rows of an input tensor, with some or all of its features. It is copied to aligned scratch memory only
/// when a kernel asks for what the tensor's memory is not, which halves never are. Ranges of features that are asked
/// for lie within the panel's.
template <class Storage>
class Panel {
 public:
  using T = ComputeType<Storage>;

  /// `scratch` has room for all rows, each padded to kPaddedElements; `transposed`, if any, for all features, each with
  /// as many rows, padded. `is_finite`: the whole tensor is known to be.
  void assign(const TensorView<const Storage>& tensor, std::int64_t batch, std::int64_t head, Range rows,
              Range features, bool is_finite, T* scratch, T* transposed = nullptr) {
    compressed_ = false;
    feature_distance_ = tensor.strides().features;
    source_ = tensor.row(batch, head, rows.begin) + features.begin * feature_distance_;
    row_distance_ = tensor.strides().tokens;
    begin(rows, features, is_finite, scratch, transposed);
  }
  /// The same of a compressed tensor, or of those of its rows that `gathered` lists; written out in full when a kernel
  /// asks for more than entries().
  void assign(const FeaturesView<T>& tensor, std::int64_t batch, std::int64_t head, Range rows, Range features,
              bool is_finite, T* scratch, T* transposed = nullptr, std::span<const std::int32_t> gathered = {}) {
    compressed_ = true;
    entries_.assign(tensor, batch, head, rows, features, gathered);
    begin(rows, features, is_finite, scratch, transposed);
    gather(gathered);
  }

  /// The panel is those of its rows that are listed, side by side; none listed: all. Of a compressed tensor assign()
  /// does it.
  void gather(std::span<const std::int32_t> rows) noexcept {
    gathered_ = rows;
    if (!rows.empty()) rows_ = static_cast<std::int64_t>(rows.size());
  }

  bool is_compressed() const noexcept { return compressed_; }
  /// Of a compressed tensor.
  SparseRows<T>& entries() noexcept { return entries_; }
  /// All rows, the features of each side by side.
  kernels::FeatureRows<const T> rows(Range features) {
    if constexpr (!kIsHalf<Storage>) {
      if (!compressed_ && feature_distance_ == 1 && gathered_.empty()) {
        return {source_ + (features.begin - features_.begin), row_distance_};
      }
    }
    return packed(features);
  }
  /// All rows in whole vectors: padded with zeros to kPaddedElements.
  kernels::FeatureRows<const T> padded(Range features) {
    // Rows far apart share few cache sets; a dense copy is read many times.
    const bool in_place = !kIsHalf<Storage> && !compressed_ && gathered_.empty() && feature_distance_ == 1 &&
                          features.size() % kPaddedElements == 0 && row_distance_ > 0 &&
                          row_distance_ <= 2 * features_.size();
    return in_place ? rows(features) : packed(features);
  }
  /// Features x rows, each feature's rows padded with zeros to kPaddedElements; times `factor`, which is 1 for
  /// compressed tensors.
  kernels::FeatureRows<const T> transposed(Range features, T factor = T{1}) {
    const std::int64_t stride = round_up(rows_, kPaddedElements);
    is_transposed_ = is_transposed_ && factor == factor_;
    factor_ = factor;
    if (!is_transposed_ && compressed_) {
      std::fill_n(transposed_, features_.size() * stride, T{0});
      write_entries(transposed_, 1, stride);
      is_transposed_ = true;
    }
    if (!is_transposed_) {
      const auto transpose = [&](const T* from, std::int64_t row_distance, std::int64_t feature_distance) {
        kernels::tile_kernels<T>().transpose(rows_, features_.size(), factor, from, row_distance, feature_distance,
                                             transposed_, stride);
      };
      if constexpr (kIsHalf<Storage>) {
        transpose(packed(features_).data, this->stride(), 1);
      } else {
        transpose(source_, row_distance_, feature_distance_);
      }
      is_transposed_ = true;
      is_paired_ = false;
    }
    return {transposed_ + (features.begin - features_.begin) * stride, stride};
  }
  /// Of bfloat16, in the memory of transposed(): pairs of features x rows, as products of bfloat16 take them.
  kernels::FeatureRows<const std::uint32_t> paired() noexcept {
    const std::int64_t stride = round_up(rows_, kPaddedElements);
    auto* const to = reinterpret_cast<std::uint32_t*>(transposed_);
    if (!is_paired_) {
      kernels::pair_features(rows_, features_.size(), source_, row_distance_, feature_distance_, to, stride);
      is_paired_ = true;
      is_transposed_ = false;
    }
    return {to, stride};
  }
  /// Of bfloat16, in the memory of rows(): pairs of rows x features, padded with zeros to kPaddedElements.
  kernels::FeatureRows<const std::uint32_t> row_pairs(Range features) noexcept {
    auto* const to = reinterpret_cast<std::uint32_t*>(scratch_);
    if (!has_row_pairs_) {
      write_row_pairs(to);
      has_row_pairs_ = true;
      packed_ = false;
    }
    return {to + (features.begin - features_.begin), stride()};
  }
  /// Of bfloat16: all rows, the features of each side by side, an odd number with a 0 behind it. A copy has its place
  /// behind row_pairs(), for which `scratch` must have room for one more row.
  kernels::FeatureRows<const Storage> halves() noexcept {
    if (features_.size() % 2 == 0 && stored().data != nullptr) return stored();
    auto* const to = reinterpret_cast<Storage*>(scratch_ + divide_up(rows_, 2) * stride());
    if (!are_halves_packed_) {
      for (std::int64_t i = 0; i < rows_; ++i) {
        const Storage* const from = stored_row(i);
        for (std::int64_t f = 0; f < features_.size(); ++f) to[i * stride() + f] = from[f * feature_distance_];
        std::fill(to + i * stride() + features_.size(), to + (i + 1) * stride(), Storage::from_bits(0));
      }
      are_halves_packed_ = true;
      packed_ = false;
    }
    return {to, stride()};
  }
  /// All rows as they are stored; null when features do not lie side by side, or rows are gathered.
  kernels::FeatureRows<const Storage> stored() const noexcept {
    return {!compressed_ && feature_distance_ == 1 && gathered_.empty() ? source_ : nullptr, row_distance_};
  }
  Range features() const noexcept { return features_; }
  bool all_finite() {
    if (finite_ == Finite::unknown && compressed_) finite_ = entries_.all_finite() ? Finite::yes : Finite::no;
    if (finite_ == Finite::unknown) {
      const kernels::FeatureRows<const T> all = rows(features_);
      bool finite = true;
      for (std::int64_t i = 0; finite && i < rows_; ++i) {
        finite = kernels::tile_kernels<T>().all_finite(features_.size(), all.data + i * all.stride);
      }
      finite_ = finite ? Finite::yes : Finite::no;
    }
    return finite_ == Finite::yes;
  }

 private:
  enum class Finite : std::uint8_t { unknown, yes, no };

  void begin(Range rows, Range features, bool is_finite, T* scratch, T* transposed) noexcept {
    rows_ = rows.size();
    features_ = features;
    scratch_ = scratch;
    transposed_ = transposed;
    gathered_ = {};
    packed_ = false;
    is_transposed_ = false;
    is_paired_ = false;
    has_row_pairs_ = false;
    are_halves_packed_ = false;
    finite_ = is_finite ? Finite::yes : Finite::unknown;
  }
  void write_entries(T* to, std::int64_t row_distance, std::int64_t feature_distance) {
    if (entries_.has_blocks()) {
      return entries_.for_each_block([&](const PanelBlock<T>& block) {
        for (std::int64_t i = 0; i < block.rows.size(); ++i) {
          T* const row = to + (block.rows.begin + i) * row_distance + block.features.begin * feature_distance;
          for (std::int64_t f = 0; f < block.features.size(); ++f) {
            row[f * feature_distance] = block.values[i * block.stride + f];
          }
        }
      });
    }
    for (std::int64_t i = 0; i < rows_; ++i) {
      entries_.for_each(i, [&](std::int64_t entry, std::int64_t feature) {
        to[i * row_distance + feature * feature_distance] = entries_.values()[entry];
      });
    }
  }
  std::int64_t stride() const noexcept { return round_up(features_.size(), kPaddedElements); }
  kernels::FeatureRows<const T> packed(Range features) {
    if (!packed_) pack();
    return {scratch_ + (features.begin - features_.begin), stride()};
  }
  const Storage* stored_row(std::int64_t i) const noexcept {
    return source_ + (gathered_.empty() ? i : gathered_[static_cast<std::size_t>(i)]) * row_distance_;
  }
  void write_row_pairs(std::uint32_t* to) const noexcept {
    const std::int64_t size = features_.size();
    for (std::int64_t i = 0; i < rows_; i += 2, to += stride()) {
      const Storage* const even = stored_row(i);
      const Storage* const odd = i + 1 < rows_ ? stored_row(i + 1) : nullptr;
      if (feature_distance_ == 1) {
        kernels::interleave(size, even, odd, to);
      } else {
        for (std::int64_t f = 0; f < size; ++f) {
          const std::uint32_t upper = odd != nullptr ? odd[f * feature_distance_].bits : 0;
          to[f] = even[f * feature_distance_].bits | upper << 16;
        }
      }
      std::fill(to + size, to + stride(), 0U);
    }
  }
  void pack() {
    packed_ = true;
    has_row_pairs_ = false;
    are_halves_packed_ = false;
    if (compressed_) {
      std::fill_n(scratch_, rows_ * stride(), T{0});
      return write_entries(scratch_, stride(), 1);
    }
    for (std::int64_t i = 0; i < rows_; ++i) {
      T* const to = scratch_ + i * stride();
      convert(features_.size(), stored_row(i), feature_distance_, to, 1);
      std::fill(to + features_.size(), to + stride(), T{0});
    }
  }

  bool compressed_ = false;
  SparseRows<T> entries_;
  const Storage* source_ = nullptr;
  std::int64_t row_distance_ = 0;
  std::int64_t feature_distance_ = 1;
  std::int64_t rows_ = 0;
  Range features_;
  std::span<const std::int32_t> gathered_;
  T* scratch_ = nullptr;
  T* transposed_ = nullptr;
  bool packed_ = false;
  bool is_transposed_ = false;
  T factor_ = T{1};  ///< of transposed_
  bool is_paired_ = false;
  bool has_row_pairs_ = false;
  bool are_halves_packed_ = false;
  Finite finite_ = Finite::unknown;
};

}  // namespace cobble::detail
