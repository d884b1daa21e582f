#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cobble/bsr.hpp"
#include "cobble/coo.hpp"
#include "cobble/csr.hpp"
#include "cobble/files.hpp"

// What the readers hand on: entries or blocks as they stand in the file; and the one way from there to canonical
// storage.

namespace cobble::detail {

/// What a reader is to keep of the values. They are checked in any case.
enum class ValuesWanted {
  none,
  zero_or_not,  ///< only whether a value is 0 matters, so that complex ones will do
  exact,
};

/// Whether each entry off the diagonal stands for two.
enum class Mirror {
  none,
  symmetric,
  skew_symmetric,  ///< the other one has the negated value
};

/// Entries as they stand in the file, in its order.
struct FileEntries {
  CooMatrix<double> entries;  ///< no values unless wanted
  Mirror mirror = Mirror::none;
};

/// Blocks in the file's order, offsets checked, block columns in range. No bits; no values unless wanted.
using FileBlocks = BsrMatrix<double>;

/// Whether a file of `file_bytes` may have so many rows or columns: at most 2^22, or 64 for each byte of the file if
/// that is more. Compressed rows take 8 bytes each whatever they hold, so that a file of 60 bytes could otherwise ask
/// for 16 GiB.
bool is_plausible_size(std::int64_t size, std::size_t file_bytes) noexcept;
/// Throws FileError{file_format} at line and column (0 where there is none) unless both are plausible and lie in
/// [0, 2^31 - 1].
void require_plausible_sizes(std::int64_t rows, std::int64_t columns, std::size_t file_bytes, const std::string& path,
                             std::int64_t line, std::int64_t column);

/// Drops zeros if asked, sorts, merges. Fills in all of the report but the format. `path` is for messages. Throws
/// FileError{file_format}.
CsrPattern canonical_pattern(FileEntries file, const std::string& path, const ReadOptions& options, ReadReport& report);
CsrMatrix<double> canonical_matrix(FileEntries file, const std::string& path, const ReadOptions& options,
                                   ReadReport& report);

/// The same for blocks: sorted within their block row, blocks at the same place united and their values added up;
/// dropped zeros become bits. The result has values if the file's blocks have.
BsrMatrix<double> canonical_blocks(FileBlocks file, const std::string& path, const ReadOptions& options,
                                   ReadReport& report);

}  // namespace cobble::detail
