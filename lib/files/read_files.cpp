#include <utility>
#include <variant>

#include "cobble/convert.hpp"
#include "cobble/error.hpp"
#include "cobble/files.hpp"
#include "files/entries.hpp"
#include "files/file_bytes.hpp"
#include "files/file_format.hpp"
#include "files/matrix_market.hpp"
#include "files/npy_pattern.hpp"
#include "files/scipy_npz.hpp"
#include "files/smtx.hpp"

namespace cobble {
namespace {

using detail::FileBlocks;
using detail::FileEntries;
using detail::ValuesWanted;
using FileContent = std::variant<FileEntries, FileBlocks>;

FileContent read_content(std::span<const std::byte> bytes, const std::string& name, const ReadOptions& options,
                         FileFormat format, ValuesWanted wanted) {
  if (options.padded_lists && format != FileFormat::npy) {
    throw FileError(ErrorCode::file_format, name, 0, 0, "padded lists are read from a .npy array only");
  }
  switch (format) {
    case FileFormat::matrix_market: return detail::read_matrix_market(bytes, name, wanted);
    case FileFormat::smtx: return detail::read_smtx(bytes, name, wanted);
    case FileFormat::npz: return detail::read_scipy_npz(bytes, name, wanted);
    case FileFormat::npy: break;
  }
  if (options.padded_lists) return detail::read_padded_lists(bytes, name, options.list_columns, wanted);
  return detail::read_dense_npy(bytes, name, wanted);
}

/// Reads, and hands the canonical matrix of the file's storage to `finish`.
template <class Result, class FromEntries, class FromBlocks>
Result read(std::span<const std::byte> bytes, const std::string& name, const ReadOptions& options, ReadReport* report,
            ValuesWanted wanted, FromEntries from_entries, FromBlocks from_blocks) {
  ReadReport met;
  met.format = detail::detect_format(bytes, name);
  FileContent content = read_content(bytes, name, options, met.format, wanted);
  Result result = std::holds_alternative<FileEntries>(content)
                      ? from_entries(std::get<FileEntries>(std::move(content)), met)
                      : from_blocks(std::get<FileBlocks>(std::move(content)), met);
  if (report != nullptr) *report = met;
  return result;
}

}  // namespace

Pattern read_pattern_from_memory(std::span<const std::byte> bytes, const std::string& name, const ReadOptions& options,
                                 ReadReport* report) {
  return read<Pattern>(
      bytes, name, options, report, options.drop_zeros ? ValuesWanted::zero_or_not : ValuesWanted::none,
      [&](FileEntries file, ReadReport& met) {
        return from_csr(detail::canonical_pattern(std::move(file), name, options, met));
      },
      [&](FileBlocks file, ReadReport& met) {
        BsrPattern blocks = detail::canonical_blocks(std::move(file), name, options, met);
        return from_bsr(std::move(blocks));
      });
}

CsrMatrix<double> read_csr_from_memory(std::span<const std::byte> bytes, const std::string& name,
                                       const ReadOptions& options, ReadReport* report) {
  return read<CsrMatrix<double>>(
      bytes, name, options, report, ValuesWanted::exact,
      [&](FileEntries file, ReadReport& met) { return detail::canonical_matrix(std::move(file), name, options, met); },
      [&](FileBlocks file, ReadReport& met) {
        const BsrMatrix<double> blocks = detail::canonical_blocks(std::move(file), name, options, met);
        return to_csr(blocks.view());
      });
}

Pattern read_pattern(const std::filesystem::path& path, const ReadOptions& options, ReadReport* report) {
  const detail::FileBytes file(path);
  return read_pattern_from_memory(file.bytes(), path.string(), options, report);
}

CsrMatrix<double> read_csr(const std::filesystem::path& path, const ReadOptions& options, ReadReport* report) {
  const detail::FileBytes file(path);
  return read_csr_from_memory(file.bytes(), path.string(), options, report);
}

}  // namespace cobble
