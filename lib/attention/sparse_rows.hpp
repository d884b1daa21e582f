#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/listed_entries.hpp"
#include "cobble/compressed.hpp"
#include "kernels/tile_kernels.hpp"
#include "plan/walk.hpp"

namespace cobble::detail {

/// Whether blocks are large enough for products to take each as a matrix; entry by entry costs less otherwise.
inline bool multiplies_blocks(const BsrPatternView& matrix) noexcept { return matrix.block_area() >= 16; }

/// A part of a stored block that lies in a panel: its rows and features, counted from the panel's first.
template <class T>
struct PanelBlock {
  Range rows;
  Range features;
  const T* values;      ///< of the first row and feature
  std::int64_t stride;  ///< from row to row, the width of a whole block
  std::int64_t place;   ///< of the first value among those of the matrix
};

/// What a compressed tensor stores in a panel of rows and a chunk of features: row by row, of CSR neighbouring whole
/// rows in place, anything else as a copy that is made when it is asked for; of BSR also block by block in place.
template <class T>
class SparseRows {
 public:
  /// `gathered`: the panel is those rows alone, counted from the range's first, side by side; none: all.
  void assign(const FeaturesView<T>& input, std::int64_t batch, std::int64_t head, Range rows, Range features,
              std::span<const std::int32_t> gathered = {});

  /// Whether for_each_block() may be called, and is worth it.
  bool has_blocks() const noexcept { return blocks_ != nullptr && gathered_.empty() && multiplies_blocks(*blocks_); }
  /// Whether every block has that many features, or a multiple, and none is ragged: so all blocks begin at one.
  bool has_blocks_of(std::int64_t features) const noexcept {
    return has_blocks() && blocks_->block_columns % features == 0 && blocks_->columns % blocks_->block_columns == 0;
  }
  /// Calls visit(PanelBlock) for each block, block row by block row.
  template <class Visit>
  void for_each_block(Visit visit) const;

  Range features() const noexcept { return features_; }
  /// Neighbouring whole rows of CSR; of anything else none. Entries count from the matrix's first.
  EntryRows<T> rows_in_place() const noexcept {
    if (!in_place_) return {};
    return {rows_of_entries_->row_offsets.data() + rows_.begin, rows_of_entries_->column_indices.data(),
            rows_of_entries_->values.data()};
  }
  /// Rows x features, the latter counted from features().begin.
  kernels::PairTile entries() {
    fetch();
    return {static_cast<std::int64_t>(row_offsets_.size()) - 1, row_offsets_.data(), indices_};
  }
  std::int64_t count() {
    fetch();
    return row_offsets_.back();
  }
  const T* values() {
    fetch();
    return values_;
  }
  /// Whether place(k) = place(0) + k.
  bool in_place() const noexcept { return in_place_; }
  /// Where an entry stands among the values of its matrix.
  std::int64_t place(std::int64_t entry) {
    fetch();
    return in_place_ ? first_place_ + entry : places_[static_cast<std::size_t>(entry)];
  }
  bool all_finite() { return kernels::tile_kernels<T>().all_finite(count(), values()); }

  /// Calls visit(entry, feature from features().begin) for a row, counted from the panel's first.
  template <class Visit>
  void for_each(std::int64_t row, Visit visit) {
    fetch();
    const std::int32_t end = row_offsets_[static_cast<std::size_t>(row) + 1];
    for (std::int32_t k = row_offsets_[static_cast<std::size_t>(row)]; k < end; ++k) {
      visit(std::int64_t{k}, std::int64_t{indices_[k]});
    }
  }

 private:
  /// Fills in what follows from the members up to gathered_.
  void fetch() {
    if (!fetched_) fetch_rows();
  }
  void fetch_rows();
  void take(const CsrView<T>& matrix);
  void take_row(const CsrView<T>& matrix, std::int64_t row);
  void take_row(const BsrView<T>& matrix, std::int64_t row);
  template <class View>
  void copy_rows(const View& matrix);
  /// Copies `count` neighbours, the first one a feature of the tensor.
  void copy_run(std::int64_t feature, std::int64_t place, std::int64_t count, const T* values);

  const CsrView<T>* rows_of_entries_ = nullptr;  ///< one of these two
  const BsrView<T>* blocks_ = nullptr;
  Range rows_;
  Range features_;
  std::span<const std::int32_t> gathered_;
  bool fetched_ = true;
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

template <class T>
template <class Visit>
void SparseRows<T>::for_each_block(Visit visit) const {
  const BsrView<T>& matrix = *blocks_;
  const std::int64_t height = matrix.block_rows;
  for (std::int64_t begin = rows_.begin; begin < rows_.end;) {
    const std::int64_t block_row = begin / height;
    const std::int64_t end = std::min((block_row + 1) * height, rows_.end);
    const auto panel = static_cast<std::size_t>(block_row);
    for (std::int64_t block = matrix.block_row_offsets[panel]; block < matrix.block_row_offsets[panel + 1]; ++block) {
      const std::int64_t first =
          std::int64_t{matrix.block_column_indices[static_cast<std::size_t>(block)]} * matrix.block_columns;
      const Range features{std::max(first, features_.begin),
                           std::min({first + matrix.block_columns, matrix.columns, features_.end})};
      if (features.begin >= features.end) continue;
      const std::int64_t place =
          block * matrix.block_area() + (begin - block_row * height) * matrix.block_columns + (features.begin - first);
      visit(PanelBlock<T>{{begin - rows_.begin, end - rows_.begin},
                          {features.begin - features_.begin, features.end - features_.begin},
                          matrix.values.data() + place,
                          matrix.block_columns,
                          place});
    }
    begin = end;
  }
}

/// The places among the values of a matrix that rows take up, and perhaps some of their neighbours'.
template <class T>
Range places_of_rows(const FeaturesView<T>& input, std::int64_t batch, std::int64_t head, Range rows);
/// How many places they are at most, over all batch entries and heads, for panels of `height` rows.
template <class T>
std::int64_t most_places(const FeaturesView<T>& input, std::int64_t height);

}  // namespace cobble::detail
