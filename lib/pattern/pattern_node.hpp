#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cobble/pattern.hpp"

namespace cobble::detail {

/// What a kind of pattern must answer. Everything else follows from append_runs().
class PatternNode {
 public:
  /// How tightly describe()'s expression binds, for parentheses.
  enum class Binding { sum, product, prefix, atom };

  PatternNode(std::int32_t rows, std::int32_t columns) : rows_(rows), columns_(columns) {}
  virtual ~PatternNode() = default;
  PatternNode(const PatternNode&) = delete;
  PatternNode& operator=(const PatternNode&) = delete;

  std::int32_t rows() const noexcept { return rows_; }
  std::int32_t columns() const noexcept { return columns_; }

  /// Appends the maximal runs of `row` within [begin, end), sorted and disjoint, 0 <= begin <= end <= columns. Runs
  /// already in `runs` belong to the caller and are not merged with.
  virtual void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                           std::vector<ColumnRun>& runs) const = 0;
  /// Columns [column, column + 64) of `row` as bits, 0 <= column <= columns; 0 beyond the end. The default asks for
  /// the runs.
  virtual std::uint64_t bits(std::int32_t row, std::int32_t column) const;
  /// Pairs of `row` before `column`. The default walks the runs.
  virtual std::int64_t pairs_before(std::int32_t row, std::int32_t column) const;
  /// Pairs in rows [row_begin, row_end). The default walks the runs.
  virtual std::int64_t pairs(std::int32_t row_begin, std::int32_t row_end) const;
  /// What rows [row_begin, row_end) have within [begin, end), when that is no more than one run each: writes them, {0,
  /// 0} for none, and returns true. The default asks for the runs.
  virtual bool single_runs(std::int32_t row_begin, std::int32_t row_end, std::int32_t begin, std::int32_t end,
                           ColumnRun* runs) const;
  /// The columns of a row where they are stored one by one; no data where they are not.
  virtual std::span<const std::int32_t> stored_row(std::int32_t) const { return {}; }
  /// The end of a range of rows from `row` on that all have the same pairs; as long as costs nothing to say.
  virtual std::int32_t alike_until(std::int32_t row) const { return row + 1; }
  /// Words of stored structure that are read to learn where `pairs` pairs stand; 0 for what is computed.
  virtual std::int64_t index_words(std::int64_t) const { return 0; }
  virtual std::string describe() const = 0;
  virtual Binding binding() const noexcept { return Binding::atom; }
  /// How deep set operations nest below this node.
  virtual int depth() const noexcept { return 0; }

  /// Pairs in all rows, counted once.
  std::int64_t total_pairs() const;

 private:
  std::int32_t rows_;
  std::int32_t columns_;
  mutable std::atomic<std::int64_t> total_pairs_{-1};
};

/// Appends [begin, end) clipped to [low, high) unless nothing is left; merges with the last run of `runs` from
/// position `first` on when the two touch or overlap.
inline void append_clipped(std::int64_t begin, std::int64_t end, std::int32_t low, std::int32_t high, std::size_t first,
                           std::vector<ColumnRun>& runs) {
  if (begin < low) begin = low;
  if (end > high) end = high;
  if (begin >= end) return;
  if (runs.size() > first && runs.back().end >= begin) {
    if (runs.back().end < end) runs.back().end = static_cast<std::int32_t>(end);
    return;
  }
  runs.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)});
}

/// Columns [begin, end) as bits of [column, column + 64).
inline std::uint64_t interval_bits(std::int64_t begin, std::int64_t end, std::int64_t column) {
  if (begin < column) begin = column;
  if (end > column + 64) end = column + 64;
  if (begin >= end) return 0;
  return (~std::uint64_t{0} >> (64 - (end - begin))) << (begin - column);
}

/// The end of a stack of runs that each thread keeps, so that short questions allocate nothing. Runs from first() on
/// belong to this object; a question asked while another is being answered (a predicate may ask a pattern) stands
/// above it on the stack.
class ScratchRuns {
 public:
  ScratchRuns();
  ~ScratchRuns() { runs_.resize(first_); }
  ScratchRuns(const ScratchRuns&) = delete;
  ScratchRuns& operator=(const ScratchRuns&) = delete;

  std::vector<ColumnRun>& runs() noexcept { return runs_; }
  std::size_t first() const noexcept { return first_; }

 private:
  std::vector<ColumnRun>& runs_;
  std::size_t first_;
};

}  // namespace cobble::detail
