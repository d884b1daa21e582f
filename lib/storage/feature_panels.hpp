#pragma once

#include <cstdint>

#include "cobble/bsr.hpp"
#include "cobble/csr.hpp"

// Panels of tokens of compressed features, in full: what a tile needs and no more. Matrices are valid, and BSR has no
// bits; row ranges may begin and end inside blocks. T is float or double.

namespace cobble::detail {

/// panel[(row - row_begin) * stride + feature] for rows [row_begin, row_end) and all features; stride >= features. What
/// lies between features and stride is left alone.
template <class T>
void densify_rows(const CsrView<T>& matrix, std::int64_t row_begin, std::int64_t row_end, T* panel,
                  std::int64_t stride);
template <class T>
void densify_rows(const BsrView<T>& matrix, std::int64_t row_begin, std::int64_t row_end, T* panel,
                  std::int64_t stride);

/// The panel turned around: panel[feature * stride + row - row_begin]; stride >= row_end - row_begin.
template <class T>
void densify_rows_transposed(const CsrView<T>& matrix, std::int64_t row_begin, std::int64_t row_end, T* panel,
                             std::int64_t stride);
template <class T>
void densify_rows_transposed(const BsrView<T>& matrix, std::int64_t row_begin, std::int64_t row_end, T* panel,
                             std::int64_t stride);

/// The way back, of gradients: values[k] for every entry k that the matrix stores in these rows, from a panel that lies
/// as densify_rows() lays it. `values` are those of the whole matrix; other rows' and the padding of ragged blocks
/// remain.
template <class T>
void gather_rows(const CsrPatternView& matrix, std::int64_t row_begin, std::int64_t row_end, const T* panel,
                 std::int64_t stride, T* values);
template <class T>
void gather_rows(const BsrPatternView& matrix, std::int64_t row_begin, std::int64_t row_end, const T* panel,
                 std::int64_t stride, T* values);

}  // namespace cobble::detail
