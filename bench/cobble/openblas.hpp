#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// OpenBLAS, the yardstick of `cobble bench`. It is loaded when the benchmark asks for it and not linked, because its
// constructor reads OPENBLAS_* from the environment and starts threads: this way the benchmark can clear these before,
// and no other subcommand pays.

namespace cobble::program {

/// Removes all variables OPENBLAS_* from the environment of this process and returns their names.
std::vector<std::string> clear_openblas_environment();

/// Kernels for the vectors that this processor has, where `detected` are for less: an OpenBLAS older than the processor
/// does not know it and takes kernels from before AVX. None where `detected` will do.
std::optional<std::string> better_openblas_core(const std::string& detected);

class OpenBlas {
 public:
  /// OpenBLAS with the kernels that it chooses itself; null where it is not installed. Call clear_openblas_environment
  /// first: what the constructor has read stays.
  static std::unique_ptr<OpenBlas> load();
  /// Once more, with the kernels of `core` ("SkylakeX"): a second copy of the library, with threads of its own. Null
  /// when it has no such kernels or there is no way to load it twice.
  static std::unique_ptr<OpenBlas> load_again(const std::string& core);

  ~OpenBlas();
  OpenBlas(const OpenBlas&) = delete;
  OpenBlas& operator=(const OpenBlas&) = delete;

  void set_threads(int threads) const;
  /// "0.3.21"
  std::string version() const;
  /// The kernels that it chose, e.g. "SkylakeX".
  std::string core() const;

  /// C = alpha A B + beta C, row by row: A is m x k (k x m when `transpose_a`), B is k x n (n x k when `transpose_b`).
  struct Product {
    bool transpose_a = false;
    bool transpose_b = false;
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
  };
  void multiply(const Product& product, float alpha, const float* a, const float* b, float beta, float* c) const;
  void multiply(const Product& product, double alpha, const double* a, const double* b, double beta, double* c) const;

 private:
  struct Functions;
  static std::unique_ptr<OpenBlas> from_library(void* library);
  explicit OpenBlas(std::unique_ptr<Functions> functions);
  std::unique_ptr<Functions> functions_;
};

}  // namespace cobble::program
