#include <Eigen/Core>
#include <Eigen/SparseCore>
#include <cobble/cobble.hpp>
#include <cobble/interop/eigen.hpp>
#include <cobble/interop/suitesparse.hpp>
#include <cstdio>

// A consumer of the interop headers: an Eigen matrix becomes a pattern, the pattern a CHOLMOD matrix.
int main() {
  Eigen::SparseMatrix<double> matrix(5, 7);
  matrix.insert(1, 2) = 3.0;
  matrix.insert(4, 6) = 5.0;
  const cobble::Pattern pattern = cobble::pattern_from_eigen(matrix);

  cholmod_common common;
  cholmod_l_start(&common);
  long long entries = 0;
  {
    const cobble::CsrPattern rows = pattern.to_csr();
    const cobble::CholmodSparse sparse = cobble::to_cholmod(rows.view(), common);
    entries = static_cast<long long>(cholmod_l_nnz(sparse.get(), &common));
  }
  cholmod_l_finish(&common);
  std::printf("%lld entries\n", entries);
  return entries == 2 ? 0 : 1;
}
