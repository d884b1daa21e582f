#include "kernels/tile_kernels.hpp"

#include <Eigen/Core>
#include <limits>

#include "kernels/exponential.hpp"

namespace cobble::kernels {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ConstMap = Eigen::Map<const Matrix<T>, 0, Eigen::OuterStride<>>;
template <class T>
using Map = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;

template <class T>
void multiply_transposed(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a, std::int64_t a_stride,
                         const T* b, std::int64_t b_stride, T* c, std::int64_t c_stride, bool add) {
  const auto product = alpha * (ConstMap<T>(a, m, k, Eigen::OuterStride<>(a_stride)) *
                                ConstMap<T>(b, n, k, Eigen::OuterStride<>(b_stride)).transpose());
  Map<T> result(c, m, n, Eigen::OuterStride<>(c_stride));
  if (add) {
    result.noalias() += product;
  } else {
    result.noalias() = product;
  }
}

template <class T>
void add_product(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a, std::int64_t a_stride, const T* b,
                 std::int64_t b_stride, T* c, std::int64_t c_stride) {
  Map<T>(c, m, n, Eigen::OuterStride<>(c_stride)).noalias() +=
      alpha *
      (ConstMap<T>(a, m, k, Eigen::OuterStride<>(a_stride)) * ConstMap<T>(b, k, n, Eigen::OuterStride<>(b_stride)));
}

template <class T>
void transposed_multiply(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a, std::int64_t a_stride,
                         const T* b, std::int64_t b_stride, T* c, std::int64_t c_stride) {
  Map<T>(c, m, n, Eigen::OuterStride<>(c_stride)).noalias() =
      alpha * (ConstMap<T>(a, k, m, Eigen::OuterStride<>(a_stride)).transpose() *
               ConstMap<T>(b, k, n, Eigen::OuterStride<>(b_stride)));
}

/// Partial results that a reduction keeps, so that the compiler may use vectors without changing the order of the sum.
constexpr std::int64_t kLanes = 8;

/// Adds up the lanes pairwise.
template <class T>
T fold(const T (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <class T>
T dot(std::int64_t n, const T* a, const T* b) {
  T lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane) lanes[lane] += a[i] * b[i];
  return fold(lanes);
}

template <class T>
void axpy(std::int64_t n, T alpha, const T* x, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += alpha * x[i];
}

template <class T>
void scale(std::int64_t n, T alpha, T* x) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= alpha;
}

template <class T>
void exp_shifted(std::int64_t n, T shift, T* x) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = exponential(x[i] - shift);
}

template <class T>
T sum(std::int64_t n, const T* x) {
  T lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane];
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane) lanes[lane] += x[i];
  return fold(lanes);
}

template <class T>
T maximum(std::int64_t n, const T* x) {
  T lanes[kLanes];
  for (T& lane : lanes) lane = -std::numeric_limits<T>::infinity();
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
    }
  }
  for (; i < n; ++i) lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
  T largest = lanes[0];
  for (const T lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

template <class T>
bool all_finite(std::int64_t n, const T* x) {
  // 0 times a finite number is 0, times anything else NaN.
  T lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane] * T{0};
  }
  for (; i < n; ++i) lanes[0] += x[i] * T{0};
  return fold(lanes) == T{0};
}

}  // namespace

template <class T>
const TileKernels<T>& tile_kernels() noexcept {
  static constexpr TileKernels<T> kKernels = {multiply_transposed<T>,
                                              add_product<T>,
                                              transposed_multiply<T>,
                                              dot<T>,
                                              axpy<T>,
                                              scale<T>,
                                              exp_shifted<T>,
                                              sum<T>,
                                              maximum<T>,
                                              all_finite<T>};
  return kKernels;
}

template const TileKernels<float>& tile_kernels<float>() noexcept;
template const TileKernels<double>& tile_kernels<double>() noexcept;

}  // namespace cobble::kernels
