#include "pattern/any_pair_product.hpp"

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

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "cobble/convert.hpp"
#include "cobble/error.hpp"

namespace cobble::detail {
namespace {

/// A panel's product has at most so many pairs, unless a single row has more.
constexpr std::int64_t kPanelPairs = std::int64_t{1} << 22;

void require(GrB_Info info, const char* function) {
  if (info == GrB_SUCCESS) return;
  const bool memory = info == GrB_OUT_OF_MEMORY;
  throw Error(memory ? ErrorCode::overflow : ErrorCode::unsupported,
              std::string(function) +
                  (memory ? " is out of memory" : " fails with GrB_Info " + std::to_string(static_cast<int>(info))));
}

/// Once in the process, also from several threads at a time.
void initialise_graphblas() {
  [[maybe_unused]] static const bool done = [] {
    const GrB_Info info = GrB_init(GrB_NONBLOCKING);
    if (info != GrB_INVALID_VALUE) require(info, "GrB_init");  // GrB_INVALID_VALUE: the program has done it
    return true;
  }();
}

struct FreeMatrix {
  void operator()(GrB_Matrix matrix) const { GrB_Matrix_free(&matrix); }
};
using Matrix = std::unique_ptr<std::remove_pointer_t<GrB_Matrix>, FreeMatrix>;
struct FreeDescriptor {
  void operator()(GrB_Descriptor descriptor) const { GrB_Descriptor_free(&descriptor); }
};
using Descriptor = std::unique_ptr<std::remove_pointer_t<GrB_Descriptor>, FreeDescriptor>;

/// One thread: callers that want more have threads of their own.
Descriptor make_descriptor(bool transpose_second) {
  GrB_Descriptor raw = nullptr;
  require(GrB_Descriptor_new(&raw), "GrB_Descriptor_new");
  Descriptor descriptor(raw);
  require(GxB_Desc_set_INT32(raw, GxB_DESCRIPTOR_NTHREADS, 1), "GxB_Desc_set");
  require(GrB_Descriptor_set(raw, GrB_MASK, GrB_STRUCTURE), "GrB_Descriptor_set");
  if (transpose_second) require(GrB_Descriptor_set(raw, GrB_INP1, GrB_TRAN), "GrB_Descriptor_set");
  return descriptor;
}

/// Rows [row_begin, row_end) of a matrix.
Matrix to_graphblas(const CsrPatternView& matrix, std::int64_t row_begin, std::int64_t row_end) {
  const auto at = [&](std::int64_t row) { return matrix.row_offsets[static_cast<std::size_t>(row)]; };
  std::vector<GrB_Index> offsets;
  offsets.reserve(static_cast<std::size_t>(row_end - row_begin + 1));
  for (std::int64_t row = row_begin; row <= row_end; ++row) {
    offsets.push_back(static_cast<GrB_Index>(at(row) - at(row_begin)));
  }
  const auto* const first = matrix.column_indices.data() + at(row_begin);
  const auto entries = static_cast<std::size_t>(at(row_end) - at(row_begin));
  std::vector<GrB_Index> columns(first, first + entries);
  columns.resize(std::max<std::size_t>(1, entries));  // null arrays are not allowed
  const auto values = std::make_unique<bool[]>(columns.size());
  std::fill_n(values.get(), columns.size(), true);
  GrB_Matrix result = nullptr;
  require(GrB_Matrix_import_BOOL(&result, GrB_BOOL, static_cast<GrB_Index>(row_end - row_begin),
                                 static_cast<GrB_Index>(matrix.columns), offsets.data(), columns.data(), values.get(),
                                 offsets.size(), entries, entries, GrB_CSR_FORMAT),
          "GrB_Matrix_import");
  return Matrix(result);
}

/// Rows [row_begin, row_end) of a pattern, numbered from 0.
CsrPattern rows_of(const Pattern& pattern, std::int64_t row_begin, std::int64_t row_end) {
  CsrPattern result;
  result.rows = row_end - row_begin;
  result.columns = pattern.columns();
  std::vector<ColumnRun> runs;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    runs.clear();
    pattern.append_runs(row, 0, pattern.columns(), runs);
    for (const ColumnRun& run : runs) {
      for (std::int32_t column = run.begin; column < run.end; ++column) result.column_indices.push_back(column);
    }
    result.row_offsets.push_back(static_cast<std::int64_t>(result.column_indices.size()));
  }
  return result;
}

void export_rows(GrB_Matrix product, std::int64_t row_begin, std::int64_t pairs,
                 const std::function<void(const ProductRows&)>& visit) {
  GrB_Index offset_count = 0;
  GrB_Index column_count = 0;
  GrB_Index value_count = 0;
  require(GrB_Matrix_exportSize(&offset_count, &column_count, &value_count, GrB_CSR_FORMAT, product),
          "GrB_Matrix_exportSize");
  std::vector<GrB_Index> offsets(offset_count);
  std::vector<GrB_Index> columns(std::max<GrB_Index>(1, column_count));
  const auto values = std::make_unique<bool[]>(std::max<GrB_Index>(1, value_count));
  require(GrB_Matrix_export_BOOL(offsets.data(), columns.data(), values.get(), &offset_count, &column_count,
                                 &value_count, GrB_CSR_FORMAT, product),
          "GrB_Matrix_export");
  columns.resize(static_cast<std::size_t>(pairs));
  visit({row_begin, pairs, offsets, columns});
}

}  // namespace

