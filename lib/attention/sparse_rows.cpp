#include "attention/sparse_rows.hpp"

#include <algorithm>
#include <numeric>

namespace cobble::detail {
namespace {

Range places_of(const CsrPatternView& matrix, Range rows) {
  return {matrix.row_offsets[static_cast<std::size_t>(rows.begin)],
          matrix.row_offsets[static_cast<std::size_t>(rows.end)]};
}

Range places_of(const BsrPatternView& matrix, Range rows) {
  const std::int64_t end = (rows.end + matrix.block_rows - 1) / matrix.block_rows;
  return {matrix.block_row_offsets[static_cast<std::size_t>(rows.begin / matrix.block_rows)] * matrix.block_area(),
          matrix.block_row_offsets[static_cast<std::size_t>(end)] * matrix.block_area()};
}

}  // namespace

template <class T>
void SparseRows<T>::assign(const FeaturesView<T>& input, std::int64_t batch, std::int64_t head, Range rows,
                           Range features, std::span<const std::int32_t> gathered) {
  rows_of_entries_ = input.storage() == FeatureStorage::csr ? &input.csr().at(batch, head) : nullptr;
  blocks_ = input.storage() == FeatureStorage::bsr ? &input.bsr().at(batch, head) : nullptr;
  rows_ = rows;
  features_ = features;
  gathered_ = gathered;
  in_place_ = rows_of_entries_ != nullptr && features == Range{0, rows_of_entries_->columns} && gathered.empty();
  fetched_ = false;
}

template <class T>
void SparseRows<T>::fetch_rows() {
  fetched_ = true;
  row_offsets_.assign(1, 0);
  copied_ = 0;
  if (in_place_) return take(*rows_of_entries_);
  rows_of_entries_ != nullptr ? copy_rows(*rows_of_entries_) : copy_rows(*blocks_);
  indices_ = copied_indices_.data();
  values_ = copied_values_.data();
}

template <class T>
void SparseRows<T>::take(const CsrView<T>& matrix) {
  const Range places = places_of(matrix, rows_);
  first_place_ = places.begin;
  indices_ = matrix.column_indices.data() + places.begin;
  values_ = matrix.values.data() + places.begin;
  for (std::int64_t row = rows_.begin; row < rows_.end; ++row) {
    row_offsets_.push_back(
        static_cast<std::int32_t>(matrix.row_offsets[static_cast<std::size_t>(row) + 1] - places.begin));
  }
}

template <class T>
template <class View>
void SparseRows<T>::copy_rows(const View& matrix) {
  const auto copy_row = [&](std::int64_t row) {
    take_row(matrix, row);
    row_offsets_.push_back(static_cast<std::int32_t>(copied_));
  };
  if (gathered_.empty()) {
    for (std::int64_t row = rows_.begin; row < rows_.end; ++row) copy_row(row);
  } else {
    for (const std::int32_t row : gathered_) copy_row(rows_.begin + row);
  }
}

template <class T>
void SparseRows<T>::take_row(const CsrView<T>& matrix, std::int64_t row) {
  const auto columns = matrix.row(row);
  auto at = std::lower_bound(columns.begin(), columns.end(), features_.begin);
  for (; at != columns.end() && *at < features_.end; ++at) {
    const std::int64_t place = &*at - matrix.column_indices.data();
    copy_run(*at, place, 1, matrix.values.data() + place);
  }
}

template <class T>
void SparseRows<T>::take_row(const BsrView<T>& matrix, std::int64_t row) {
  const auto panel = static_cast<std::size_t>(row / matrix.block_rows);
  for (std::int64_t block = matrix.block_row_offsets[panel]; block < matrix.block_row_offsets[panel + 1]; ++block) {
    const std::int64_t first =
        std::int64_t{matrix.block_column_indices[static_cast<std::size_t>(block)]} * matrix.block_columns;
    const std::int64_t begin = std::max(first, features_.begin);
    const std::int64_t end = std::min({first + matrix.block_columns, matrix.columns, features_.end});
    if (begin >= end) continue;
    const std::int64_t place =
        block * matrix.block_area() + row % matrix.block_rows * matrix.block_columns + (begin - first);
    copy_run(begin, place, end - begin, matrix.values.data() + place);
  }
}

template <class T>
void SparseRows<T>::copy_run(std::int64_t feature, std::int64_t place, std::int64_t count, const T* values) {
  const auto end = static_cast<std::size_t>(copied_ + count);
  if (end > places_.size()) {
    copied_indices_.resize(2 * end);
    copied_values_.resize(2 * end);
    places_.resize(2 * end);
  }
  const auto first = static_cast<std::int32_t>(feature - features_.begin);
  std::copy_n(values, count, copied_values_.data() + copied_);
  std::iota(copied_indices_.data() + copied_, copied_indices_.data() + copied_ + count, first);
  std::iota(places_.data() + copied_, places_.data() + copied_ + count, place);
  copied_ += count;
}

template <class T>
Range places_of_rows(const FeaturesView<T>& input, std::int64_t batch, std::int64_t head, Range rows) {
  if (input.storage() == FeatureStorage::csr) return places_of(input.csr().at(batch, head), rows);
  return places_of(input.bsr().at(batch, head), rows);
}

template <class T>
std::int64_t most_places(const FeaturesView<T>& input, std::int64_t height) {
  const TensorShape& shape = input.shape();
  std::int64_t most = 0;
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      for (std::int64_t begin = 0; begin < shape.tokens; begin += height) {
        const Range rows{begin, std::min(begin + height, shape.tokens)};
        most = std::max(most, places_of_rows(input, batch, head, rows).size());
      }
    }
  }
  return most;
}

#define COBBLE_INSTANTIATE(T)                                                               \
  template class SparseRows<T>;                                                             \
  template Range places_of_rows(const FeaturesView<T>&, std::int64_t, std::int64_t, Range); \
  template std::int64_t most_places(const FeaturesView<T>&, std::int64_t);
COBBLE_INSTANTIATE(float)
COBBLE_INSTANTIATE(double)
#undef COBBLE_INSTANTIATE

}  // namespace cobble::detail
