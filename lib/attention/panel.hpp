#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/sparse_rows.hpp"
#include "cobble/tensor.hpp"
#include "core/checked.hpp"
#include "kernels/tile_kernels.hpp"
#include "plan/plan_data.hpp"

namespace cobble::detail {

/// A panel of rows of an input tensor, with some or all of its features. It is copied to aligned scratch memory only
/// when a kernel asks for what the tensor's memory is not. Ranges of features that are asked for lie within the
/// panel's.
template <class T>
class Panel {
 public:
  /// `scratch` has room for all rows, each padded to kPaddedElements; `transposed`, if any, for all features, each with
  /// as many rows, padded. `is_finite`: the whole tensor is known to be.
  void assign(const TensorView<const T>& tensor, std::int64_t batch, std::int64_t head, Range rows, Range features,
              bool is_finite, T* scratch, T* transposed = nullptr) {
    compressed_ = false;
    feature_distance_ = tensor.strides().features;
    source_ = tensor.row(batch, head, rows.begin) + features.begin * feature_distance_;
    row_distance_ = tensor.strides().tokens;
    begin(rows, features, is_finite, scratch, transposed);
  }
  /// The same of a compressed tensor; written out in full when a kernel asks for more than entries().
  void assign(const FeaturesView<T>& tensor, std::int64_t batch, std::int64_t head, Range rows, Range features,
              bool is_finite, T* scratch, T* transposed = nullptr) {
    compressed_ = true;
    entries_.assign(tensor, batch, head, rows, features);
    begin(rows, features, is_finite, scratch, transposed);
  }

  Range features() const noexcept { return features_; }
  /// Of a compressed tensor.
  const SparseRows<T>& entries() const noexcept { return entries_; }
  /// All rows, the features of each side by side.
  kernels::FeatureRows<const T> rows(Range features) noexcept {
    if (compressed_ || feature_distance_ != 1) return packed(features);
    return {source_ + (features.begin - features_.begin), row_distance_};
  }
  /// All rows in whole vectors: padded with zeros to kPaddedElements.
  kernels::FeatureRows<const T> padded(Range features) noexcept {
    // Rows far apart share few cache sets; a dense copy is read many times.
    const bool in_place = !compressed_ && feature_distance_ == 1 && features.size() % kPaddedElements == 0 &&
                          row_distance_ > 0 && row_distance_ <= 2 * features_.size();
    return in_place ? rows(features) : packed(features);
  }
  /// Features x rows, each feature's rows padded with zeros to kPaddedElements.
  kernels::FeatureRows<const T> transposed(Range features) noexcept {
    const std::int64_t stride = round_up(rows_, kPaddedElements);
    if (!is_transposed_ && compressed_) {
      std::fill_n(transposed_, features_.size() * stride, T{0});
      write_entries(transposed_, 1, stride);
      is_transposed_ = true;
    }
    if (!is_transposed_) {
      kernels::tile_kernels<T>().transpose(rows_, features_.size(), T{1}, source_, row_distance_, feature_distance_,
                                           transposed_, stride);
      is_transposed_ = true;
    }
    return {transposed_ + (features.begin - features_.begin) * stride, stride};
  }
  bool all_finite() noexcept {
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
    packed_ = false;
    is_transposed_ = false;
    finite_ = is_finite ? Finite::yes : Finite::unknown;
  }
  void write_entries(T* to, std::int64_t row_distance, std::int64_t feature_distance) const noexcept {
    for (std::int64_t i = 0; i < rows_; ++i) {
      entries_.for_each(i, [&](std::int64_t entry, std::int64_t feature) {
        to[i * row_distance + feature * feature_distance] = entries_.values()[entry];
      });
    }
  }
  std::int64_t stride() const noexcept { return round_up(features_.size(), kPaddedElements); }
  kernels::FeatureRows<const T> packed(Range features) noexcept {
    if (!packed_) pack();
    return {scratch_ + (features.begin - features_.begin), stride()};
  }
  void pack() noexcept {
    packed_ = true;
    if (compressed_) {
      std::fill_n(scratch_, rows_ * stride(), T{0});
      return write_entries(scratch_, stride(), 1);
    }
    for (std::int64_t i = 0; i < rows_; ++i) {
      const T* const from = source_ + i * row_distance_;
      T* const to = scratch_ + i * stride();
      if (feature_distance_ == 1) {
        std::copy_n(from, features_.size(), to);
      } else {
        for (std::int64_t f = 0; f < features_.size(); ++f) to[f] = from[f * feature_distance_];
      }
      std::fill(to + features_.size(), to + stride(), T{0});
    }
  }

  bool compressed_ = false;
  SparseRows<T> entries_;
  const T* source_ = nullptr;
  std::int64_t row_distance_ = 0;
  std::int64_t feature_distance_ = 1;
  std::int64_t rows_ = 0;
  Range features_;
  T* scratch_ = nullptr;
  T* transposed_ = nullptr;
  bool packed_ = false;
  bool is_transposed_ = false;
  Finite finite_ = Finite::unknown;
};

}  // namespace cobble::detail
