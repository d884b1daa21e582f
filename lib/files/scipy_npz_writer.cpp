#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "cobble/error.hpp"
#include "core/checked.hpp"
#include "files/npz_archive.hpp"
#include "files/scipy_npz.hpp"

namespace cobble::detail {
namespace {

template <class T>
NpzEntry vector_entry(const char* name, std::string_view type, std::span<const T> values) {
  return {name, type, {std::ssize(values)}, std::as_bytes(values)};
}

/// `data` comes with name, type and shape.
void write(const std::filesystem::path& path, std::string_view format, std::int64_t rows, std::int64_t columns,
           std::span<const std::int32_t> indices, std::span<const std::int64_t> offsets, const NpzEntry& data) {
  const std::array<std::int64_t, 2> shape{rows, columns};
  std::vector<std::int32_t> short_offsets;
  const bool fits = offsets.back() <= std::numeric_limits<std::int32_t>::max();
  if (fits) {
    short_offsets.reserve(offsets.size());
    for (const std::int64_t offset : offsets) short_offsets.push_back(static_cast<std::int32_t>(offset));
  }
  const std::array<NpzEntry, 5> entries{
      vector_entry<std::int32_t>("indices", "<i4", indices),
      fits ? vector_entry<std::int32_t>("indptr", "<i4", short_offsets) : vector_entry("indptr", "<i8", offsets),
      NpzEntry{"format", "|S3", {}, std::as_bytes(std::span(format))},
      vector_entry<std::int64_t>("shape", "<i8", shape),
      data,
  };
  write_npz_archive(path, entries, Compression::deflate);
}

template <class T>
void write_csr(const std::filesystem::path& path, const CsrPatternView& matrix, std::string_view type,
               std::span<const T> values) {
  write(path, "csr", matrix.rows, matrix.columns, matrix.column_indices, matrix.row_offsets,
        vector_entry("data", type, values));
}

template <class T>
void write_bsr(const std::filesystem::path& path, const BsrPatternView& matrix, std::string_view type,
               std::span<const T> values) {
  if (!matrix.bits.empty() || matrix.rows % matrix.block_rows != 0 || matrix.columns % matrix.block_columns != 0) {
    throw Error(ErrorCode::invalid_argument, "the matrix has partial blocks, expected whole ones for SciPy's BSR");
  }
  write(path, "bsr", matrix.rows, matrix.columns, matrix.block_column_indices, matrix.block_row_offsets,
        {"data", type, {matrix.blocks(), matrix.block_rows, matrix.block_columns}, std::as_bytes(values)});
}

}  // namespace

void write_scipy_npz(const std::filesystem::path& path, const CsrPatternView& matrix) {
  validate(matrix);
  const std::vector<std::uint8_t> ones(matrix.column_indices.size(), 1);
  write_csr<std::uint8_t>(path, matrix, "|b1", ones);
}

void write_scipy_npz(const std::filesystem::path& path, const CsrView<float>& matrix) {
  validate(matrix);
  write_csr(path, matrix, "<f4", matrix.values);
}

void write_scipy_npz(const std::filesystem::path& path, const CsrView<double>& matrix) {
  validate(matrix);
  write_csr(path, matrix, "<f8", matrix.values);
}

void write_scipy_npz(const std::filesystem::path& path, const BsrPatternView& matrix) {
  validate(matrix);
  const std::int64_t pairs = checked_product({matrix.blocks(), matrix.block_area()}, "the number of pairs");
  const std::vector<std::uint8_t> ones(static_cast<std::size_t>(pairs), 1);
  write_bsr<std::uint8_t>(path, matrix, "|b1", ones);
}

void write_scipy_npz(const std::filesystem::path& path, const BsrView<float>& matrix) {
  validate(matrix);
  write_bsr(path, matrix, "<f4", matrix.values);
}

void write_scipy_npz(const std::filesystem::path& path, const BsrView<double>& matrix) {
  validate(matrix);
  write_bsr(path, matrix, "<f8", matrix.values);
}

}  // namespace cobble::detail
