#include "files/entries.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "cobble/convert.hpp"
#include "cobble/error.hpp"

namespace cobble::detail {
namespace {

constexpr std::int64_t kAlwaysPlausibleSize = std::int64_t{1} << 24;
constexpr std::int64_t kPlausibleSizePerByte = 64;

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw FileError(ErrorCode::file_format, path, 0, 0, message);
}

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Whether no row has a column before a lower one, in the file's order, whatever the order of the rows. In strict
/// reading that is an error, and so is a duplicate.
bool rows_ascend(const FileEntries& file, const std::string& path, bool strict) {
  bool ascend = true;
  std::vector<std::int32_t> last_column(index(file.entries.rows), -1);
  for (std::size_t i = 0; i < index(file.in_file); ++i) {
    const std::int32_t row = file.entries.row_indices[i];
    const std::int32_t column = file.entries.column_indices[i];
    const std::int32_t last = std::exchange(last_column[index(row)], column);
    if (strict && column <= last) {
      fail(path, "row " + std::to_string(row) + " has column " + std::to_string(column) +
                     (column == last ? " twice" : " after column " + std::to_string(last)) +
                     " (counted from 0), which strict reading does not allow");
    }
    ascend = ascend && column >= last;
  }
  return ascend;
}

/// Returns how many there were.
std::int64_t drop_zeros(CooMatrix<double>& entries) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries.values.size(); ++i) {
    if (entries.values[i] == 0) continue;
    entries.row_indices[kept] = entries.row_indices[i];
    entries.column_indices[kept] = entries.column_indices[i];
    entries.values[kept] = entries.values[i];
    ++kept;
  }
  const std::size_t dropped = entries.values.size() - kept;
  entries.row_indices.resize(kept);
  entries.column_indices.resize(kept);
  entries.values.resize(kept);
  return static_cast<std::int64_t>(dropped);
}

std::int64_t empty_rows(const std::vector<std::int64_t>& offsets) {
  std::int64_t count = 0;
  for (std::size_t i = 1; i < offsets.size(); ++i) count += offsets[i] == offsets[i - 1] ? 1 : 0;
  return count;
}

/// Entries is CooPattern or CooMatrix<double>, a part of `file`.
template <class Entries>
auto canonical(FileEntries& file, const Entries& entries, const std::string& path, const ReadOptions& options,
               ReadReport& report) {
  report.stored_entries = file.entries.entries();
  report.expanded_symmetry = file.expanded_symmetry;
  report.sorted_rows = !rows_ascend(file, path, options.strict);
  if (options.drop_zeros) report.zeros_dropped = drop_zeros(file.entries);
  CanonicalReport met;
  auto matrix = to_csr(entries, Duplicates::merge, &met);
  report.duplicates_merged = met.duplicates_merged;
  report.empty_rows = empty_rows(matrix.row_offsets);
  return matrix;
}

/// An order of the blocks in which those of each block row ascend, equal ones as they stand in the file.
std::vector<std::int64_t> sorted_blocks(const FileBlocks& file, const std::string& path, bool strict, bool& sorted) {
  std::vector<std::int64_t> order(file.block_column_indices.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t panel = 0; panel + 1 < file.block_row_offsets.size(); ++panel) {
    const auto first = order.begin() + file.block_row_offsets[panel];
    const auto last = order.begin() + file.block_row_offsets[panel + 1];
    const auto column = [&](std::int64_t block) { return file.block_column_indices[index(block)]; };
    const auto fault = std::adjacent_find(first, last, [&](std::int64_t a, std::int64_t b) {
      return strict ? column(a) >= column(b) : column(a) > column(b);
    });
    if (fault == last) continue;
    if (strict) {
      fail(path, "block row " + std::to_string(panel) + " has block column " + std::to_string(column(fault[1])) +
                     " after block column " + std::to_string(column(fault[0])) +
                     " (counted from 0), which strict reading does not allow");
    }
    sorted = true;
    std::stable_sort(first, last, [&](std::int64_t a, std::int64_t b) { return column(a) < column(b); });
  }
  return order;
}

