#pragma once

// GraphBLAS.h must stand within extern "C", what it includes itself must not.
#include <cmath>
#include <complex>
#include <cstdbool>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
extern "C" {
#include <GraphBLAS.h>
}
#if __has_include(<cholmod.h>)
#include <cholmod.h>
#else
#include <suitesparse/cholmod.h>
#endif

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "cobble/convert.hpp"
#include "cobble/csr.hpp"
#include "cobble/error.hpp"

// CHOLMOD's and GraphBLAS's matrices as ours and ours as theirs, always as copies. Header only: a program that uses it
// links CHOLMOD or GraphBLAS itself (target cobble::suitesparse).

namespace cobble {

// ----------------------------------------------------------------------------------------------------------- CHOLMOD

/// Frees a matrix by the function of its index type.
struct CholmodFree {
  cholmod_common* common = nullptr;
  void operator()(cholmod_sparse* matrix) const {
    matrix->itype == CHOLMOD_LONG ? cholmod_l_free_sparse(&matrix, common) : cholmod_free_sparse(&matrix, common);
  }
};
/// Owns a cholmod_sparse. The cholmod_common that made it must outlive it.
using CholmodSparse = std::unique_ptr<cholmod_sparse, CholmodFree>;

/// Structure and values. Any index type, packed or not, sorted or not. stype as CHOLMOD defines it: when not 0, the
/// other triangle's stored entries are ignored and the one that counts is mirrored. A pattern matrix gets the value 1.
/// Throws Error{invalid_structure, overflow}, Error{unsupported} on complex values.
CsrMatrix<double> csr_from_cholmod(const cholmod_sparse& matrix, Duplicates duplicates = Duplicates::merge);
/// The structure alone, of complex matrices too.
CsrPattern csr_pattern_from_cholmod(const cholmod_sparse& matrix, Duplicates duplicates = Duplicates::merge);

/// An unsymmetric, packed, sorted matrix with indices of common.itype: int after cholmod_start, SuiteSparse_long after
/// cholmod_l_start. Throws what validate() throws, Error{overflow} when int is too small or memory is out.
CholmodSparse to_cholmod(const CsrView<double>& matrix, cholmod_common& common);
/// CHOLMOD has no float values, and by conversion to a pattern they would be lost.
CholmodSparse to_cholmod(const CsrView<float>& matrix, cholmod_common& common) = delete;
/// T is double.
template <class T>
CholmodSparse to_cholmod(const CsrMatrix<T>& matrix, cholmod_common& common) {
  return to_cholmod(matrix.view(), common);
}
/// The same without values (CHOLMOD_PATTERN).
CholmodSparse to_cholmod(const CsrPatternView& matrix, cholmod_common& common);

// --------------------------------------------------------------------------------------------------------- GraphBLAS

struct GraphblasFree {
  void operator()(GrB_Matrix matrix) const { GrB_Matrix_free(&matrix); }
};
/// Owns a GrB_Matrix; get() is what GraphBLAS's functions take. Must go before GrB_finalize.
using GraphblasMatrix = std::unique_ptr<std::remove_pointer_t<GrB_Matrix>, GraphblasFree>;

/// Structure and values of a matrix of any built-in real type, converted to double (bool to 0 and 1). Completes pending
/// work on the matrix. Throws Error{invalid_argument} with GraphBLAS's reason, Error{overflow} when a size does not fit
/// 31 bits, Error{unsupported} on a type that does not convert.
CsrMatrix<double> csr_from_graphblas(GrB_Matrix matrix);
/// The structure alone.
CsrPattern csr_pattern_from_graphblas(GrB_Matrix matrix);

/// GrB_FP64, GrB_FP32, and GrB_BOOL with every entry true. Throws what validate() throws, and Error with GraphBLAS's
/// reason (GrB_PANIC: GrB_init was not called).
GraphblasMatrix to_graphblas(const CsrView<double>& matrix);
GraphblasMatrix to_graphblas(const CsrView<float>& matrix);
GraphblasMatrix to_graphblas(const CsrPatternView& matrix);
template <class T>
GraphblasMatrix to_graphblas(const CsrMatrix<T>& matrix) {
  return to_graphblas(matrix.view());
}

// ---------------------------------------------------------------------------------------------------- implementation

namespace detail {

inline std::int64_t suitesparse_size(std::uint64_t size, const char* what) {
  if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(ErrorCode::overflow,
                std::string(what) + " = " + std::to_string(size) + " does not fit the range [0, 2147483647]");
  }
  return static_cast<std::int64_t>(size);
}

[[noreturn]] inline void fail_cholmod(const std::string& message) {
  throw Error(ErrorCode::invalid_structure, "cholmod_sparse: " + message);
}

/// Fills `result` and calls visit(k) with the place in the arrays of every entry that counts, mirrored ones after the
/// one that they mirror. Offset and Index are the types of p and of i and nz.
template <class Offset, class Index, class Visit>
void coordinates_from_cholmod(const cholmod_sparse& matrix, CooPattern& result, Visit visit) {
  const auto* offsets = static_cast<const Offset*>(matrix.p);
  const auto* indices = static_cast<const Index*>(matrix.i);
  const auto* counts = matrix.packed != 0 ? nullptr : static_cast<const Index*>(matrix.nz);
  if (offsets == nullptr) fail_cholmod("p is null");
  if (matrix.packed == 0 && counts == nullptr && result.columns > 0) fail_cholmod("nz is null in an unpacked matrix");

  for (std::int64_t column = 0; column < result.columns; ++column) {
    const std::int64_t begin = offsets[column];
    const std::int64_t size = counts == nullptr ? offsets[column + 1] - begin : std::int64_t{counts[column]};
    if (begin < 0 || size < 0 || static_cast<std::uint64_t>(begin) > matrix.nzmax ||
        static_cast<std::uint64_t>(size) > matrix.nzmax - static_cast<std::uint64_t>(begin)) {
      fail_cholmod("column " + std::to_string(column) + " has " + std::to_string(size) + " entries from " +
                   std::to_string(begin) + " on, outside the " + std::to_string(matrix.nzmax) + " of nzmax");
    }
    if (size > 0 && indices == nullptr) fail_cholmod("i is null");
    for (std::int64_t k = begin; k < begin + size; ++k) {
      const std::int64_t row = indices[k];
      if (row < 0 || row >= result.rows) {
        fail_cholmod("i[" + std::to_string(k) + "] = " + std::to_string(row) + " is outside [0, " +
                     std::to_string(result.rows) + ")");
      }
      const bool ignored = (matrix.stype > 0 && row > column) || (matrix.stype < 0 && row < column);
      if (ignored) continue;
      result.row_indices.push_back(static_cast<std::int32_t>(row));
      result.column_indices.push_back(static_cast<std::int32_t>(column));
      visit(k);
      if (matrix.stype != 0 && row != column) {
        result.row_indices.push_back(static_cast<std::int32_t>(column));
        result.column_indices.push_back(static_cast<std::int32_t>(row));
        visit(k);
      }
    }
  }
}

template <class Visit>
void coordinates_from_cholmod(const cholmod_sparse& matrix, CooPattern& result, Visit visit) {
  result.rows = suitesparse_size(matrix.nrow, "nrow");
  result.columns = suitesparse_size(matrix.ncol, "ncol");
  if (matrix.stype != 0 && matrix.nrow != matrix.ncol) {
    fail_cholmod("stype = " + std::to_string(matrix.stype) + " (symmetric), but it is " + std::to_string(matrix.nrow) +
                 " x " + std::to_string(matrix.ncol));
  }
  switch (matrix.itype) {
    case CHOLMOD_INT: return coordinates_from_cholmod<int, int>(matrix, result, visit);
    case CHOLMOD_INTLONG: return coordinates_from_cholmod<SuiteSparse_long, int>(matrix, result, visit);
    case CHOLMOD_LONG: return coordinates_from_cholmod<SuiteSparse_long, SuiteSparse_long>(matrix, result, visit);
    default: fail_cholmod("itype = " + std::to_string(matrix.itype) + " is unknown");
  }
}

/// CHOLMOD neither prints nor calls an error handler while one of these lives.
class QuietCholmod {
 public:
  explicit QuietCholmod(cholmod_common& common) : common_(common), try_catch_(common.try_catch) {
    common.try_catch = 1;
  }
  ~QuietCholmod() { common_.try_catch = try_catch_; }
  QuietCholmod(const QuietCholmod&) = delete;
  QuietCholmod& operator=(const QuietCholmod&) = delete;

