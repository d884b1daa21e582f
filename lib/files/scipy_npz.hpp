#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <variant>

#include "cobble/bsr.hpp"
#include "cobble/csr.hpp"
#include "files/entries.hpp"

// Sparse matrices as scipy.sparse.save_npz writes them: members format, shape, data, and indices and indptr (csr, csc,
// bsr) or row and col (coo).

namespace cobble::detail {

/// Throws FileError{file_format}.
std::variant<FileEntries, FileBlocks> read_scipy_npz(std::span<const std::byte> bytes, const std::string& path,
                                                     ValuesWanted wanted);

/// CSR with int32 column indices, int32 offsets where they fit. A pattern's data are bool. Throw FileError{file_write}.
void write_scipy_npz(const std::filesystem::path& path, const CsrPatternView& matrix);
void write_scipy_npz(const std::filesystem::path& path, const CsrView<float>& matrix);
void write_scipy_npz(const std::filesystem::path& path, const CsrView<double>& matrix);
/// BSR of whole blocks: no bits, no ragged blocks (SciPy knows neither), else Error{invalid_argument}.
void write_scipy_npz(const std::filesystem::path& path, const BsrView<float>& matrix);
void write_scipy_npz(const std::filesystem::path& path, const BsrView<double>& matrix);
void write_scipy_npz(const std::filesystem::path& path, const BsrPatternView& matrix);

}  // namespace cobble::detail
