#pragma once

#include <Eigen/Core>
#include <Eigen/SparseCore>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cobble/convert.hpp"
#include "cobble/csr.hpp"
#include "cobble/error.hpp"
#include "cobble/pattern.hpp"
#include "cobble/tensor.hpp"

// Eigen's matrices as ours and ours as Eigen's.
//
// What can be shared is shared, never copied: dense matrices always; of a compressed sparse matrix the values always,
// an index array where its type is the same on both sides. Cobble's row offsets are int64 and its column indices
// int32, Eigen has one StorageIndex for both, so exactly one of the two arrays has to be converted:
//
//   StorageIndex   shared                    converted (memory)
//   int            values, column indices    row offsets (8 bytes a row)
//   int64_t        values, row offsets       column indices (4 bytes an entry; range-checked, never truncated)
//
// The small holders below, CsrEigenView and EigenSparseMap, own what was converted and refer to the rest: the matrix
// they were made from must outlive them and stay unchanged.

namespace cobble {

/// A sparse Eigen matrix in our terms. T is float or double.
template <class T>
class CsrEigenView {
 public:
  /// Rows are the outer vectors of `matrix`. Prefer csr_view and transposed_csr_view, which say so by name.
  template <class Derived>
  explicit CsrEigenView(const Eigen::SparseCompressedBase<Derived>& matrix);

  CsrView<T> view() const noexcept {
    return {{rows_, columns_, own_offsets_.empty() ? offsets_ : std::span<const std::int64_t>(own_offsets_),
             own_indices_.empty() ? indices_ : std::span<const std::int32_t>(own_indices_)},
            own_values_.empty() ? values_ : std::span<const T>(own_values_)};
  }
  operator CsrView<T>() const noexcept { return view(); }

 private:
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::span<const std::int64_t> offsets_;
  std::span<const std::int32_t> indices_;
  std::span<const T> values_;
  std::vector<std::int64_t> own_offsets_;
  std::vector<std::int32_t> own_indices_;
  std::vector<T> own_values_;
};

/// A row-major SparseMatrix, Map, Ref or run of rows (middleRows) as CSR. A matrix that is not compressed is packed
/// into arrays of the holder. Throws Error{invalid_structure} when columns are not sorted or repeat (csr_from_eigen
/// takes those), Error{overflow} when a size or index does not fit 31 bits.
template <class Derived>
CsrEigenView<typename Derived::Scalar> csr_view(const Eigen::SparseCompressedBase<Derived>& matrix) {
  static_assert(Derived::IsRowMajor,
                "a column-major matrix is the CSR of its transpose: use transposed_csr_view, or csr_from_eigen");
  return CsrEigenView<typename Derived::Scalar>(matrix);
}
/// The transpose of a column-major matrix as CSR; otherwise like csr_view.
template <class Derived>
CsrEigenView<typename Derived::Scalar> transposed_csr_view(const Eigen::SparseCompressedBase<Derived>& matrix) {
  static_assert(!Derived::IsRowMajor, "the matrix is row-major: use csr_view");
  return CsrEigenView<typename Derived::Scalar>(matrix);
}
// A holder must not outlive the matrix.
template <class Scalar, int Options, class StorageIndex>
void csr_view(const Eigen::SparseMatrix<Scalar, Options, StorageIndex>&& matrix) = delete;
template <class Scalar, int Options, class StorageIndex>
void transposed_csr_view(const Eigen::SparseMatrix<Scalar, Options, StorageIndex>&& matrix) = delete;

/// A copy in our storage of any sparse Eigen matrix: row- or column-major, compressed or not, sorted or not. Throws
/// Error{invalid_structure, overflow}.
template <class Derived>
CsrMatrix<typename Derived::Scalar> csr_from_eigen(const Eigen::SparseCompressedBase<Derived>& matrix,
                                                   Duplicates duplicates = Duplicates::merge);
/// The same without values; the scalar may be of any type.
template <class Derived>
CsrPattern csr_pattern_from_eigen(const Eigen::SparseCompressedBase<Derived>& matrix,
                                  Duplicates duplicates = Duplicates::merge);
/// The stored entries of a sparse Eigen matrix, whatever their value, as a pattern.
template <class Derived>
Pattern pattern_from_eigen(const Eigen::SparseCompressedBase<Derived>& matrix,
                           Duplicates duplicates = Duplicates::merge) {
  return from_csr(csr_pattern_from_eigen(matrix, duplicates));
}

/// Our CSR in Eigen's terms. T is float or double; StorageIndex is int, std::int64_t or another integer type (then
/// both index arrays are converted).
template <class T, class StorageIndex = int>
class EigenSparseMap {
 public:
  /// Throws what validate() throws, and Error{overflow} when the offsets do not fit StorageIndex.
  explicit EigenSparseMap(const CsrView<T>& matrix);

