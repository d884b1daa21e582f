#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "cobble/csr.hpp"
#include "files/entries.hpp"

// Matrix Market exchange format (NISTIR 5935): one entry a line, 1-based.

namespace cobble::detail {

/// Throws FileError{file_format} with line and column.
FileEntries read_matrix_market(std::span<const std::byte> bytes, const std::string& path, ValuesWanted wanted);

/// Coordinate, general; pattern or real. Values are written so that they are read back exactly as doubles. Throws
/// FileError{file_write}.
void write_matrix_market(const std::filesystem::path& path, const CsrPatternView& matrix);
void write_matrix_market(const std::filesystem::path& path, const CsrView<float>& matrix);
void write_matrix_market(const std::filesystem::path& path, const CsrView<double>& matrix);

}  // namespace cobble::detail
