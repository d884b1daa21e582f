#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "cobble/csr.hpp"
#include "files/entries.hpp"

// SMTX, the format of the Deep Learning Matrix Collection: compressed rows as text, 0-based, without values: rows,
// columns and entries; rows + 1 offsets; column indices. Numbers are separated by blanks, line ends and commas.
// Gunrock's dialect starts with '%' comments.

namespace cobble::detail {

/// Throws FileError{file_format} with line and column.
FileEntries read_smtx(std::span<const std::byte> bytes, const std::string& path, ValuesWanted wanted);
/// Throws FileError{file_write}.
void write_smtx(const std::filesystem::path& path, const CsrPatternView& matrix);

}  // namespace cobble::detail
