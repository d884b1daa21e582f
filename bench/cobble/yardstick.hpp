#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cobble/aligned_buffer.hpp"
#include "openblas.hpp"

// What this machine can do: the roofs that measured times are held against.

namespace cobble::program {

class Yardstick {
 public:
  static constexpr std::int64_t kGemmSize = 2048;

  /// Clears OPENBLAS_* and loads OpenBLAS where it is installed, with kernels for this processor's vectors also where
  /// it does not know the processor: a yardstick is not to be shorter than it could be.
  Yardstick();
  ~Yardstick();

  const OpenBlas* openblas() const noexcept { return openblas_.get(); }
  /// The same, with the kernels that it chooses itself.
  const OpenBlas* detected_openblas() const noexcept { return detected_ ? detected_.get() : openblas_.get(); }
  const std::vector<std::string>& cleared_environment() const noexcept { return cleared_environment_; }

  /// The rates of `count` products of two 2048 x 2048 matrices on `threads` threads, in double for "f64", otherwise in
  /// float; nothing without OpenBLAS. Waits until OpenBLAS's threads are asleep, so that they do not disturb what is
  /// measured next.
  std::vector<double> gemm_gflops(const std::string& dtype, int threads, int count);
  /// The rate of such products, `count` of them, with the kernels that OpenBLAS chooses itself.
  std::optional<double> detected_gemm_gflops(const std::string& dtype, int threads, int count);

 private:
  template <class T>
  struct Matrices;
  template <class T>
  std::vector<double> rates(const OpenBlas& openblas, std::unique_ptr<Matrices<T>>& matrices, int threads, int count);

  std::vector<std::string> cleared_environment_;
  std::unique_ptr<OpenBlas> openblas_;
  std::unique_ptr<OpenBlas> detected_;  ///< where it is another one
  std::unique_ptr<Matrices<float>> float_matrices_;
  std::unique_ptr<Matrices<double>> double_matrices_;
};

/// Bytes read and written by second, in copies of large arrays by the threads of the current arena: the best of a few.
double copy_bytes_per_second();

}  // namespace cobble::program
