#include "files/smtx.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "files/atomic_file.hpp"
#include "files/text_cursor.hpp"

namespace cobble::detail {
namespace {

/// Reads the next number, which must lie in [least, most].
std::int64_t read_number(TextCursor& cursor, const char* what, std::int64_t least, std::int64_t most) {
  cursor.skip_separators(',');
  const TextCursor at_number = cursor;
  const std::int64_t number = cursor.read_integer(what, ',');
  if (number < least || number > most) {
    at_number.fail("found " + std::to_string(number) + ", expected " + what + " from " + std::to_string(least) +
                   " to " + std::to_string(most));
  }
  return number;
}

}  // namespace

FileEntries read_smtx(std::span<const std::byte> bytes, const std::string& path, ValuesWanted wanted) {
  constexpr std::int64_t kLargest = 2147483647;
  // A number and what separates it take two bytes at least.
  const std::int64_t most_numbers = (static_cast<std::int64_t>(bytes.size()) + 1) / 2;
  TextCursor cursor(as_text(bytes), path);
  cursor.skip_blank_and_comment_lines();
  const TextCursor at_sizes = cursor;
  const std::int64_t rows = read_number(cursor, "a number of rows", 0, kLargest);
  const std::int64_t columns = read_number(cursor, "a number of columns", 0, kLargest);
  const std::int64_t count = read_number(cursor, "a number of entries", 0, INT64_MAX);
  if (rows > most_numbers || count > most_numbers - rows) {
    at_sizes.fail("found " + std::to_string(rows) + " rows and " + std::to_string(count) +
                  " entries, which a file of " + std::to_string(bytes.size()) + " bytes cannot hold");
  }
  if (rows == 0 && count > 0) at_sizes.fail("found no rows, but " + std::to_string(count) + " entries");
  if (!is_plausible_size(columns, bytes.size())) {
    at_sizes.fail("found " + std::to_string(columns) + " columns in a file of " + std::to_string(bytes.size()) +
                  " bytes, expected at most 4194304, or 64 for each byte");
  }

  std::vector<std::int64_t> offsets(static_cast<std::size_t>(rows) + 1);
  std::int64_t least = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const bool first = i == 0;
    const bool last = i + 1 == offsets.size();
    // The first is 0 and the last the number of entries; without rows they are the same.
    offsets[i] = read_number(cursor, "a row offset", last ? count : least, first ? 0 : count);
    least = offsets[i];
  }

  FileEntries result;
  result.entries.rows = rows;
  result.entries.columns = columns;
  result.entries.row_indices.reserve(static_cast<std::size_t>(count));
  result.entries.column_indices.reserve(static_cast<std::size_t>(count));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = offsets[static_cast<std::size_t>(row)]; i < offsets[static_cast<std::size_t>(row) + 1]; ++i) {
      const std::int64_t column = read_number(cursor, "a column index", 0, columns - 1);
      result.entries.row_indices.push_back(static_cast<std::int32_t>(row));
      result.entries.column_indices.push_back(static_cast<std::int32_t>(column));
    }
  }
  cursor.skip_separators(',');
  if (!cursor.at_end()) cursor.fail_expected("the end of the file after " + std::to_string(count) + " column indices");
  if (wanted != ValuesWanted::none) result.entries.values.assign(static_cast<std::size_t>(count), 1.0);
  return result;
}

void write_smtx(const std::filesystem::path& path, const CsrPatternView& matrix) {
  validate(matrix);
  AtomicFile file(path);
  file.write(std::to_string(matrix.rows) + ", " + std::to_string(matrix.columns) + ", " +
             std::to_string(matrix.entries()) + "\n");
  for (const std::int64_t offset : matrix.row_offsets) file.write(std::to_string(offset) + " ");
  file.write("\n");
  for (const std::int32_t column : matrix.column_indices) file.write(std::to_string(column) + " ");
  file.write("\n");
  file.commit();
}

}  // namespace cobble::detail
