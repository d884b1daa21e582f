#pragma once

#include <cstdint>

#include "files/text_cursor.hpp"

namespace cobble::detail {

/// The banner and the size line of a Matrix Market file.
struct MatrixMarketHeader {
  enum class Format { coordinate, array };
  enum class Field { real, integer, unsigned_integer, complex, pattern };
  enum class Symmetry { general, symmetric, skew_symmetric, hermitian };

  Format format = Format::coordinate;
  Field field = Field::real;
  Symmetry symmetry = Symmetry::general;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t entries = 0;  ///< entries that stand in the file: one triangle only unless general
};

/// Whether the text starts like a Matrix Market file, its banner spelt right or with one '%'.
bool looks_like_matrix_market(std::string_view text) noexcept;

/// Reads up to the first entry's line. `file_bytes` bounds sizes and entries. Throws FileError{file_format}.
MatrixMarketHeader read_matrix_market_header(TextCursor& cursor, std::size_t file_bytes, const std::string& path);

}  // namespace cobble::detail
