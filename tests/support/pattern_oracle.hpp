#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cobble/pattern.hpp"
#include "support/sample_patterns.hpp"

namespace cobble::test {

/// A pattern written out pair by pair, and what it must answer, the slow and obvious way. Each check returns the first
/// thing that differs, or nothing.
class DensePattern {
 public:
  DensePattern(std::int64_t rows, std::int64_t columns, const PairPredicate& contains)
      : rows_(rows),
        columns_(columns),
        pairs_(static_cast<std::size_t>(rows * columns)),
        counts_(static_cast<std::size_t>((rows + 1) * (columns + 1))) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        pairs_[static_cast<std::size_t>(i * columns + j)] = contains(i, j) ? 1 : 0;
        count_at(i + 1, j + 1) = count_at(i, j + 1) + count_at(i + 1, j) - count_at(i, j) + (at(i, j) ? 1 : 0);
      }
    }
  }

  bool at(std::int64_t i, std::int64_t j) const { return pairs_[static_cast<std::size_t>(i * columns_ + j)] != 0; }
  std::int64_t pairs(std::int64_t row_begin, std::int64_t row_end, std::int64_t begin, std::int64_t end) const {
    return count_at(row_end, end) - count_at(row_begin, end) - count_at(row_end, begin) + count_at(row_begin, begin);
  }

  std::vector<ColumnRun> runs(std::int64_t row, std::int64_t begin, std::int64_t end) const {
    std::vector<ColumnRun> runs;
    for (std::int64_t j = begin; j < end; ++j) {
      if (!at(row, j)) continue;
      if (j > begin && at(row, j - 1)) {
        ++runs.back().end;
      } else {
        runs.push_back({static_cast<std::int32_t>(j), static_cast<std::int32_t>(j + 1)});
      }
    }
    return runs;
  }

  /// Runs over whole rows and over clipped ranges, into a vector that holds a caller's run already.
  std::string check_runs(const Pattern& pattern) const {
    const ColumnRun callers{0, 1};
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::int64_t third = columns_ / 3;
      const std::int64_t ranges[][2] = {
          {0, columns_},  {third, columns_ - third}, {row % columns_, columns_}, {third, std::min(third + 1, columns_)},
          {third, third}, {0, (row * 7) % columns_}};
      for (const auto& range : ranges) {
        std::vector<ColumnRun> found{callers};
        pattern.append_runs(row, range[0], range[1], found);
        std::vector<ColumnRun> expected = runs(row, range[0], range[1]);
        expected.insert(expected.begin(), callers);
        if (found != expected) {
          return "runs of row " + std::to_string(row) + " in [" + std::to_string(range[0]) + ", " +
                 std::to_string(range[1]) + ")";
        }
      }
    }
    return {};
  }

  std::string check_bits(const Pattern& pattern) const {
    for (std::int64_t row = 0; row < rows_; ++row) {
      for (std::int64_t column = row % 5; column < columns_; column += 29) {
        std::uint64_t expected = 0;
        for (std::int64_t k = 0; k < 64 && column + k < columns_; ++k) {
          if (at(row, column + k)) expected |= std::uint64_t{1} << k;
        }
        if (pattern.bits(row, column) != expected || pattern.contains(row, column) != at(row, column)) {
          return "bits at " + std::to_string(row) + ", " + std::to_string(column);
        }
      }
    }
    return {};
  }

  std::string check_pairs(const Pattern& pattern) const {
    if (pattern.pairs() != pairs(0, rows_, 0, columns_)) return "pairs() = " + std::to_string(pattern.pairs());
    for (std::int64_t row = 0; row <= rows_; ++row) {
      for (const std::int64_t last : {row, std::min(row + 1, rows_), std::min(row + 19, rows_), rows_}) {
        if (pattern.pairs(row, last) != pairs(row, last, 0, columns_)) {
          return "pairs of rows [" + std::to_string(row) + ", " + std::to_string(last) + ")";
        }
      }
    }
    return {};
  }

  std::string check_tiles(const Pattern& pattern, std::int64_t height, std::int64_t width) const {
    std::vector<PatternTile> found{{7, TileKind::full, 7}};  // must be replaced
    for (std::int64_t row = 0; row < rows_; row += height) {
      const std::int64_t last = std::min(row + height, rows_);
      std::vector<PatternTile> expected;
      for (std::int64_t panel = 0; panel * width < columns_; ++panel) {
        const std::int64_t end = std::min((panel + 1) * width, columns_);
        const std::int64_t count = pairs(row, last, panel * width, end);
        if (count == 0) continue;
        const bool full = count == (last - row) * (end - panel * width);
        expected.push_back({static_cast<std::int32_t>(panel), full ? TileKind::full : TileKind::partial, count});
      }
      pattern.tiles(row, last, width, found);
      if (found != expected) {
        return std::to_string(height) + " x " + std::to_string(width) + " tiles from row " + std::to_string(row);
      }
    }
    return {};
  }

  std::string check_storage(const Pattern& pattern) const {
    if (pattern.to_csr() != csr_of(rows_, columns_, [this](auto i, auto j) { return at(i, j); })) return "to_csr";
    const std::int32_t shapes[][2] = {{1, 1}, {16, 16}, {7, 50}, {64, 64}, {3, 130}};
    for (const auto& [height, width] : shapes) {
      BsrPattern expected = bsr_of(rows_, columns_, height, width, [this](auto i, auto j) { return at(i, j); });
      std::int64_t area = 0;  // inside the matrix, of the stored blocks
      for (std::int64_t panel = 0; panel < expected.view().row_panels(); ++panel) {
        const auto first = static_cast<std::size_t>(expected.block_row_offsets[static_cast<std::size_t>(panel)]);
        const auto last = static_cast<std::size_t>(expected.block_row_offsets[static_cast<std::size_t>(panel) + 1]);
        for (std::size_t k = first; k < last; ++k) {
          area += std::min<std::int64_t>(height, rows_ - panel * height) *
                  std::min<std::int64_t>(width, columns_ - std::int64_t{expected.block_column_indices[k]} * width);
        }
      }
      if (area == pairs(0, rows_, 0, columns_)) expected.bits.clear();
      if (pattern.to_bsr(height, width) != expected) {
        return "to_bsr " + std::to_string(height) + " x " + std::to_string(width);
      }
    }
    return {};
  }

 private:
  std::int64_t& count_at(std::int64_t i, std::int64_t j) {
    return counts_[static_cast<std::size_t>(i * (columns_ + 1) + j)];
  }
  std::int64_t count_at(std::int64_t i, std::int64_t j) const {
    return counts_[static_cast<std::size_t>(i * (columns_ + 1) + j)];
  }

  std::int64_t rows_;
  std::int64_t columns_;
  std::vector<std::uint8_t> pairs_;
  std::vector<std::int64_t> counts_;  ///< of the pairs above and to the left
};

/// The first way in which the pattern differs from its predicate, or nothing.
inline std::string first_difference(const Pattern& pattern, std::int64_t n_q, std::int64_t n_k,
                                    const PairPredicate& contains) {
  if (pattern.rows() != n_q || pattern.columns() != n_k) return "size";
  const DensePattern dense(n_q, n_k, contains);
  std::string difference = dense.check_runs(pattern);
  if (difference.empty()) difference = dense.check_bits(pattern);
  if (difference.empty()) difference = dense.check_pairs(pattern);
  const std::int64_t shapes[][2] = {{1, 1}, {16, 16}, {64, 64}, {7, 50}, {300, 1}, {5, 1000}};
  for (const auto& [height, width] : shapes) {
    if (difference.empty()) difference = dense.check_tiles(pattern, height, width);
  }
  if (difference.empty()) difference = dense.check_storage(pattern);
  return difference;
}

}  // namespace cobble::test
