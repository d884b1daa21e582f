#include "reorder/cholmod_orderings.hpp"

#if __has_include(<cholmod.h>)
#include <cholmod.h>
#else
#include <suitesparse/cholmod.h>
#endif

#include <cstddef>
#include <mutex>
#include <string>

#include "cobble/error.hpp"

namespace cobble::detail {
namespace {

/// CHOLMOD's workspace and settings. Neither prints nor calls anything on an error.
class Cholmod {
 public:
  Cholmod() {
    cholmod_l_start(&common_);
    common_.print = 0;
    common_.try_catch = 1;
  }
  ~Cholmod() { cholmod_l_finish(&common_); }
  Cholmod(const Cholmod&) = delete;
  Cholmod& operator=(const Cholmod&) = delete;

  cholmod_common* common() noexcept { return &common_; }
  void require(bool success, const char* function) const {
    if (success && common_.status >= CHOLMOD_OK) return;
    const bool missing = common_.status == CHOLMOD_NOT_INSTALLED;
    throw Error(missing ? ErrorCode::unsupported : ErrorCode::overflow,
                std::string(function) + (missing ? " is not part of this CHOLMOD" : " fails with status ") +
                    (missing ? std::string() : std::to_string(common_.status)));
  }

 private:
  cholmod_common common_{};
};

/// The transpose of a CSR pattern as CHOLMOD sees it: its rows are compressed columns.
class CholmodPattern {
 public:
  explicit CholmodPattern(const CsrPatternView& matrix, int symmetry)
      : offsets_(matrix.row_offsets.begin(), matrix.row_offsets.end()),
        indices_(matrix.column_indices.begin(), matrix.column_indices.end()) {
    indices_.resize(indices_.size() + 1);  // never a null pointer
    sparse_.nrow = static_cast<std::size_t>(matrix.columns);
    sparse_.ncol = static_cast<std::size_t>(matrix.rows);
    sparse_.nzmax = static_cast<std::size_t>(matrix.entries());
    sparse_.p = offsets_.data();
    sparse_.i = indices_.data();
    sparse_.stype = symmetry;
    sparse_.itype = CHOLMOD_LONG;
    sparse_.xtype = CHOLMOD_PATTERN;
    sparse_.dtype = CHOLMOD_DOUBLE;
    sparse_.sorted = 1;
    sparse_.packed = 1;
  }
  CholmodPattern(const CholmodPattern&) = delete;
  CholmodPattern& operator=(const CholmodPattern&) = delete;

  cholmod_sparse* get() noexcept { return &sparse_; }

 private:
  std::vector<SuiteSparse_long> offsets_;
  std::vector<SuiteSparse_long> indices_;
  cholmod_sparse sparse_{};
};

/// Of a symmetric matrix CHOLMOD reads one triangle.
constexpr int kUpperTriangle = 1;
constexpr int kUnsymmetric = 0;

std::vector<std::int32_t> narrowed(const std::vector<SuiteSparse_long>& order) {
  std::vector<std::int32_t> result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) result[i] = static_cast<std::int32_t>(order[i]);
  return result;
}

}  // namespace

std::vector<std::int32_t> amd_order(const CsrPatternView& graph) {
  if (graph.rows == 0) return {};
  Cholmod cholmod;
  CholmodPattern matrix(graph, kUpperTriangle);
  std::vector<SuiteSparse_long> order(static_cast<std::size_t>(graph.rows));
  const bool success = cholmod_l_amd(matrix.get(), nullptr, 0, order.data(), cholmod.common()) != 0;
  cholmod.require(success, "cholmod_l_amd");
  return narrowed(order);
}

std::vector<std::int32_t> nested_dissection_order([[maybe_unused]] const CsrPatternView& graph) {
#ifdef NPARTITION
  throw Error(ErrorCode::unsupported, "nested_dissection: this CHOLMOD comes without METIS");
#else
  if (graph.rows == 0) return {};
  // METIS keeps the state of its random numbers for the whole process.
  static std::mutex metis_runs;
  const std::lock_guard<std::mutex> lock(metis_runs);
  Cholmod cholmod;
  CholmodPattern matrix(graph, kUpperTriangle);
  std::vector<SuiteSparse_long> order(static_cast<std::size_t>(graph.rows));
  const bool success = cholmod_l_metis(matrix.get(), nullptr, 0, /*postorder=*/1, order.data(), cholmod.common()) != 0;
  cholmod.require(success, "cholmod_l_metis");
  return narrowed(order);
#endif
}

std::vector<std::int32_t> colamd_column_order(const CsrPatternView& matrix) {
  if (matrix.columns == 0) return {};
  Cholmod cholmod;
  // cholmod_l_colamd orders the rows of what it is given by COLAMD of the transpose: ours, as it reads our rows as
  // columns.
  CholmodPattern transposed(matrix, kUnsymmetric);
  std::vector<SuiteSparse_long> order(static_cast<std::size_t>(matrix.columns));
  const bool success =
      cholmod_l_colamd(transposed.get(), nullptr, 0, /*postorder=*/1, order.data(), cholmod.common()) != 0;
  cholmod.require(success, "cholmod_l_colamd");
  return narrowed(order);
}

}  // namespace cobble::detail
