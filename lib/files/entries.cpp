#include "files/entries.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "cobble/error.hpp"

namespace cobble::detail {
namespace {

constexpr std::int64_t kAlwaysPlausibleSize = std::int64_t{1} << 22;
constexpr std::int64_t kPlausibleSizePerByte = 64;

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw FileError(ErrorCode::file_format, path, 0, 0, message);
}

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Throws where the columns of a row do not increase in the file's order, whatever the order of the rows.
void require_ascending_rows(const FileEntries& file, const std::string& path) {
  std::vector<std::int32_t> last_column(index(file.entries.rows), -1);
  for (std::size_t i = 0; i < file.entries.row_indices.size(); ++i) {
    const std::int32_t row = file.entries.row_indices[i];
    const std::int32_t column = file.entries.column_indices[i];
    const std::int32_t last = std::exchange(last_column[index(row)], column);
    if (column <= last) {
      fail(path, "row " + std::to_string(row) + " has column " + std::to_string(column) +
                     (column == last ? " twice" : " after column " + std::to_string(last)) +
                     " (counted from 0), which strict reading does not allow");
    }
  }
}

void drop_zeros(CooMatrix<double>& entries) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries.values.size(); ++i) {
    if (entries.values[i] == 0) continue;
    entries.row_indices[kept] = entries.row_indices[i];
    entries.column_indices[kept] = entries.column_indices[i];
    entries.values[kept] = entries.values[i];
    ++kept;
  }
  entries.row_indices.resize(kept);
  entries.column_indices.resize(kept);
  entries.values.resize(kept);
}

/// Calls `visit(row, column, i, mirrored)` for each entry i, then for the mirrored ones.
template <class Visit>
void for_each_entry(const FileEntries& file, Visit visit) {
  const CooMatrix<double>& entries = file.entries;
  for (std::size_t i = 0; i < entries.row_indices.size(); ++i) {
    visit(entries.row_indices[i], entries.column_indices[i], i, false);
  }
  if (file.mirror == Mirror::none) return;
  for (std::size_t i = 0; i < entries.row_indices.size(); ++i) {
    if (entries.row_indices[i] == entries.column_indices[i]) continue;
    visit(entries.column_indices[i], entries.row_indices[i], i, true);
  }
}

/// Mirrored ones included.
std::int64_t count_entries(const FileEntries& file) {
  std::int64_t count = 0;
  for_each_entry(file, [&](auto...) { ++count; });
  return count;
}

/// Sorts columns [begin, end), and with them their values if there are any. Equal ones keep their order.
void sort_row(std::vector<std::int32_t>& columns, std::vector<double>* values, std::size_t begin, std::size_t end) {
  if (values == nullptr) {
    std::sort(columns.data() + begin, columns.data() + end);
    return;
  }
  std::vector<std::pair<std::int32_t, double>> row;
  for (std::size_t i = begin; i < end; ++i) row.emplace_back(columns[i], (*values)[i]);
  std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = begin; i < end; ++i) std::tie(columns[i], (*values)[i]) = row[i - begin];
}

/// Sorts and merges each row in place and closes the gaps.
void merge_rows(CsrPattern& matrix, std::vector<double>* values, ReadReport& report) {
  std::vector<std::int32_t>& columns = matrix.column_indices;
  std::size_t kept = 0;
  std::size_t begin = 0;
  for (std::size_t row = 0; row < index(matrix.rows); ++row) {
    const std::size_t end = index(matrix.row_offsets[row + 1]);
    if (!std::is_sorted(columns.data() + begin, columns.data() + end)) {
      report.sorted_rows = true;
      sort_row(columns, values, begin, end);
    }
    const std::size_t first = kept;
    for (std::size_t i = begin; i < end; ++i) {
      if (kept > first && columns[kept - 1] == columns[i]) {
        if (values != nullptr) (*values)[kept - 1] += (*values)[i];
        continue;
      }
      columns[kept] = columns[i];
      if (values != nullptr) (*values)[kept] = (*values)[i];
      ++kept;
    }
    report.empty_rows += kept == first ? 1 : 0;
    matrix.row_offsets[row + 1] = static_cast<std::int64_t>(kept);
    begin = end;
  }
  report.duplicates_merged = static_cast<std::int64_t>(columns.size() - kept);
  columns.resize(kept);
  if (values != nullptr) values->resize(kept);
}

/// Distributes the entries over rows in the file's order, then puts each row in order: files are mostly sorted by row
/// or by column, and then no row needs sorting. (to_csr() sorts by column and by row, which takes twice the time.)
void compress(FileEntries file, const std::string& path, const ReadOptions& options, CsrPattern& matrix,
              std::vector<double>* values, ReadReport& report) {
  report.stored_entries = count_entries(file);
  report.expanded_symmetry = file.mirror != Mirror::none;
  if (options.strict) require_ascending_rows(file, path);
  if (options.drop_zeros) drop_zeros(file.entries);
  const std::int64_t count = options.drop_zeros ? count_entries(file) : report.stored_entries;
  report.zeros_dropped = report.stored_entries - count;

  matrix.rows = file.entries.rows;
  matrix.columns = file.entries.columns;
  matrix.row_offsets.assign(index(matrix.rows) + 1, 0);
  for_each_entry(file, [&](std::int32_t row, auto...) { ++matrix.row_offsets[index(row) + 1]; });
  std::partial_sum(matrix.row_offsets.begin(), matrix.row_offsets.end(), matrix.row_offsets.begin());
  std::vector<std::int64_t> next(matrix.row_offsets.begin(), matrix.row_offsets.end() - 1);
  matrix.column_indices.resize(index(count));
  if (values != nullptr) values->resize(index(count));
  for_each_entry(file, [&](std::int32_t row, std::int32_t column, std::size_t i, bool mirrored) {
    const std::size_t to = index(next[index(row)]++);
    matrix.column_indices[to] = column;
    if (values == nullptr) return;
    const double value = file.entries.values[i];
    (*values)[to] = mirrored && file.mirror == Mirror::skew_symmetric ? -value : value;
  });
  merge_rows(matrix, values, report);
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
                          " bytes, expected at most 4194304, or 64 for each byte");
    }
  }
}

CsrPattern canonical_pattern(FileEntries file, const std::string& path, const ReadOptions& options,
                             ReadReport& report) {
  CsrPattern matrix;
  compress(std::move(file), path, options, matrix, nullptr, report);
  return matrix;
}

CsrMatrix<double> canonical_matrix(FileEntries file, const std::string& path, const ReadOptions& options,
                                   ReadReport& report) {
  CsrMatrix<double> matrix;
  compress(std::move(file), path, options, matrix, &matrix.values, report);
  return matrix;
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
