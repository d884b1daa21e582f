#pragma once

#include <cstdint>

#include "kernels/lines_ahead.hpp"

// The numeric work on tiles: plain pointers in, plain pointers out. Matrices are row-major, `*_stride` elements from
// row to row. Every sum has an order that depends on the sizes, the intervals and the instruction set alone.
//
// A dense tile stands transposed, keys x queries: a vector holds one key's values for neighbouring queries, so that
// statistics of queries are vertical and the gradients of keys read what they broadcast from consecutive memory. Its
// queries are padded to a multiple of kPaddedElements. A tile with a mask has either an interval of keys for each
// query, or bits: bit i % 64 of word i / 64 of a key's `words` says whether query i attends to it.

namespace cobble::kernels {

/// Rows of panels and tiles that kernels read and write whole vectors of are padded to a multiple of this.
inline constexpr std::int64_t kPaddedElements = 16;

/// By about how much a score may exceed what is kept as its row's maximum, so that few tiles find a row whose sums have
/// to be rescaled. Exponentials of differences reach exp(8) then: their sums are far from overflow, and sums of values
/// are as long as values are below the largest number over exp(8).
inline constexpr int kMaximumLag = 8;

/// A half-open range.
struct Interval {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

/// c = alpha a b, or c += alpha a b, where a holds A and b holds B.
template <class T, class A = T, class B = T>
struct Product {
  std::int64_t rows = 0;     ///< of a and c
  std::int64_t columns = 0;  ///< of b and c; a multiple of kPaddedElements
  std::int64_t inner = 0;
  T alpha = T{1};
  const A* a = nullptr;  ///< a(i, l) = a[i * a_stride + l * a_inner_stride]
  std::int64_t a_stride = 0;
  std::int64_t a_inner_stride = 1;
  const B* b = nullptr;
  std::int64_t b_stride = 0;
  T* c = nullptr;
  std::int64_t c_stride = 0;
  bool add = false;
  /// For each row of c, where a is not 0; null: everywhere. Values of `a` outside are finite zeros.
  const Interval* inner_of_row = nullptr;
  /// For each row of c, which columns are wanted; null: all. What others hold is unspecified.
  const Interval* columns_of_row = nullptr;
  /// What to ask for meanwhile; null: nothing.
  LinesAhead* ahead = nullptr;
};

/// A dense tile of scores.
template <class T>
struct DenseTile {
  std::int64_t queries = 0;  ///< padded
  std::int64_t keys = 0;
  T* values = nullptr;
  std::int64_t stride = 0;
  const Interval* keys_of_query = nullptr;  ///< of each query; null: all, or what the bits say
  const std::uint64_t* bits = nullptr;      ///< null: all, or what the intervals say
  std::int64_t words = 0;
};

/// The pairs of a sparse tile, row by row: pair p of row i, row_offsets[i] <= p < row_offsets[i + 1], has key keys[p].
/// The first offset is 0.
struct PairTile {
  std::int64_t rows = 0;
  const std::int32_t* row_offsets = nullptr;
  const std::int32_t* keys = nullptr;
};

/// Rows of features: `size` features, contiguous, `stride` elements from row to row.
template <class T>
struct FeatureRows {
  T* data = nullptr;
  std::int64_t stride = 0;
};

/// What a port must fill in. T is float or double.
template <class T>
struct TileKernels {
  void (*multiply)(const Product<T>& product);
  /// to(c, r) = alpha from(r, c); from: rows x columns, elements `column_distance` apart; to: columns x rows, its rows
  /// padded with zeros.
  void (*transpose)(std::int64_t rows, std::int64_t columns, T alpha, const T* from, std::int64_t from_stride,
                    std::int64_t column_distance, T* to, std::int64_t to_stride);

  /// Scores become exp(score - maximum), 0 outside the pattern; maxima and sums are updated, and rescale[i] = exp(old
  /// maximum - new maximum). A query keeps its maximum unless a score exceeds it by more than kMaximumLag. Returns
  /// whether any rescale differs from 1.
  bool (*online_softmax)(const DenseTile<T>& score, T* maximum, T* sum, T* rescale);
  /// Maxima and sums alone.
  void (*row_statistics)(const DenseTile<T>& score, T* maximum, T* sum);
  /// Scores become exp(score - shift), 0 outside the pattern and where shift is +infinity.
  void (*probabilities)(const DenseTile<T>& score, const T* shift);
  /// grad_score becomes probability (grad_score - factor delta), 0 outside the pattern and where shift is +infinity.
  void (*grad_scores)(const DenseTile<T>& grad_score, const T* probability, const T* shift, const T* delta, T factor);

  /// values[p] = alpha <query of p's row, key of p>, or += when `add`.
  void (*pair_products)(const PairTile& pairs, std::int64_t features, T alpha, FeatureRows<const T> queries,
                        FeatureRows<const T> keys, T* values, bool add);
  /// sums of a row += alpha sum over its pairs of value times the key's features.
  void (*pairs_to_rows)(const PairTile& pairs, std::int64_t features, T alpha, const T* values,
                        FeatureRows<const T> keys, FeatureRows<T> sums);
  /// sums of a key += alpha sum over its pairs of value times the row's features.
  void (*pairs_to_keys)(const PairTile& pairs, std::int64_t features, T alpha, const T* values,
                        FeatureRows<const T> rows, FeatureRows<T> sums);

  /// What online_softmax, row_statistics, probabilities and grad_scores do, on the values of pairs.
  bool (*pair_online_softmax)(const PairTile& pairs, T* values, T* maximum, T* sum, T* rescale);
  void (*pair_row_statistics)(const PairTile& pairs, const T* values, T* maximum, T* sum);
  void (*pair_probabilities)(const PairTile& pairs, T* values, const T* shift);
  void (*pair_grad_scores)(const PairTile& pairs, T* grads, const T* probability, const T* shift, const T* delta,
                           T factor);

  /// sum_i a[i] b[i]
  T (*dot)(std::int64_t n, const T* a, const T* b);
  /// y[i] += alpha x[i]
  void (*axpy)(std::int64_t n, T alpha, const T* x, T* y);
  /// x[i] *= alpha
  void (*scale)(std::int64_t n, T alpha, T* x);
  /// x[i] = exp(x[i] - shift) within 2 ulp; 0 where that is below twice the smallest normal number, NaN stays NaN.
  void (*exp_shifted)(std::int64_t n, T shift, T* x);
  bool (*all_finite)(std::int64_t n, const T* x);
  /// For each row: lse = maximum + log(sum) and factor = 1 / sum; -infinity and 0 where sum is 0. n is a multiple of
  /// kPaddedElements.
  void (*finish_rows)(std::int64_t n, const T* maximum, const T* sum, T* lse, T* factor);

  /// x[i] = cap tanh(x[i] / cap); slope[i], unless null, is its derivative.
  void (*soft_cap)(std::int64_t n, T cap, T* x, T* slope);
  /// x[i] -= slope |first + i|
  void (*subtract_distances)(std::int64_t n, T slope, std::int64_t first, T* x);
  /// x[i] += bias[i], and -infinity where the bias is, even for a NaN.
  void (*add_bias)(std::int64_t n, const T* bias, T* x);
  /// x[i] *= factor[i]
  void (*multiply_by)(std::int64_t n, const T* factor, T* x);
};

/// The kernels of the instruction set in use.
template <class T>
const TileKernels<T>& tile_kernels();

}  // namespace cobble::kernels
