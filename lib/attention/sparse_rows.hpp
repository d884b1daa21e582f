#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cobble/compressed.hpp"
#include "kernels/tile_kernels.hpp"
#include "plan/walk.hpp"

namespace cobble::detail {

/// What a compressed tensor stores in a panel of rows and a chunk of features, row by row; of CSR neighbouring whole
/// rows in place, anything else as a copy.
template <class T>
class SparseRows {
 public:
  /// `gathered`: the panel is those rows alone, counted from the range's first, side by side; none: all.
  void assign(const FeaturesView<T>& input, std::int64_t batch, std::int64_t head, Range rows, Range features,
              std::span<const std::int32_t> gathered = {});

  Range features() const noexcept { return features_; }
  /// Rows x features, the latter counted from features().begin.
  kernels::PairTile entries() const noexcept {
    return {static_cast<std::int64_t>(row_offsets_.size()) - 1, row_offsets_.data(), indices_};
  }
  std::int64_t count() const noexcept { return row_offsets_.back(); }
  const T* values() const noexcept { return values_; }
  /// Whether place(k) = place(0) + k.
  bool in_place() const noexcept { return in_place_; }
  /// Where an entry stands among the values of its matrix.
  std::int64_t place(std::int64_t entry) const noexcept {
    return in_place_ ? first_place_ + entry : places_[static_cast<std::size_t>(entry)];
  }
  bool all_finite() const noexcept { return kernels::tile_kernels<T>().all_finite(count(), values_); }

  /// Calls visit(entry, feature from features().begin) for a row, counted from the panel's first.
  template <class Visit>
  void for_each(std::int64_t row, Visit visit) const {
    const std::int32_t end = row_offsets_[static_cast<std::size_t>(row) + 1];
    for (std::int32_t k = row_offsets_[static_cast<std::size_t>(row)]; k < end; ++k) {
      visit(std::int64_t{k}, std::int64_t{indices_[k]});
    }
  }

 private:
  void take(const CsrView<T>& matrix);
  void take_row(const CsrView<T>& matrix, std::int64_t row);
  void take_row(const BsrView<T>& matrix, std::int64_t row);
  template <class View>
  void copy_rows(const View& matrix);
  /// Copies `count` neighbours, the first one a feature of the tensor.
  void copy_run(std::int64_t feature, std::int64_t place, std::int64_t count, const T* values);

  Range rows_;
  Range features_;
  std::span<const std::int32_t> gathered_;
  std::vector<std::int32_t> row_offsets_ = {0};
  const std::int32_t* indices_ = nullptr;
  const T* values_ = nullptr;
  bool in_place_ = false;
  std::int64_t first_place_ = 0;
  std::int64_t copied_ = 0;  ///< entries; the vectors below only grow
  std::vector<std::int32_t> copied_indices_;
  std::vector<T> copied_values_;
  std::vector<std::int64_t> places_;
};

/// The places among the values of a matrix that rows take up, and perhaps some of their neighbours'.
template <class T>
Range places_of_rows(const FeaturesView<T>& input, std::int64_t batch, std::int64_t head, Range rows);
/// How many places they are at most, over all batch entries and heads, for panels of `height` rows.
template <class T>
std::int64_t most_places(const FeaturesView<T>& input, std::int64_t height);

}  // namespace cobble::detail
