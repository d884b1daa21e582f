#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// OpenBLAS, the yardstick of `cobble bench`. It is loaded when the benchmark asks for it and not linked, because its
// constructor reads OPENBLAS_* from the environment and starts threads: this way the benchmark can clear these before,
// and no other subcommand pays.

namespace cobble::program {

/// Removes all variables OPENBLAS_* from the environment of this process and returns their names.
std::vector<std::string> clear_openblas_environment();

class OpenBlas {
 public:
  /// Null where it is not installed. Call clear_openblas_environment first: what the constructor has read stays.
  static std::unique_ptr<OpenBlas> load();

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
  explicit OpenBlas(std::unique_ptr<Functions> functions);
  std::unique_ptr<Functions> functions_;
};

}  // namespace cobble::program
