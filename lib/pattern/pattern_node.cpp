#include "pattern/pattern_node.hpp"

#include <algorithm>

namespace cobble::detail {
namespace {

std::vector<ColumnRun>& thread_runs() {
  thread_local std::vector<ColumnRun> runs;
  return runs;
}

}  // namespace

ScratchRuns::ScratchRuns() : runs_(thread_runs()), first_(runs_.size()) {}

std::uint64_t PatternNode::bits(std::int32_t row, std::int32_t column) const {
  ScratchRuns scratch;
  append_runs(row, column, static_cast<std::int32_t>(std::min<std::int64_t>(columns_, std::int64_t{column} + 64)),
              scratch.runs());
  std::uint64_t bits = 0;
  for (std::size_t k = scratch.first(); k < scratch.runs().size(); ++k) {
    const ColumnRun run = scratch.runs()[k];
    bits |= interval_bits(run.begin, run.end, column);
  }
  return bits;
}

std::int64_t PatternNode::pairs_before(std::int32_t row, std::int32_t column) const {
  ScratchRuns scratch;
  append_runs(row, 0, column, scratch.runs());
  std::int64_t pairs = 0;
  for (std::size_t k = scratch.first(); k < scratch.runs().size(); ++k) {
    pairs += scratch.runs()[k].end - scratch.runs()[k].begin;
  }
  return pairs;
}

std::int64_t PatternNode::pairs(std::int32_t row_begin, std::int32_t row_end) const {
  std::vector<ColumnRun> runs;
  std::int64_t pairs = 0;
  for (std::int32_t row = row_begin; row < row_end; ++row) {
    runs.clear();
    append_runs(row, 0, columns_, runs);
    for (const ColumnRun run : runs) pairs += run.end - run.begin;
  }
  return pairs;
}

bool PatternNode::single_runs(std::int32_t row_begin, std::int32_t row_end, std::int32_t begin, std::int32_t end,
                              ColumnRun* runs) const {
  ScratchRuns scratch;
  std::vector<ColumnRun>& found = scratch.runs();
  for (std::int32_t row = row_begin; row < row_end; ++row) {
    found.resize(scratch.first());
    append_runs(row, begin, end, found);
    if (found.size() > scratch.first() + 1) return false;
    *runs++ = found.size() > scratch.first() ? found.back() : ColumnRun{};
  }
  return true;
}

std::int64_t PatternNode::total_pairs() const {
  // Every thread counts the same number, so it does not matter whose is kept.
  std::int64_t pairs = total_pairs_.load(std::memory_order_relaxed);
  if (pairs < 0) {
    pairs = this->pairs(0, rows_);
    total_pairs_.store(pairs, std::memory_order_relaxed);
  }
  return pairs;
}

}  // namespace cobble::detail