 private:
  cholmod_common& common_;
  int try_catch_;
};

/// `transposed` is the CSR of the transpose, which is the CSC of the matrix.
inline CholmodSparse cholmod_from_transposed(const CsrPatternView& transposed, int xtype, cholmod_common& common) {
  const bool is_long = common.itype == CHOLMOD_LONG;
  if (!is_long && transposed.entries() > std::numeric_limits<int>::max()) {
    throw Error(ErrorCode::overflow, std::to_string(transposed.entries()) +
                                         " entries do not fit int indices; start CHOLMOD by cholmod_l_start");
  }
  const QuietCholmod quiet(common);
  const auto allocate = is_long ? cholmod_l_allocate_sparse : cholmod_allocate_sparse;
  CholmodSparse result(allocate(static_cast<std::size_t>(transposed.columns), static_cast<std::size_t>(transposed.rows),
                                static_cast<std::size_t>(transposed.entries()), 1, 1, 0, xtype, &common),
                       CholmodFree{&common});
  if (result == nullptr) {
    throw Error(ErrorCode::overflow, "CHOLMOD cannot allocate a matrix of " + std::to_string(transposed.entries()) +
                                         " entries (status " + std::to_string(common.status) + ")");
  }
  const auto fill = [&](auto* offsets, auto* indices) {
    using Index = std::remove_pointer_t<decltype(indices)>;
    const auto convert = [](auto value) { return static_cast<Index>(value); };
    std::transform(transposed.row_offsets.begin(), transposed.row_offsets.end(), offsets, convert);
    std::transform(transposed.column_indices.begin(), transposed.column_indices.end(), indices, convert);
  };
  if (is_long) {
    fill(static_cast<SuiteSparse_long*>(result->p), static_cast<SuiteSparse_long*>(result->i));
  } else {
    fill(static_cast<int*>(result->p), static_cast<int*>(result->i));
  }
  return result;
}

inline std::string graphblas_reason(GrB_Info info) {
  switch (info) {
    case GrB_UNINITIALIZED_OBJECT: return "GrB_UNINITIALIZED_OBJECT";
    case GrB_NULL_POINTER: return "GrB_NULL_POINTER";
    case GrB_INVALID_VALUE: return "GrB_INVALID_VALUE";
    case GrB_INVALID_INDEX: return "GrB_INVALID_INDEX";
    case GrB_DOMAIN_MISMATCH: return "GrB_DOMAIN_MISMATCH";
    case GrB_OUT_OF_MEMORY: return "GrB_OUT_OF_MEMORY";
    case GrB_INVALID_OBJECT: return "GrB_INVALID_OBJECT";
    case GrB_PANIC: return "GrB_PANIC (was GrB_init called?)";
    default: return "GrB_Info " + std::to_string(static_cast<int>(info));
  }
}

inline void require_graphblas(GrB_Info info, const char* function) {
  if (info == GrB_SUCCESS) return;
  const ErrorCode code = info == GrB_OUT_OF_MEMORY     ? ErrorCode::overflow
                         : info == GrB_DOMAIN_MISMATCH ? ErrorCode::unsupported
                                                       : ErrorCode::invalid_argument;
  throw Error(code, std::string(function) + " returns " + graphblas_reason(info));
}

/// Fills `result`; extract(rows, columns, &entries) calls the extractTuples of a type.
template <class Extract>
void coordinates_from_graphblas(GrB_Matrix matrix, CooPattern& result, Extract extract) {
  GrB_Index rows = 0;
  GrB_Index columns = 0;
  GrB_Index entries = 0;
  require_graphblas(GrB_Matrix_nrows(&rows, matrix), "GrB_Matrix_nrows");
  require_graphblas(GrB_Matrix_ncols(&columns, matrix), "GrB_Matrix_ncols");
  require_graphblas(GrB_Matrix_nvals(&entries, matrix), "GrB_Matrix_nvals");
  result.rows = suitesparse_size(rows, "rows of the GrB_Matrix");
  result.columns = suitesparse_size(columns, "columns of the GrB_Matrix");
  std::vector<GrB_Index> row_indices(entries);
  std::vector<GrB_Index> column_indices(entries);
  require_graphblas(extract(row_indices.data(), column_indices.data(), &entries), "GrB_Matrix_extractTuples");
  const auto narrow = [](GrB_Index index) { return static_cast<std::int32_t>(index); };  // GraphBLAS checks its indices
  result.row_indices.resize(entries);
  result.column_indices.resize(entries);
  std::transform(row_indices.begin(), row_indices.end(), result.row_indices.begin(), narrow);
  std::transform(column_indices.begin(), column_indices.end(), result.column_indices.begin(), narrow);
}

template <class T, class Import>
GraphblasMatrix graphblas_from_csr(const CsrPatternView& matrix, const T* values, GrB_Type type, Import import) {
  const std::vector<GrB_Index> offsets(matrix.row_offsets.begin(), matrix.row_offsets.end());
  const std::vector<GrB_Index> indices(matrix.column_indices.begin(), matrix.column_indices.end());
  // Null arrays are not allowed, even without entries.
  const GrB_Index no_index = 0;
  const T no_value{};
  GrB_Matrix result = nullptr;
  require_graphblas(
      import(&result, type, static_cast<GrB_Index>(matrix.rows), static_cast<GrB_Index>(matrix.columns), offsets.data(),
             indices.empty() ? &no_index : indices.data(), indices.empty() ? &no_value : values, offsets.size(),
             indices.size(), indices.size(), GrB_CSR_FORMAT),
      "GrB_Matrix_import");
  return GraphblasMatrix(result);
}

}  // namespace detail

