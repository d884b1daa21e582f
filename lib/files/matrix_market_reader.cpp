#include <algorithm>
#include <string>
#include <vector>

#include "files/matrix_market.hpp"
#include "files/matrix_market_header.hpp"

namespace cobble::detail {
namespace {

using Header = MatrixMarketHeader;

/// Reads the entries' lines into `result`.
class BodyReader {
 public:
  BodyReader(TextCursor& cursor, const Header& header, ValuesWanted wanted, FileEntries& result)
      : cursor_(cursor), header_(header), wanted_(wanted), result_(result) {}

  void read_coordinates();
  void read_array();

 private:
  bool keeps_values() const noexcept { return wanted_ != ValuesWanted::none; }
  /// To the line of an entry. Throws at the end of the file.
  void find_entry(std::int64_t number);
  std::int32_t read_index(const char* expected, std::int64_t size);
  double read_value();
  void require_one_triangle(std::int64_t row, std::int64_t column, const char* at_entry);
  void require_zero_if_skew_diagonal(std::int64_t row, std::int64_t column, double value, const char* at_entry);
  void expect_file_end();
  void append(std::int64_t row, std::int64_t column, double value);

  TextCursor& cursor_;
  const Header& header_;
  const ValuesWanted wanted_;
  FileEntries& result_;
  bool has_lower_ = false;
  bool has_upper_ = false;
};

void BodyReader::find_entry(std::int64_t number) {
  cursor_.skip_blank_and_comment_lines();
  if (cursor_.at_end()) {
    cursor_.fail("found the end of the file after " + std::to_string(number) + " entries, expected " +
                 std::to_string(header_.entries));
  }
}

std::int32_t BodyReader::read_index(const char* expected, std::int64_t size) {
  cursor_.skip_blanks();
  const char* first = cursor_.position();
  const std::int64_t index = cursor_.read_integer(expected);
  if (index < 1 || index > size) {
    cursor_.fail_at(first,
                    "found " + std::to_string(index) + ", expected " + expected + " from 1 to " + std::to_string(size));
  }
  return static_cast<std::int32_t>(index - 1);
}

double BodyReader::read_value() {
  switch (header_.field) {
    case Header::Field::pattern: return 1;
    case Header::Field::real: return cursor_.read_real("a real value");
    case Header::Field::integer: return static_cast<double>(cursor_.read_integer("an integer value"));
    case Header::Field::unsigned_integer: return static_cast<double>(cursor_.read_unsigned("an unsigned value"));
    case Header::Field::complex: break;
  }
  const double real = cursor_.read_real("the real part of a value");
  const double imaginary = cursor_.read_real("the imaginary part of a value");
  return real != 0 || imaginary != 0 ? 1 : 0;
}

void BodyReader::require_one_triangle(std::int64_t row, std::int64_t column, const char* at_entry) {
  has_lower_ = has_lower_ || row > column;
  has_upper_ = has_upper_ || row < column;
  // Expanding both would count each pair twice and double its value.
  if (has_lower_ && has_upper_) {
    cursor_.fail_at(
        at_entry,
        "found entry (" + std::to_string(row + 1) + ", " + std::to_string(column + 1) +
            ") on the other side of the diagonal than those before, expected one triangle as the matrix is not"
            " general");
  }
}

void BodyReader::require_zero_if_skew_diagonal(std::int64_t row, std::int64_t column, double value,
                                               const char* at_entry) {
  if (header_.symmetry == Header::Symmetry::skew_symmetric && row == column && value != 0) {
    cursor_.fail_at(at_entry, "found entry (" + std::to_string(row + 1) + ", " + std::to_string(column + 1) +
                                  ") on the diagonal of a skew-symmetric matrix, expected none or a zero there");
  }
}

void BodyReader::expect_file_end() {
  cursor_.skip_blank_and_comment_lines();
  if (!cursor_.at_end()) {
    cursor_.fail_expected("the end of the file after " + std::to_string(header_.entries) + " entries");
  }
}

void BodyReader::append(std::int64_t row, std::int64_t column, double value) {
  result_.entries.row_indices.push_back(static_cast<std::int32_t>(row));
  result_.entries.column_indices.push_back(static_cast<std::int32_t>(column));
  if (keeps_values()) result_.entries.values.push_back(value);
}

void BodyReader::read_coordinates() {
  CooMatrix<double>& entries = result_.entries;
  const auto count = static_cast<std::size_t>(header_.entries);
  entries.row_indices.reserve(count);
  entries.column_indices.reserve(count);
  if (keeps_values()) entries.values.reserve(count);
  for (std::int64_t number = 0; number < header_.entries; ++number) {
    find_entry(number);
    const char* at_entry = cursor_.position();
    const std::int32_t row = read_index("a row index", header_.rows);
    const std::int32_t column = read_index("a column index", header_.columns);
    const double value = read_value();
    cursor_.expect_line_end("the end of the entry's line");
    if (header_.symmetry != Header::Symmetry::general) {
      require_one_triangle(row, column, at_entry);
      require_zero_if_skew_diagonal(row, column, value, at_entry);
    }
    append(row, column, value);
  }
  expect_file_end();
}

void BodyReader::read_array() {
  std::int64_t number = 0;
  for (std::int64_t column = 0; column < header_.columns && number < header_.entries; ++column) {
    std::int64_t first_row = 0;
    if (header_.symmetry != Header::Symmetry::general) first_row = column;
    if (header_.symmetry == Header::Symmetry::skew_symmetric) first_row = column + 1;
    for (std::int64_t row = first_row; row < header_.rows; ++row, ++number) {
      find_entry(number);
      const double value = read_value();
      cursor_.expect_line_end("the end of the entry's line");
      if (value != 0) append(row, column, value);
    }
  }
  expect_file_end();
}

}  // namespace

FileEntries read_matrix_market(std::span<const std::byte> bytes, const std::string& path, ValuesWanted wanted) {
  TextCursor cursor(as_text(bytes), path);
  const Header header = read_matrix_market_header(cursor, bytes.size(), path);
  if (header.field == Header::Field::complex && wanted == ValuesWanted::exact) {
    TextCursor(as_text(bytes), path).fail("the values are complex, expected real ones where values are wanted");
  }
  FileEntries result;
  result.entries.rows = header.rows;
  result.entries.columns = header.columns;
  if (header.symmetry == Header::Symmetry::skew_symmetric) {
    result.mirror = Mirror::skew_symmetric;
  } else if (header.symmetry != Header::Symmetry::general) {
    result.mirror = Mirror::symmetric;
  }
  BodyReader body(cursor, header, wanted, result);
  if (header.format == Header::Format::coordinate) {
    body.read_coordinates();
  } else {
    body.read_array();
  }
  return result;
}

}  // namespace cobble::detail
