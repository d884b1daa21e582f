#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/random.hpp"

// Row-major matrices for the tests of kernels.

namespace cobble::test {

/// Its memory ends with the last element, so that a sanitizer sees any access beyond; what lies between rows is NaN.
template <class T>
class GappedMatrix {
 public:
  GappedMatrix(std::int64_t rows, std::int64_t columns, std::int64_t stride)
      : rows_(rows), columns_(columns), stride_(stride) {
    memory_.assign(rows == 0 ? 0 : static_cast<std::size_t>((rows - 1) * stride + columns),
                   std::numeric_limits<T>::quiet_NaN());
  }
  /// Nearly normal numbers.
  GappedMatrix(std::int64_t rows, std::int64_t columns, std::int64_t stride, Random& random)
      : GappedMatrix(rows, columns, stride) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) (*this)(i, j) = static_cast<T>(random.normal());
    }
  }

  T& operator()(std::int64_t i, std::int64_t j) { return memory_[static_cast<std::size_t>(i * stride_ + j)]; }
  T operator()(std::int64_t i, std::int64_t j) const { return memory_[static_cast<std::size_t>(i * stride_ + j)]; }
  T* data() { return memory_.data(); }
  const T* data() const { return memory_.data(); }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t stride() const { return stride_; }

  /// Whether nothing was written between rows.
  bool gaps_are_untouched() const {
    bool untouched = true;
    for (std::int64_t i = 0; i + 1 < rows_; ++i) {
      for (std::int64_t j = columns_; j < stride_; ++j) untouched = untouched && std::isnan((*this)(i, j));
    }
    return untouched;
  }

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t stride_;
  std::vector<T> memory_;
};

/// Whether x is the sum of `terms` rounded terms whose magnitudes sum up to `magnitude`.
template <class T>
bool is_sum(T x, double exact, double magnitude, std::int64_t terms) {
  const double unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  // Twice the bound of recursive summation leaves room for the rounding of the double reference.
  return std::abs(static_cast<double>(x) - exact) <= unit * magnitude * static_cast<double>(terms + 4);
}

}  // namespace cobble::test