inline CsrMatrix<double> csr_from_cholmod(const cholmod_sparse& matrix, Duplicates duplicates) {
  if (matrix.xtype != CHOLMOD_REAL && matrix.xtype != CHOLMOD_PATTERN) {
    throw Error(ErrorCode::unsupported, "cholmod_sparse: xtype = " + std::to_string(matrix.xtype) +
                                            ", expected CHOLMOD_PATTERN or CHOLMOD_REAL");
  }
  const bool has_values = matrix.xtype == CHOLMOD_REAL;
  if (has_values && matrix.dtype != CHOLMOD_DOUBLE) {
    throw Error(ErrorCode::unsupported,
                "cholmod_sparse: dtype = " + std::to_string(matrix.dtype) + ", expected CHOLMOD_DOUBLE");
  }
  if (has_values && matrix.x == nullptr && matrix.nzmax > 0) detail::fail_cholmod("x is null in a real matrix");
  const auto* values = static_cast<const double*>(matrix.x);
  CooMatrix<double> coordinates;
  detail::coordinates_from_cholmod(matrix, coordinates,
                                   [&](std::int64_t k) { coordinates.values.push_back(has_values ? values[k] : 1.0); });
  return to_csr(coordinates, duplicates);
}

inline CsrPattern csr_pattern_from_cholmod(const cholmod_sparse& matrix, Duplicates duplicates) {
  CooPattern coordinates;
  detail::coordinates_from_cholmod(matrix, coordinates, [](std::int64_t /*k*/) {});
  return to_csr(coordinates, duplicates);
}

