#include "files/matrix_market_header.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "cobble/error.hpp"
#include "files/entries.hpp"

namespace cobble::detail {
namespace {

using Header = MatrixMarketHeader;

constexpr std::string_view kBanner = "%%MatrixMarket";

std::string lower(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && lower(text.substr(0, prefix.size())) == lower(prefix);
}

/// Reads one word of the banner and returns what it stands for.
template <class Meaning, std::size_t Size>
Meaning read_keyword(TextCursor& cursor, const char* what,
                     const std::array<std::pair<const char*, Meaning>, Size>& known) {
  cursor.skip_blanks();
  const TextCursor at_word = cursor;
  const std::string word = lower(cursor.read_word());
  std::string names;
  for (const auto& [name, meaning] : known) {
    if (word == name) return meaning;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  at_word.fail_expected(std::string("the ") + what + ": " + names);
}

constexpr std::array<std::pair<const char*, Header::Format>, 2> kFormats{
    {{"coordinate", Header::Format::coordinate}, {"array", Header::Format::array}}};
constexpr std::array<std::pair<const char*, Header::Field>, 6> kFields{
    {{"real", Header::Field::real},
     {"double", Header::Field::real},
     {"integer", Header::Field::integer},
     {"unsigned-integer", Header::Field::unsigned_integer},
     {"pattern", Header::Field::pattern},
     {"complex", Header::Field::complex}}};
constexpr std::array<std::pair<const char*, Header::Symmetry>, 4> kSymmetries{
    {{"general", Header::Symmetry::general},
     {"symmetric", Header::Symmetry::symmetric},
     {"skew-symmetric", Header::Symmetry::skew_symmetric},
     {"hermitian", Header::Symmetry::hermitian}}};

void read_banner(TextCursor& cursor, Header& header) {
  const TextCursor at_banner = cursor;
  const std::string_view banner = cursor.read_word();
  if (lower(banner) != lower(kBanner)) {
    if (lower(banner) == lower(kBanner.substr(1))) {
      at_banner.fail("found " + quoted(banner) + ", a banner with one '%', expected two: '%%MatrixMarket'");
    }
    at_banner.fail_expected("the banner '%%MatrixMarket'");
  }
  cursor.skip_blanks();
  const TextCursor at_object = cursor;
  if (lower(cursor.read_word()) != "matrix") at_object.fail_expected("'matrix', the only object that is supported");
  header.format = read_keyword(cursor, "format", kFormats);
  cursor.skip_blanks();
  const TextCursor at_field = cursor;
  header.field = read_keyword(cursor, "field", kFields);
  cursor.skip_blanks();
  const TextCursor at_symmetry = cursor;
  header.symmetry = read_keyword(cursor, "symmetry", kSymmetries);
  if (header.format == Header::Format::array && header.field == Header::Field::pattern) {
    at_field.fail("an array cannot have the field 'pattern', expected a field with values");
  }
  if (header.symmetry == Header::Symmetry::hermitian && header.field != Header::Field::complex) {
    at_symmetry.fail("only a complex matrix can be hermitian, expected general, symmetric or skew-symmetric");
  }
  cursor.expect_line_end("the end of the banner");
}

/// The entries of an array, all of them or those of one triangle. Both sizes fit 32 bits.
std::int64_t array_entries(const Header& header) {
  const std::int64_t n = header.rows;
  switch (header.symmetry) {
    case Header::Symmetry::general: return n * header.columns;
    case Header::Symmetry::skew_symmetric: return n * (n - 1) / 2;
    default: return n * (n + 1) / 2;
  }
}

/// The fewest bytes that an entry can take, its line end included.
std::int64_t smallest_entry_bytes(const Header& header) {
  std::int64_t numbers = header.format == Header::Format::coordinate ? 2 : 0;
  if (header.field == Header::Field::complex) numbers += 2;
  if (header.field == Header::Field::real || header.field == Header::Field::integer ||
      header.field == Header::Field::unsigned_integer) {
    numbers += 1;
  }
  return 2 * numbers;
}

void read_sizes(TextCursor& cursor, Header& header, std::size_t file_bytes, const std::string& path) {
  cursor.skip_blank_and_comment_lines();
  const TextCursor at_sizes = cursor;
  const bool coordinate = header.format == Header::Format::coordinate;
  header.rows = cursor.read_integer("the number of rows");
  header.columns = cursor.read_integer("the number of columns");
  if (coordinate) header.entries = cursor.read_integer("the number of entries");
  cursor.expect_line_end("the end of the size line");
  try {
    require_plausible_sizes(header.rows, header.columns, file_bytes, path, 0, 0);
  } catch (const FileError& error) {
    at_sizes.fail(std::string(error.what()).substr(path.size() + 2));
  }
  if (header.symmetry != Header::Symmetry::general && header.rows != header.columns) {
    at_sizes.fail("found " + std::to_string(header.rows) + " rows and " + std::to_string(header.columns) +
                  " columns, expected as many of both in a matrix that is not general");
  }
  if (!coordinate) header.entries = array_entries(header);
  if (header.entries < 0) {
    at_sizes.fail("found " + std::to_string(header.entries) + " entries, expected none or more");
  }
  const auto most = (static_cast<std::int64_t>(file_bytes) + 1) / smallest_entry_bytes(header);
  if (header.entries > most) {
    at_sizes.fail("found " + std::to_string(header.entries) + " entries, which a file of " +
                  std::to_string(file_bytes) + " bytes cannot hold, expected at most " + std::to_string(most));
  }
}

}  // namespace

bool looks_like_matrix_market(std::string_view text) noexcept {
  return starts_with_ignoring_case(text, kBanner) || starts_with_ignoring_case(text, kBanner.substr(1));
}

MatrixMarketHeader read_matrix_market_header(TextCursor& cursor, std::size_t file_bytes, const std::string& path) {
  MatrixMarketHeader header;
  read_banner(cursor, header);
  read_sizes(cursor, header, file_bytes, path);
  return header;
}

}  // namespace cobble::detail
