#include <cstdint>
#include <utility>
#include <vector>

#include "cobble/error.hpp"
#include "files/npz_archive.hpp"
#include "files/scipy_npz.hpp"

namespace cobble::detail {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Sizes {
  std::int64_t rows;
  std::int64_t columns;
};

Sizes read_sizes(const NpzReader& archive, std::size_t archive_bytes, const std::string& path) {
  const NpzMember member = archive.read("shape");
  const std::vector<std::int64_t> shape = to_integers(member.array);
  if (shape.size() != 2) member.array.fail("found " + std::to_string(shape.size()) + " sizes, expected 2");
  require_plausible_sizes(shape[0], shape[1], archive_bytes, path, 0, 0);
  return {shape[0], shape[1]};
}

void require_axes(const NpyArray& array, std::size_t axes) {
  if (array.header.shape.size() != axes) {
    array.fail("found the shape " + shape_text(array.header.shape) + ", expected " + std::to_string(axes) +
               (axes == 1 ? " axis" : " axes"));
  }
}

std::vector<std::int64_t> read_vector(const NpzReader& archive, const char* name, NpyArray& header) {
  NpzMember member = archive.read(name);
  require_axes(member.array, 1);
  std::vector<std::int64_t> values = to_integers(member.array);
  header = std::move(member.array);
  header.data = {};
  return values;
}

/// `count` + 1 offsets from 0 to `end`.
std::vector<std::int64_t> read_offsets(const NpzReader& archive, std::int64_t count, std::int64_t end) {
  NpyArray array;
  std::vector<std::int64_t> offsets = read_vector(archive, "indptr", array);
  if (std::ssize(offsets) != count + 1) {
    array.fail("found " + std::to_string(offsets.size()) + " offsets, expected " + std::to_string(count + 1));
  }
  if (offsets.front() != 0) array.fail("indptr[0] = " + std::to_string(offsets.front()) + ", expected 0");
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      array.fail("indptr[" + std::to_string(i) + "] = " + std::to_string(offsets[i]) + " is less than indptr[" +
                 std::to_string(i - 1) + "] = " + std::to_string(offsets[i - 1]));
    }
  }
  if (offsets.back() != end) {
    array.fail("indptr ends at " + std::to_string(offsets.back()) + ", expected the number of indices, " +
               std::to_string(end));
  }
  return offsets;
}

/// Indices in [0, size).
std::vector<std::int32_t> read_indices(const NpzReader& archive, const char* name, std::int64_t size) {
  NpyArray array;
  const std::vector<std::int64_t> values = read_vector(archive, name, array);
  std::vector<std::int32_t> indices(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= size) {
      array.fail(std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(values[i]) +
                 " is out of range [0, " + std::to_string(size) + ")");
    }
    indices[i] = static_cast<std::int32_t>(values[i]);
  }
  return indices;
}

/// Checks that there are `count` values and returns those that are wanted.
std::vector<double> convert_values(const NpyArray& array, std::int64_t count, ValuesWanted wanted) {
  if (array.header.type.kind == NpyType::Kind::bytes || array.header.type.kind == NpyType::Kind::text) {
    array.fail("found elements of type '" + array.header.type.description + "', expected numbers");
  }
  if (array.size != count) {
    array.fail("found " + std::to_string(array.size) + " values, expected " + std::to_string(count));
  }
  std::vector<double> values;
  if (wanted == ValuesWanted::zero_or_not) {
    const std::vector<std::uint8_t> nonzeros = to_nonzeros(array);
    values.assign(nonzeros.begin(), nonzeros.end());
  } else if (wanted == ValuesWanted::exact) {
    values.resize(index(count));
    to_reals(array, values.data());
  }
  return values;
}

std::vector<double> read_values(const NpzReader& archive, std::int64_t count, ValuesWanted wanted) {
  const NpzMember member = archive.read("data");
  require_axes(member.array, 1);
  return convert_values(member.array, count, wanted);
}

/// For each entry the number of its compressed row (or column).
std::vector<std::int32_t> expand_offsets(const std::vector<std::int64_t>& offsets) {
  std::vector<std::int32_t> expanded(index(offsets.back()));
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    for (std::int64_t k = offsets[i]; k < offsets[i + 1]; ++k) expanded[index(k)] = static_cast<std::int32_t>(i);
  }
  return expanded;
}