void any_pair_product(const CsrPatternView& a, const CsrPatternView& b, const Pattern* mask, ProductWanted wanted,
                      const std::function<void(const ProductRows&)>& visit) {
  initialise_graphblas();
  const CsrPattern b_transposed = transpose(b);
  // Under a mask GraphBLAS intersects rows of a and b, without one it adds up rows of the transpose.
  const CsrPatternView second = mask != nullptr ? b : b_transposed.view();
  const Matrix second_matrix = to_graphblas(second, 0, second.rows);
  const Descriptor descriptor = make_descriptor(mask != nullptr);

  /// At least the pairs of a row, and at most those of the mask or a full row.
  const auto most_pairs = [&](std::int64_t row) {
    if (mask != nullptr) return mask->pairs(row, row + 1);
    std::int64_t most = 0;
    for (const std::int32_t column : a.row(row)) most += std::ssize(b_transposed.view().row(column));
    return std::min(most, b.rows);
  };
  for (std::int64_t row_begin = 0; row_begin < a.rows;) {
    std::int64_t row_end = row_begin + 1;
    for (std::int64_t most = most_pairs(row_begin); row_end < a.rows; ++row_end) {
      most += most_pairs(row_end);
      if (most > kPanelPairs) break;
    }
    const Matrix panel = to_graphblas(a, row_begin, row_end);
    Matrix mask_panel;
    if (mask != nullptr) mask_panel = to_graphblas(rows_of(*mask, row_begin, row_end), 0, row_end - row_begin);
    GrB_Matrix raw = nullptr;
    require(GrB_Matrix_new(&raw, GrB_BOOL, static_cast<GrB_Index>(row_end - row_begin), static_cast<GrB_Index>(b.rows)),
            "GrB_Matrix_new");
    const Matrix product(raw);
    require(
        GrB_mxm(raw, mask_panel.get(), nullptr, GxB_ANY_PAIR_BOOL, panel.get(), second_matrix.get(), descriptor.get()),
        "GrB_mxm");
    GrB_Index pairs = 0;
    require(GrB_Matrix_nvals(&pairs, raw), "GrB_Matrix_nvals");
    if (wanted == ProductWanted::count) {
      visit({row_begin, static_cast<std::int64_t>(pairs), {}, {}});
    } else {
      export_rows(raw, row_begin, static_cast<std::int64_t>(pairs), visit);
    }
    row_begin = row_end;
  }
}

}  // namespace cobble::detail
