#pragma once

#include <cstdint>

// The numeric work on tiles: plain pointers in, plain pointers out. Matrices are row-major, `stride` elements from row
// to row. Every sum has an order that depends on the sizes alone.

namespace cobble::kernels {

/// What a port must fill in. T is float or double.
template <class T>
struct TileKernels {
  /// c = alpha a b^T, or c += alpha a b^T; a: m x k, b: n x k, c: m x n.
  void (*multiply_transposed)(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a,
                              std::int64_t a_stride, const T* b, std::int64_t b_stride, T* c, std::int64_t c_stride,
                              bool add);
  /// c += alpha a b; a: m x k, b: k x n, c: m x n.
  void (*add_product)(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a, std::int64_t a_stride,
                      const T* b, std::int64_t b_stride, T* c, std::int64_t c_stride);
  /// c = alpha a^T b; a: k x m, b: k x n, c: m x n.
  void (*transposed_multiply)(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a,
                              std::int64_t a_stride, const T* b, std::int64_t b_stride, T* c, std::int64_t c_stride);

  /// sum_i a[i] b[i]
  T (*dot)(std::int64_t n, const T* a, const T* b);
  /// y[i] += alpha x[i]
  void (*axpy)(std::int64_t n, T alpha, const T* x, T* y);
  /// x[i] *= alpha
  void (*scale)(std::int64_t n, T alpha, T* x);
  /// x[i] = exp(x[i] - shift); 0 below the smallest normal number's logarithm, NaN stays NaN.
  void (*exp_shifted)(std::int64_t n, T shift, T* x);
  T (*sum)(std::int64_t n, const T* x);
  /// The largest entry; -infinity without entries. NaN entries may be passed over.
  T (*maximum)(std::int64_t n, const T* x);
  bool (*all_finite)(std::int64_t n, const T* x);
};

/// The kernels that this processor runs.
template <class T>
const TileKernels<T>& tile_kernels() noexcept;

}  // namespace cobble::kernels