/// The rows in which no pair of a stored block takes part.
std::int64_t empty_rows(const BsrPatternView& matrix) {
  std::int64_t count = 0;
  for (std::int64_t panel = 0; panel < matrix.row_panels(); ++panel) {
    const std::int64_t begin = matrix.block_row_offsets[index(panel)];
    const std::int64_t end = matrix.block_row_offsets[index(panel + 1)];
    for (std::int64_t row = 0; row < matrix.block_rows; ++row) {
      bool empty = true;
      for (std::int64_t block = begin; empty && block < end; ++block) {
        if (matrix.bits.empty()) empty = false;
        for (std::int64_t c = 0; empty && c < matrix.block_columns; ++c) empty = !matrix.bit(block, row, c);
      }
      count += empty ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

bool is_plausible_size(std::int64_t size, std::size_t file_bytes) noexcept {
  return size <= kAlwaysPlausibleSize || static_cast<std::size_t>(size / kPlausibleSizePerByte) <= file_bytes;
}

void require_plausible_sizes(std::int64_t rows, std::int64_t columns, std::size_t file_bytes, const std::string& path,
                             std::int64_t line, std::int64_t column) {
  for (const auto& [name, size] : {std::pair{"rows", rows}, std::pair{"columns", columns}}) {
    if (size < 0 || size > std::numeric_limits<std::int32_t>::max()) {
      throw FileError(ErrorCode::file_format, path, line, column,
                      "found " + std::to_string(size) + " " + name + ", expected 0 to 2147483647");
    }
    if (!is_plausible_size(size, file_bytes)) {
      throw FileError(ErrorCode::file_format, path, line, column,
                      "found " + std::to_string(size) + " " + name + " in a file of " + std::to_string(file_bytes) +
                          " bytes, expected at most 16777216, or 64 for each byte");
    }
  }
}

CsrPattern canonical_pattern(FileEntries file, const std::string& path, const ReadOptions& options,
                             ReadReport& report) {
  return canonical(file, static_cast<const CooPattern&>(file.entries), path, options, report);
}

CsrMatrix<double> canonical_matrix(FileEntries file, const std::string& path, const ReadOptions& options,
                                   ReadReport& report) {
  return canonical(file, file.entries, path, options, report);
}

BsrMatrix<double> canonical_blocks(FileBlocks file, const std::string& path, const ReadOptions& options,
                                   ReadReport& report) {
  const std::vector<std::int64_t> order = sorted_blocks(file, path, options.strict, report.sorted_rows);
  const std::int64_t area = file.view().block_area();
  const std::int64_t words = file.view().words_per_block();
  report.stored_entries = file.view().blocks() * area;

  BsrMatrix<double> result;
  result.rows = file.rows;
  result.columns = file.columns;
  result.block_rows = file.block_rows;
  result.block_columns = file.block_columns;
  for (std::size_t panel = 0; panel + 1 < file.block_row_offsets.size(); ++panel) {
    const std::size_t first = result.block_column_indices.size();
    for (std::int64_t i = file.block_row_offsets[panel]; i < file.block_row_offsets[panel + 1]; ++i) {
      const std::int64_t block = order[index(i)];
      const std::int32_t column = file.block_column_indices[index(block)];
      const bool duplicate = result.block_column_indices.size() > first && result.block_column_indices.back() == column;
      if (duplicate) {
        report.duplicates_merged += area;
      } else {
        result.block_column_indices.push_back(column);
        if (!file.values.empty()) result.values.resize(result.values.size() + index(area));
        if (options.drop_zeros) result.bits.resize(result.bits.size() + index(words));
      }
      if (file.values.empty()) continue;
      const double* from = file.values.data() + block * area;
      double* to = result.values.data() + result.values.size() - area;
      for (std::int64_t k = 0; k < area; ++k) to[k] += from[k];
      if (!options.drop_zeros) continue;
      std::uint64_t* bits = result.bits.data() + result.bits.size() - words;
      for (std::int64_t k = 0; k < area; ++k) {
        if (from[k] != 0) {
          bits[k / 64] |= std::uint64_t{1} << (k % 64);
        } else {
          ++report.zeros_dropped;
        }
      }
    }
    result.block_row_offsets.push_back(static_cast<std::int64_t>(result.block_column_indices.size()));
  }
  report.empty_rows = empty_rows(result.view());
  return result;
}

}  // namespace cobble::detail
