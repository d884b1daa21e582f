#pragma once

#include <cstdint>

#include "cobble/tensor.hpp"
#include "core/checked.hpp"
#include "kernels/tile_kernels.hpp"
#include "plan/plan_data.hpp"

namespace cobble::detail {

/// A panel of rows of an input tensor, with some or all of its features. It is copied to aligned scratch memory only
/// when a kernel asks for that. Ranges of features that are asked for lie within the panel's.
template <class T>
class Panel {
 public:
  /// `scratch` has room for all rows, each padded to kPaddedElements.
  void assign(const TensorView<const T>& tensor, std::int64_t batch, std::int64_t head, Range rows, Range features,
              T* scratch) {
    feature_distance_ = tensor.strides().features;
    source_ = tensor.row(batch, head, rows.begin) + features.begin * feature_distance_;
    row_distance_ = tensor.strides().tokens;
    rows_ = rows.size();
    features_ = features;
    scratch_ = scratch;
    packed_ = false;
    finite_ = Finite::unknown;
  }

  std::int64_t stride() const noexcept { return round_up(features_.size(), kPaddedElements); }

  /// All rows, stride() apart.
  const T* packed(Range features) noexcept {
    if (!packed_) pack();
    return scratch_ + (features.begin - features_.begin);
  }
  /// One row, its features side by side.
  const T* row(std::int64_t row, Range features) noexcept {
    if (feature_distance_ == 1) return source_ + row * row_distance_ + (features.begin - features_.begin);
    return packed(features) + row * stride();
  }
  bool all_finite() noexcept {
    if (finite_ == Finite::unknown) {
      bool finite = true;
      for (std::int64_t i = 0; finite && i < rows_; ++i) {
        finite = kernels::tile_kernels<T>().all_finite(features_.size(), row(i, features_));
      }
      finite_ = finite ? Finite::yes : Finite::no;
    }
    return finite_ == Finite::yes;
  }

 private:
  enum class Finite : std::uint8_t { unknown, yes, no };

  void pack() noexcept {
    for (std::int64_t i = 0; i < rows_; ++i) {
      const T* from = source_ + i * row_distance_;
      T* to = scratch_ + i * stride();
      for (std::int64_t f = 0; f < features_.size(); ++f) to[f] = from[f * feature_distance_];
    }
    packed_ = true;
  }

  const T* source_ = nullptr;
  std::int64_t row_distance_ = 0;
  std::int64_t feature_distance_ = 1;
  std::int64_t rows_ = 0;
  Range features_;
  T* scratch_ = nullptr;
  bool packed_ = false;
  Finite finite_ = Finite::unknown;
};

}  // namespace cobble::detail