  /// The matrix, row-major.
  Eigen::Map<const Eigen::SparseMatrix<T, Eigen::RowMajor, StorageIndex>> map() const {
    return {matrix_.rows, matrix_.columns, matrix_.entries(), offsets(), indices(), matrix_.values.data()};
  }
  /// Its transpose, column-major: the same arrays.
  Eigen::Map<const Eigen::SparseMatrix<T, Eigen::ColMajor, StorageIndex>> transposed_map() const {
    return {matrix_.columns, matrix_.rows, matrix_.entries(), offsets(), indices(), matrix_.values.data()};
  }

 private:
  static constexpr bool kSharesOffsets = std::is_same_v<StorageIndex, std::int64_t>;
  static constexpr bool kSharesIndices = std::is_same_v<StorageIndex, std::int32_t>;

  const StorageIndex* offsets() const noexcept {
    if constexpr (kSharesOffsets) return matrix_.row_offsets.data();
    return own_offsets_.data();
  }
  const StorageIndex* indices() const noexcept {
    if constexpr (kSharesIndices) return matrix_.column_indices.data();
    return own_indices_.data();
  }

  CsrView<T> matrix_;
  std::vector<StorageIndex> own_offsets_;
  std::vector<StorageIndex> own_indices_;
};

/// For example `eigen_sparse_map(matrix).map() * x`, or `eigen_sparse_map<std::int64_t>(matrix)`.
template <class StorageIndex = int, class T>
EigenSparseMap<T, StorageIndex> eigen_sparse_map(const CsrView<T>& matrix) {
  return EigenSparseMap<T, StorageIndex>(matrix);
}
template <class StorageIndex = int, class T>
EigenSparseMap<T, StorageIndex> eigen_sparse_map(const CsrMatrix<T>& matrix) {
  return EigenSparseMap<T, StorageIndex>(matrix.view());
}
template <class StorageIndex = int, class T>
void eigen_sparse_map(const CsrMatrix<T>&& matrix) = delete;

/// A dense Eigen object that lies in memory (Matrix, Array, Map, Ref, Block; row- or column-major, any strides) as a
/// tensor of one batch entry: rows are tokens, columns the features of `heads` heads side by side. Constant where the
/// object is. Nothing is copied, so temporaries that own their elements do not compile. Throws Error{invalid_argument}
/// unless heads >= 1, Error{shape_mismatch} unless it divides the columns.
template <class Dense>
auto tensor_view(Dense&& matrix, std::int64_t heads = 1) {
  using Object = std::remove_cvref_t<Dense>;
  static_assert((int{Object::Flags} & int{Eigen::DirectAccessBit}) != 0, "an expression has no memory: evaluate it");
  static_assert(std::is_lvalue_reference_v<Dense> || !std::is_base_of_v<Eigen::PlainObjectBase<Object>, Object>,
                "the view would outlive this temporary");
  if (heads < 1) throw Error(ErrorCode::invalid_argument, "heads = " + std::to_string(heads) + ", expected at least 1");
  if (matrix.cols() % heads != 0) {
    throw Error(ErrorCode::shape_mismatch, "the matrix has " + std::to_string(matrix.cols()) +
                                               " columns, expected a multiple of heads = " + std::to_string(heads));
  }
  const std::int64_t features = matrix.cols() / heads;
  using Element = std::remove_pointer_t<decltype(matrix.data())>;
  return TensorView<Element>(matrix.data(), TensorShape{1, heads, matrix.rows(), features},
                             TensorStrides{0, features * matrix.colStride(), matrix.rowStride(), matrix.colStride()});
}

/// An Eigen::Map with run-time strides: tokens x features of one batch entry and head.
template <class T>
using EigenSliceMap = Eigen::Map<
    std::conditional_t<std::is_const_v<T>,
                       const Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                       Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>,
    Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

/// The slice of a tensor that belongs to one batch entry and head, without a copy. Throws Error{invalid_argument} when
/// these are out of range, Error{unsupported} on a negative stride, which Eigen does not have.
template <class T>
EigenSliceMap<T> eigen_map(const TensorView<T>& tensor, std::int64_t batch = 0, std::int64_t head = 0);
template <class T>
EigenSliceMap<T> eigen_map(Tensor<T>& tensor, std::int64_t batch = 0, std::int64_t head = 0) {
  return eigen_map(tensor.view(), batch, head);
}
template <class T>
EigenSliceMap<const T> eigen_map(const Tensor<T>& tensor, std::int64_t batch = 0, std::int64_t head = 0) {
  return eigen_map(tensor.view(), batch, head);
}
template <class T>
void eigen_map(const Tensor<T>&& tensor, std::int64_t batch = 0, std::int64_t head = 0) = delete;

// ---------------------------------------------------------------------------------------------------- implementation

namespace detail {

/// An integer in another type, checked.
template <class To, class From>
To eigen_index(From value, const char* what) {
  if (!std::in_range<To>(value)) {
    throw Error(ErrorCode::overflow, std::string(what) + " = " + std::to_string(value) + " does not fit the range [" +
                                         std::to_string(std::numeric_limits<To>::min()) + ", " +
                                         std::to_string(std::numeric_limits<To>::max()) + "]");
  }
  return static_cast<To>(value);
}

/// The arrays of a sparse Eigen matrix. Outer vector k is [begin(k), end(k)) of inner indices and values; offsets are
/// checked before they are used.
template <class Derived>
class EigenArrays {
 public:
  using StorageIndex = typename Derived::StorageIndex;