inline CholmodSparse to_cholmod(const CsrView<double>& matrix, cholmod_common& common) {
  const CsrMatrix<double> transposed = transpose(matrix);
  CholmodSparse result = detail::cholmod_from_transposed(transposed, CHOLMOD_REAL, common);
  std::copy(transposed.values.begin(), transposed.values.end(), static_cast<double*>(result->x));
  return result;
}

inline CholmodSparse to_cholmod(const CsrPatternView& matrix, cholmod_common& common) {
  return detail::cholmod_from_transposed(transpose(matrix), CHOLMOD_PATTERN, common);
}

inline CsrMatrix<double> csr_from_graphblas(GrB_Matrix matrix) {
  CooMatrix<double> coordinates;
  detail::coordinates_from_graphblas(matrix, coordinates, [&](GrB_Index* rows, GrB_Index* columns, GrB_Index* entries) {
    coordinates.values.resize(*entries);
    return GrB_Matrix_extractTuples_FP64(rows, columns, coordinates.values.data(), entries, matrix);
  });
  return to_csr(coordinates);
}

inline CsrPattern csr_pattern_from_graphblas(GrB_Matrix matrix) {
  CooPattern coordinates;
  detail::coordinates_from_graphblas(matrix, coordinates, [&](GrB_Index* rows, GrB_Index* columns, GrB_Index* entries) {
    return GrB_Matrix_extractTuples_BOOL(rows, columns, nullptr, entries, matrix);
  });
  return to_csr(coordinates);
}

inline GraphblasMatrix to_graphblas(const CsrView<double>& matrix) {
  validate(matrix);
  return detail::graphblas_from_csr(matrix, matrix.values.data(), GrB_FP64, GrB_Matrix_import_FP64);
}

inline GraphblasMatrix to_graphblas(const CsrView<float>& matrix) {
  validate(matrix);
  return detail::graphblas_from_csr(matrix, matrix.values.data(), GrB_FP32, GrB_Matrix_import_FP32);
}

inline GraphblasMatrix to_graphblas(const CsrPatternView& matrix) {
  validate(matrix);
  const auto values = std::make_unique<bool[]>(matrix.column_indices.size());
  std::fill_n(values.get(), matrix.column_indices.size(), true);
  return detail::graphblas_from_csr(matrix, values.get(), GrB_BOOL, GrB_Matrix_import_BOOL);
}

}  // namespace cobble
