#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "files/entries.hpp"

// Patterns in .npy arrays.

namespace cobble::detail {

/// A dense matrix: every element that is not 0 is an entry. Throws FileError{file_format}.
FileEntries read_dense_npy(std::span<const std::byte> bytes, const std::string& path, ValuesWanted wanted);

/// Lists of selected columns, one a row, padded with -1. `columns` 0 means as many as rows. Values are 1. Throws
/// FileError{file_format}, Error{invalid_argument} for `columns`.
FileEntries read_padded_lists(std::span<const std::byte> bytes, const std::string& path, std::int64_t columns,
                              ValuesWanted wanted);

}  // namespace cobble::detail