  explicit EigenArrays(const Eigen::SparseCompressedBase<Derived>& matrix)
      : outer_size(matrix.derived().outerSize()),
        offsets(matrix.derived().outerIndexPtr()),
        counts(matrix.derived().innerNonZeroPtr()),
        indices(matrix.derived().innerIndexPtr()),
        values(matrix.derived().valuePtr()) {
    if (outer_size > 0 && offsets[0] < 0) fail(0, "less than 0");
    for (std::int64_t k = 0; k < outer_size; ++k) {
      if (offsets[k + 1] < offsets[k]) fail(k + 1, "less than the one before");
      if (counts != nullptr && (counts[k] < 0 || counts[k] > offsets[k + 1] - offsets[k])) {
        throw Error(ErrorCode::invalid_structure, "innerNonZeroPtr()[" + std::to_string(k) +
                                                      "] = " + std::to_string(counts[k]) + ", expected 0 to " +
                                                      std::to_string(offsets[k + 1] - offsets[k]));
      }
      entries += end(k) - begin(k);
    }
  }

  std::int64_t begin(std::int64_t outer) const noexcept { return offsets[outer]; }
  std::int64_t end(std::int64_t outer) const noexcept {
    return counts == nullptr ? offsets[outer + 1] : offsets[outer] + counts[outer];
  }

  std::int64_t outer_size;
  std::int64_t entries = 0;
  const StorageIndex* offsets;
  const StorageIndex* counts;  ///< null when compressed
  const StorageIndex* indices;
  const typename Derived::Scalar* values;

 private:
  [[noreturn]] void fail(std::int64_t outer, const char* why) const {
    throw Error(ErrorCode::invalid_structure,
                "outerIndexPtr()[" + std::to_string(outer) + "] = " + std::to_string(offsets[outer]) + " is " + why);
  }
};

/// Fills `result` and calls visit(k) with every entry's place in the arrays, in storage order.
template <class Derived, class Visit>
void coordinates_from_eigen(const Eigen::SparseCompressedBase<Derived>& matrix, const EigenArrays<Derived>& arrays,
                            CooPattern& result, Visit visit) {
  result.rows = eigen_index<std::int32_t>(matrix.rows(), "rows");
  result.columns = eigen_index<std::int32_t>(matrix.cols(), "columns");
  auto& outer_indices = Derived::IsRowMajor ? result.row_indices : result.column_indices;
  auto& inner_indices = Derived::IsRowMajor ? result.column_indices : result.row_indices;
  outer_indices.reserve(static_cast<std::size_t>(arrays.entries));
  inner_indices.reserve(static_cast<std::size_t>(arrays.entries));
  for (std::int64_t outer = 0; outer < arrays.outer_size; ++outer) {
    for (std::int64_t k = arrays.begin(outer); k < arrays.end(outer); ++k) {
      outer_indices.push_back(static_cast<std::int32_t>(outer));
      inner_indices.push_back(eigen_index<std::int32_t>(arrays.indices[k], "an inner index"));
      visit(k);
    }
  }
}

}  // namespace detail

template <class T>
template <class Derived>
CsrEigenView<T>::CsrEigenView(const Eigen::SparseCompressedBase<Derived>& matrix)
    : rows_(matrix.derived().outerSize()), columns_(matrix.derived().innerSize()) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "values are float or double; csr_pattern_from_eigen takes any scalar");
  using StorageIndex = typename Derived::StorageIndex;
  const detail::EigenArrays<Derived> arrays(matrix);
  const bool compressed = arrays.counts == nullptr;
  const auto entries = static_cast<std::size_t>(arrays.entries);
  // A run of rows of a larger matrix has offsets that do not begin at 0.
  const std::int64_t first = arrays.outer_size > 0 ? arrays.begin(0) : 0;

  bool shares_offsets = false;
  if constexpr (std::is_same_v<StorageIndex, std::int64_t>) {
    shares_offsets = compressed && first == 0 && arrays.outer_size > 0;
    if (shares_offsets) offsets_ = {arrays.offsets, static_cast<std::size_t>(rows_) + 1};
  }
  if (!shares_offsets) {
    own_offsets_.reserve(static_cast<std::size_t>(rows_) + 1);
    own_offsets_.push_back(0);
    for (std::int64_t row = 0; row < rows_; ++row) {
      own_offsets_.push_back(own_offsets_.back() + arrays.end(row) - arrays.begin(row));
    }
  }

  bool shares_indices = false;
  if constexpr (std::is_same_v<StorageIndex, std::int32_t>) {
    shares_indices = compressed;
    if (shares_indices && entries > 0) indices_ = {arrays.indices + first, entries};
  }
  if (compressed && entries > 0) values_ = {arrays.values + first, entries};
  if (!shares_indices) own_indices_.reserve(entries);
  if (!compressed) own_values_.reserve(entries);
  for (std::int64_t row = 0; row < rows_ && !(compressed && shares_indices); ++row) {
    for (std::int64_t k = arrays.begin(row); k < arrays.end(row); ++k) {
      own_indices_.push_back(detail::eigen_index<std::int32_t>(arrays.indices[k], "a column index"));
      if (!compressed) own_values_.push_back(arrays.values[k]);
    }
  }
  validate(view());
}

