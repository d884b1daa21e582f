#include <bit>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cobble/convert.hpp"
#include "cobble/error.hpp"
#include "cobble/files.hpp"
#include "core/checked.hpp"
#include "files/atomic_file.hpp"
#include "files/file_format.hpp"
#include "files/matrix_market.hpp"
#include "files/npz_archive.hpp"
#include "files/scipy_npz.hpp"
#include "files/smtx.hpp"
#include "pattern/stored_patterns.hpp"

namespace cobble {
namespace {

static_assert(std::endian::native == std::endian::little, "the writers state little-endian element types");

using detail::NpzEntry;

void write_npy_entry(const std::filesystem::path& path, const NpzEntry& entry) {
  detail::AtomicFile file(path);
  file.write(detail::npy_preamble(entry.type, entry.shape));
  file.write({reinterpret_cast<const char*>(entry.data.data()), entry.data.size()});
  file.commit();
}

bool has_whole_blocks(const BsrPatternView& matrix) {
  return matrix.bits.empty() && matrix.rows % matrix.block_rows == 0 && matrix.columns % matrix.block_columns == 0;
}

void write_pattern_npz(const std::filesystem::path& path, const Pattern& pattern) {
  const BsrPattern* blocks = detail::stored_blocks(pattern);
  if (blocks != nullptr && has_whole_blocks(*blocks)) {
    detail::write_scipy_npz(path, blocks->view());
  } else {
    detail::write_scipy_npz(path, pattern.to_csr().view());
  }
}

void write_pattern_npy(const std::filesystem::path& path, const Pattern& pattern) {
  std::vector<std::uint8_t> dense = to_dense_boolean(pattern.to_csr());
  for (std::uint8_t& element : dense) element = element != 0 ? 1 : 0;
  write_npy_entry(path, {"", "|b1", {pattern.rows(), pattern.columns()}, std::as_bytes(std::span(dense))});
}

template <class T>
void write_csr_values(const std::filesystem::path& path, const CsrView<T>& matrix) {
  switch (detail::format_to_write(path)) {
    case FileFormat::matrix_market: detail::write_matrix_market(path, matrix); return;
    case FileFormat::npz: detail::write_scipy_npz(path, matrix); return;
    case FileFormat::smtx:
    case FileFormat::npy: break;
  }
  throw Error(ErrorCode::invalid_argument,
              path.string() + ": a sparse matrix with values is written to .mtx or .npz, not to this format");
}

std::string_view npy_type(std::span<const float>) { return "<f4"; }
std::string_view npy_type(std::span<const double>) { return "<f8"; }
std::string_view npy_type(std::span<const float16>) { return "<f2"; }
std::string_view npy_type(std::span<const std::int32_t>) { return "<i4"; }
std::string_view npy_type(std::span<const std::int64_t>) { return "<i8"; }
std::string_view npy_type(std::span<const std::uint8_t>) { return "|b1"; }

NpzEntry checked_entry(const NamedArray& array) {
  for (const std::int64_t size : array.shape) {
    if (size < 0) {
      throw Error(ErrorCode::invalid_argument,
                  "array '" + array.name + "' has the negative size " + std::to_string(size) + " in its shape");
    }
  }
  std::int64_t size = 1;
  for (const std::int64_t axis : array.shape) size = checked_product({size, axis}, "the size of array " + array.name);
  return std::visit(
      [&](const auto& values) {
        if (std::ssize(values) != size) {
          throw Error(ErrorCode::shape_mismatch, "array '" + array.name + "' has " + std::to_string(values.size()) +
                                                     " values, expected " + std::to_string(size) + " for its shape " +
                                                     detail::shape_text(array.shape));
        }
        return NpzEntry{array.name, npy_type(values), array.shape, std::as_bytes(values)};
      },
      array.values);
}

}  // namespace

void write_pattern(const std::filesystem::path& path, const Pattern& pattern) {
  switch (detail::format_to_write(path)) {
    case FileFormat::matrix_market: detail::write_matrix_market(path, pattern.to_csr().view()); return;
    case FileFormat::smtx: detail::write_smtx(path, pattern.to_csr().view()); return;
    case FileFormat::npz: write_pattern_npz(path, pattern); return;
    case FileFormat::npy: write_pattern_npy(path, pattern); return;
  }
}

void write_csr(const std::filesystem::path& path, const CsrView<float>& matrix) { write_csr_values(path, matrix); }
void write_csr(const std::filesystem::path& path, const CsrView<double>& matrix) { write_csr_values(path, matrix); }

void write_npz(const std::filesystem::path& path, std::span<const NamedArray> arrays) {
  if (arrays.empty()) throw Error(ErrorCode::invalid_argument, "arrays is empty, expected at least one array");
  std::vector<NpzEntry> entries;
  std::set<std::string_view> names;
  for (const NamedArray& array : arrays) {
    if (array.name.empty() || array.name.find('/') != std::string::npos) {
      throw Error(ErrorCode::invalid_argument, "'" + array.name + "' is no name for an array in a .npz file");
    }
    if (!names.insert(array.name).second) {
      throw Error(ErrorCode::invalid_argument, "two arrays have the name '" + array.name + "'");
    }
    entries.push_back(checked_entry(array));
  }
  detail::write_npz_archive(path, entries, detail::Compression::store);
}

void write_npy(const std::filesystem::path& path, const NamedArray& array) {
  write_npy_entry(path, checked_entry(array));
}

}  // namespace cobble
