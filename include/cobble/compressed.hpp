#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cobble/bsr.hpp"
#include "cobble/csr.hpp"
#include "cobble/tensor.hpp"

// Q, K and V whose features are sparse: a tensor batch x heads x tokens x features that is stored as one CSR or BSR
// matrix, tokens x features, for each batch entry and head. What is not stored is 0. Structures may differ between
// matrices. Values may be anything, NaN and infinity included: IEEE arithmetic decides what they do. T is float or
// double.

namespace cobble {

namespace detail {
/// The shape of batch x heads matrices, validated one by one. Throws what validate() throws, with the batch entry and
/// head named where there are several, Error{shape_mismatch} when there are not batch x heads of them or they differ in
/// size, Error{unsupported} for BSR with bits.
template <class View>
TensorShape compressed_shape(std::span<const View> matrices, std::int64_t batch, std::int64_t heads);
/// Stored entries; of BSR all those of stored blocks that lie inside the matrix.
template <class View>
std::int64_t count_entries(std::span<const View> matrices);
/// BSR: entries whose bit says that they are absent become 0, and the bits go. CSR: nothing to do.
template <class T>
void drop_bits(BsrMatrix<T>& matrix);
template <class T>
void drop_bits(CsrMatrix<T>& /*matrix*/) {}
}  // namespace detail

template <class Matrix>
class CompressedTensor;

/// Does not own. View is CsrView<T> or BsrView<T>; blocks carry no bits: every entry of a stored block is stored.
/// Valid by construction: making one takes O(stored entries), copying it O(batch heads).
template <class View>
class CompressedTensorView {
 public:
  CompressedTensorView() = default;
  /// One batch entry, one head.
  CompressedTensorView(const View& matrix)  // NOLINT(google-explicit-constructor): a matrix is a tensor of one
      : CompressedTensorView(std::vector<View>{matrix}, 1, 1) {}
  /// matrices[b * heads + h]. Throws what detail::compressed_shape() throws: Error{invalid_structure, overflow,
  /// invalid_argument} with the first broken invariant, Error{shape_mismatch}, Error{unsupported}.
  CompressedTensorView(std::vector<View> matrices, std::int64_t batch, std::int64_t heads)
      : matrices_(std::move(matrices)),
        shape_(detail::compressed_shape<View>(matrices_, batch, heads)),
        nnz_(detail::count_entries<View>(matrices_)) {}

  const TensorShape& shape() const noexcept { return shape_; }
  std::int64_t nnz() const noexcept { return nnz_; }
  const View& at(std::int64_t batch, std::int64_t head) const noexcept {
    return matrices_[static_cast<std::size_t>(batch * shape_.heads + head)];
  }
  /// In the order of the constructor's.
  const std::vector<View>& matrices() const noexcept { return matrices_; }

 private:
  template <class Matrix>
  friend class CompressedTensor;
  /// What is known to be valid.
  CompressedTensorView(std::vector<View> matrices, const TensorShape& shape, std::int64_t nnz)
      : matrices_(std::move(matrices)), shape_(shape), nnz_(nnz) {}

  std::vector<View> matrices_;
  TensorShape shape_{0, 0, 0, 0};
  std::int64_t nnz_ = 0;
};
template <class T>
using CsrTensorView = CompressedTensorView<CsrView<T>>;
template <class T>
using BsrTensorView = CompressedTensorView<BsrView<T>>;

/// Owns. Matrix is CsrMatrix<T> or BsrMatrix<T>; the bits of blocks are dropped, absent entries stored as 0.
template <class Matrix>
class CompressedTensor {
 public:
  using View = decltype(std::declval<const Matrix&>().view());

  CompressedTensor() = default;
  /// One batch entry, one head.
  explicit CompressedTensor(Matrix matrix) : CompressedTensor(one(std::move(matrix)), 1, 1) {}
  /// matrices[b * heads + h]. Throws as the view does.
  CompressedTensor(std::vector<Matrix> matrices, std::int64_t batch, std::int64_t heads)
      : matrices_(std::move(matrices)) {
    for (Matrix& matrix : matrices_) detail::drop_bits(matrix);
    const CompressedTensorView<View> valid(views(), batch, heads);
    shape_ = valid.shape();
    nnz_ = valid.nnz();
  }

  const TensorShape& shape() const noexcept { return shape_; }
  std::int64_t nnz() const noexcept { return nnz_; }
  const Matrix& at(std::int64_t batch, std::int64_t head) const noexcept { return matrices_[index(batch, head)]; }
  const std::vector<Matrix>& matrices() const noexcept { return matrices_; }
  /// The values of one matrix, to be written; the structure is fixed.
  auto values(std::int64_t batch, std::int64_t head) noexcept {
    return std::span(matrices_[index(batch, head)].values);
  }

  /// Of this tensor, which must outlive it. O(batch heads).
  CompressedTensorView<View> view() const { return {views(), shape_, nnz_}; }
  operator CompressedTensorView<View>() const { return view(); }
  bool operator==(const CompressedTensor&) const = default;