template <class Derived>
CsrMatrix<typename Derived::Scalar> csr_from_eigen(const Eigen::SparseCompressedBase<Derived>& matrix,
                                                   Duplicates duplicates) {
  using T = typename Derived::Scalar;
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "values are float or double; csr_pattern_from_eigen takes any scalar");
  const detail::EigenArrays<Derived> arrays(matrix);
  CooMatrix<T> coordinates;
  coordinates.values.reserve(static_cast<std::size_t>(arrays.entries));
  detail::coordinates_from_eigen(matrix, arrays, coordinates,
                                 [&](std::int64_t k) { coordinates.values.push_back(arrays.values[k]); });
  return to_csr(coordinates, duplicates);
}

template <class Derived>
CsrPattern csr_pattern_from_eigen(const Eigen::SparseCompressedBase<Derived>& matrix, Duplicates duplicates) {
  const detail::EigenArrays<Derived> arrays(matrix);
  CooPattern coordinates;
  detail::coordinates_from_eigen(matrix, arrays, coordinates, [](std::int64_t /*k*/) {});
  return to_csr(coordinates, duplicates);
}

template <class T, class StorageIndex>
EigenSparseMap<T, StorageIndex>::EigenSparseMap(const CsrView<T>& matrix) : matrix_(matrix) {
  validate(matrix);
  static_cast<void>(detail::eigen_index<StorageIndex>(matrix.entries(), "the number of entries"));
  static_cast<void>(detail::eigen_index<StorageIndex>(matrix.columns, "columns"));
  if constexpr (!kSharesOffsets) {
    own_offsets_.reserve(matrix.row_offsets.size());
    for (const std::int64_t offset : matrix.row_offsets) own_offsets_.push_back(static_cast<StorageIndex>(offset));
  }
  if constexpr (!kSharesIndices) {
    own_indices_.reserve(matrix.column_indices.size());
    for (const std::int32_t column : matrix.column_indices) own_indices_.push_back(static_cast<StorageIndex>(column));
  }
}

template <class T>
EigenSliceMap<T> eigen_map(const TensorView<T>& tensor, std::int64_t batch, std::int64_t head) {
  const TensorShape& shape = tensor.shape();
  if (batch < 0 || batch >= shape.batch || head < 0 || head >= shape.heads) {
    throw Error(ErrorCode::invalid_argument, "batch " + std::to_string(batch) + ", head " + std::to_string(head) +
                                                 " of a tensor of " + std::to_string(shape.batch) + " x " +
                                                 std::to_string(shape.heads) + " (batch x heads)");
  }
  if (tensor.strides().tokens < 0 || tensor.strides().features < 0) {
    throw Error(ErrorCode::unsupported, "strides of " + std::to_string(tensor.strides().tokens) + " x " +
                                            std::to_string(tensor.strides().features) +
                                            " (tokens x features); Eigen has no negative ones");
  }
  return {tensor.row(batch, head, 0), shape.tokens, shape.features,
          Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(tensor.strides().tokens, tensor.strides().features)};
}

}  // namespace cobble
