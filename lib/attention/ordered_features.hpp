#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "attention/reordered_passes.hpp"
#include "attention/sparse_rows.hpp"
#include "cobble/compressed_attention.hpp"

namespace cobble::detail {

/// Q, K or V in a plan's order of tokens. A compressed one becomes CSR: the rows of a block need not stay together.
template <class T>
class OrderedFeatures {
 public:
  OrderedFeatures(const FeaturesView<T>& input, std::span<const std::int32_t> order, ScratchPool& pool)
      : dense_(input.storage() == FeatureStorage::dense ? input.dense() : TensorView<const T>(), order, pool),
        order_(order),
        is_compressed_(input.storage() != FeatureStorage::dense) {
    if (!is_compressed_) return;
    const TensorShape& shape = input.shape();
    std::vector<CsrMatrix<T>> matrices;
    for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        matrices.push_back(ordered_matrix(input, batch, head, places_.emplace_back()));
      }
    }
    compressed_ = CsrTensor<T>(std::move(matrices), shape.batch, shape.heads);
  }

  FeaturesView<T> view() const {
    if (is_compressed_) return compressed_;
    return TensorView<const T>(dense_.view());
  }
  /// Where the values of each matrix stand among the input's.
  const std::vector<std::vector<std::int64_t>>& places() const noexcept { return places_; }
  std::span<const std::int32_t> order() const noexcept { return order_; }

 private:
  CsrMatrix<T> ordered_matrix(const FeaturesView<T>& input, std::int64_t batch, std::int64_t head,
                              std::vector<std::int64_t>& places) const {
    constexpr std::int64_t kTokens = 1024;  // whose entries are copied together
    const std::int64_t tokens = input.shape().tokens;
    CsrMatrix<T> matrix;
    matrix.rows = tokens;
    matrix.columns = input.shape().features;
    SparseRows<T> rows;
    for (std::int64_t begin = 0; begin < tokens; begin += kTokens) {
      const auto some =
          order_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(std::min(kTokens, tokens - begin)));
      rows.assign(input, batch, head, {0, tokens}, {0, matrix.columns}, some);
      const kernels::PairTile entries = rows.entries();
      const std::int64_t before = matrix.row_offsets.back();
      for (std::int64_t row = 1; row <= entries.rows; ++row) {
        matrix.row_offsets.push_back(before + entries.row_offsets[row]);
      }
      matrix.column_indices.insert(matrix.column_indices.end(), entries.keys, entries.keys + rows.count());
      matrix.values.insert(matrix.values.end(), rows.values(), rows.values() + rows.count());
      for (std::int64_t k = 0; k < rows.count(); ++k) places.push_back(rows.place(k));
    }
    return matrix;
  }

  OrderedTensor<T> dense_;
  std::span<const std::int32_t> order_;
  bool is_compressed_;
  CsrTensor<T> compressed_;
  std::vector<std::vector<std::int64_t>> places_;
};

/// Memory for the gradient of ordered features, to be brought into the caller's order.
template <class T>
class OrderedGradient {
 public:
  OrderedGradient(const OrderedFeatures<T>& features, const FeatureGradientView<T>& gradient, const TensorShape& shape,
                  ScratchPool& pool)
      : features_(features), gradient_(gradient), dense_(shape, std::holds_alternative<TensorView<T>>(gradient), pool) {
    if (std::holds_alternative<TensorView<T>>(gradient)) return;
    for (const std::vector<std::int64_t>& places : features.places()) values_.emplace_back(places.size());
  }

  FeatureGradientView<T> view() {
    if (std::holds_alternative<TensorView<T>>(gradient_)) return dense_.view();
    return std::vector<std::span<T>>(values_.begin(), values_.end());
  }
  /// Writes the gradient where the caller wants it.
  void scatter() const {
    if (const auto* tensor = std::get_if<TensorView<T>>(&gradient_)) {
      return scatter_tokens<T>(dense_.view(), features_.order(), *tensor);
    }
    const auto& spans = std::get<1>(gradient_);
    for (std::size_t matrix = 0; matrix < spans.size(); ++matrix) {
      const std::vector<std::int64_t>& places = features_.places()[matrix];
      for (std::size_t k = 0; k < places.size(); ++k) {
        spans[matrix][static_cast<std::size_t>(places[k])] = values_[matrix][k];
      }
    }
  }

 private:
  const OrderedFeatures<T>& features_;
  const FeatureGradientView<T>& gradient_;
  OrderedTensor<T> dense_;
  std::vector<std::vector<T>> values_;
};

}  // namespace cobble::detail