 private:
  static std::vector<Matrix> one(Matrix matrix) {
    std::vector<Matrix> matrices;
    matrices.push_back(std::move(matrix));
    return matrices;
  }
  std::vector<View> views() const {
    std::vector<View> views;
    for (const Matrix& matrix : matrices_) views.push_back(matrix.view());
    return views;
  }
  std::size_t index(std::int64_t batch, std::int64_t head) const noexcept {
    return static_cast<std::size_t>(batch * shape_.heads + head);
  }

  std::vector<Matrix> matrices_;
  TensorShape shape_{0, 0, 0, 0};
  std::int64_t nnz_ = 0;
};
template <class T>
using CsrTensor = CompressedTensor<CsrMatrix<T>>;
template <class T>
using BsrTensor = CompressedTensor<BsrMatrix<T>>;

/// Q, K or V that owns its memory, in any storage.
template <class T>
using Features = std::variant<Tensor<T>, CsrTensor<T>, BsrTensor<T>>;

enum class FeatureStorage { dense, csr, bsr };

/// Q, K or V in any storage. Does not own.
template <class T>
class FeaturesView {
 public:
  // NOLINTBEGIN(google-explicit-constructor): any of them is features
  FeaturesView(const TensorView<const T>& tensor) : storage_(tensor) {}
  FeaturesView(const TensorView<T>& tensor) : storage_(TensorView<const T>(tensor)) {}
  FeaturesView(const Tensor<T>& tensor) : storage_(tensor.view()) {}
  FeaturesView(CsrTensorView<T> tensor) : storage_(std::move(tensor)) {}
  FeaturesView(BsrTensorView<T> tensor) : storage_(std::move(tensor)) {}
  FeaturesView(const CsrView<T>& matrix) : storage_(CsrTensorView<T>(matrix)) {}
  FeaturesView(const BsrView<T>& matrix) : storage_(BsrTensorView<T>(matrix)) {}
  FeaturesView(const CsrTensor<T>& tensor) : storage_(tensor.view()) {}
  FeaturesView(const BsrTensor<T>& tensor) : storage_(tensor.view()) {}
  FeaturesView(const Features<T>& features)
      : FeaturesView(std::visit([](const auto& tensor) { return FeaturesView(tensor); }, features)) {}
  // NOLINTEND(google-explicit-constructor)

  FeatureStorage storage() const noexcept { return static_cast<FeatureStorage>(storage_.index()); }
  const TensorShape& shape() const noexcept {
    return std::visit([](const auto& tensor) -> const TensorShape& { return tensor.shape(); }, storage_);
  }
  /// Stored entries over all batch entries and heads, the model's Z; dense: all.
  std::int64_t nnz() const {
    if (const auto* tensor = std::get_if<TensorView<const T>>(&storage_)) return tensor->shape().size();
    if (const auto* tensor = std::get_if<CsrTensorView<T>>(&storage_)) return tensor->nnz();
    return std::get<BsrTensorView<T>>(storage_).nnz();
  }
  /// In the storage that storage() says, else std::bad_variant_access.
  const TensorView<const T>& dense() const { return std::get<TensorView<const T>>(storage_); }
  const CsrTensorView<T>& csr() const { return std::get<CsrTensorView<T>>(storage_); }
  const BsrTensorView<T>& bsr() const { return std::get<BsrTensorView<T>>(storage_); }

 private:
  std::variant<TensorView<const T>, CsrTensorView<T>, BsrTensorView<T>> storage_;
};

/// The same tensor in full, 0 where nothing is stored. Of a gradient in the pattern of a compressed input it is the
/// gradient with respect to the dense tensor that was compressed: what was dropped has none.
template <class T>
Tensor<T> to_dense(const CsrTensorView<T>& tensor);
template <class T>
Tensor<T> to_dense(const BsrTensorView<T>& tensor);
template <class T>
Tensor<T> to_dense(const CsrTensor<T>& tensor) {
  return to_dense(tensor.view());
}
template <class T>
Tensor<T> to_dense(const BsrTensor<T>& tensor) {
  return to_dense(tensor.view());
}

/// The k features of each token with the largest absolute values, zeros among them if need be: of equal ones those with
/// lower indices, NaN before everything, so that it never goes unseen. Every token keeps exactly k. The backward is
/// to_dense() of the gradient. Throws Error{invalid_argument} unless 1 <= k <= features. O(tokens features) time.
template <class T>
CsrTensor<T> compress_top_k(const TensorView<const T>& tensor, std::int64_t k);

/// The features with an absolute value above the threshold, and NaN. Throws Error{invalid_argument} when the threshold
/// is negative or NaN.
template <class T>
CsrTensor<T> compress_threshold(const TensorView<const T>& tensor, T threshold);

/// Blocks of block_rows tokens x block_columns features: for each run of tokens the k blocks with the largest sums of
/// squares, with ties and NaN as above. Throws Error{invalid_argument} unless block sizes are positive and 1 <= k <=
/// the number of block columns.
template <class T>
BsrTensor<T> compress_top_k_blocks(const TensorView<const T>& tensor, std::int64_t k, std::int32_t block_rows,
                                   std::int32_t block_columns);

}  // namespace cobble