FileEntries finish(CooMatrix<double> entries, const Sizes& sizes, const NpzReader& archive, ValuesWanted wanted) {
  FileEntries result;
  entries.rows = sizes.rows;
  entries.columns = sizes.columns;
  entries.values = read_values(archive, entries.entries(), wanted);
  result.entries = std::move(entries);
  return result;
}

FileEntries read_csr(const NpzReader& archive, const Sizes& sizes, ValuesWanted wanted) {
  CooMatrix<double> entries;
  entries.column_indices = read_indices(archive, "indices", sizes.columns);
  entries.row_indices = expand_offsets(read_offsets(archive, sizes.rows, std::ssize(entries.column_indices)));
  return finish(std::move(entries), sizes, archive, wanted);
}

FileEntries read_csc(const NpzReader& archive, const Sizes& sizes, ValuesWanted wanted) {
  CooMatrix<double> entries;
  entries.row_indices = read_indices(archive, "indices", sizes.rows);
  entries.column_indices = expand_offsets(read_offsets(archive, sizes.columns, std::ssize(entries.row_indices)));
  return finish(std::move(entries), sizes, archive, wanted);
}

FileEntries read_coo(const NpzReader& archive, const Sizes& sizes, ValuesWanted wanted, const std::string& path) {
  CooMatrix<double> entries;
  entries.row_indices = read_indices(archive, "row", sizes.rows);
  entries.column_indices = read_indices(archive, "col", sizes.columns);
  if (entries.row_indices.size() != entries.column_indices.size()) {
    throw FileError(ErrorCode::file_format, path, 0, 0,
                    "member 'row.npy' has " + std::to_string(entries.row_indices.size()) + " indices, 'col.npy' has " +
                        std::to_string(entries.column_indices.size()) + ", expected as many");
  }
  return finish(std::move(entries), sizes, archive, wanted);
}

FileBlocks read_bsr(const NpzReader& archive, const Sizes& sizes, ValuesWanted wanted) {
  constexpr std::int64_t kLargest = 2147483647;
  const NpzMember data = archive.read("data");
  require_axes(data.array, 3);
  const std::int64_t block_rows = data.array.header.shape[1];
  const std::int64_t block_columns = data.array.header.shape[2];
  if (data.array.header.fortran_order) data.array.fail("found Fortran order, expected blocks in C order");
  if (block_rows < 1 || block_columns < 1 || block_rows > kLargest || block_columns > kLargest ||
      sizes.rows % block_rows != 0 || sizes.columns % block_columns != 0) {
    data.array.fail("found blocks of " + std::to_string(block_rows) + " x " + std::to_string(block_columns) +
                    ", expected sizes that divide the shape (" + std::to_string(sizes.rows) + ", " +
                    std::to_string(sizes.columns) + ")");
  }
  FileBlocks result;
  result.rows = sizes.rows;
  result.columns = sizes.columns;
  result.block_rows = static_cast<std::int32_t>(block_rows);
  result.block_columns = static_cast<std::int32_t>(block_columns);
  result.block_column_indices = read_indices(archive, "indices", sizes.columns / block_columns);
  const std::int64_t blocks = std::ssize(result.block_column_indices);
  result.block_row_offsets = read_offsets(archive, sizes.rows / block_rows, blocks);
  if (data.array.header.shape[0] != blocks) {
    data.array.fail("found " + std::to_string(data.array.header.shape[0]) + " blocks, expected as many as indices, " +
                    std::to_string(blocks));
  }
  result.values = convert_values(data.array, data.array.size, wanted);
  return result;
}

}  // namespace

std::variant<FileEntries, FileBlocks> read_scipy_npz(std::span<const std::byte> bytes, const std::string& path,
                                                     ValuesWanted wanted) {
  const NpzReader archive(bytes, path);
  if (!archive.has("format")) {
    throw FileError(ErrorCode::file_format, path, 0, 0,
                    "has no member 'format.npy', expected a sparse matrix as scipy.sparse.save_npz writes it");
  }
  const NpzMember format_member = archive.read("format");
  const std::string format = to_string_value(format_member.array);
  if (format != "csr" && format != "csc" && format != "coo" && format != "bsr") {
    format_member.array.fail("found a sparse matrix of another format than csr, csc, coo or bsr");
  }
  const Sizes sizes = read_sizes(archive, bytes.size(), path);
  if (format == "csr") return read_csr(archive, sizes, wanted);
  if (format == "csc") return read_csc(archive, sizes, wanted);
  if (format == "coo") return read_coo(archive, sizes, wanted, path);
  return read_bsr(archive, sizes, wanted);
}

}  // namespace cobble::detail
