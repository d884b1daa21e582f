#include "cobble/pattern.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "core/checked.hpp"
#include "pattern/arguments.hpp"
#include "pattern/pattern_node.hpp"
#include "pattern/tile_classifier.hpp"

namespace cobble {
namespace {

/// Throws unless 0 <= begin <= end <= limit.
void require_range(std::int64_t begin, std::int64_t end, std::int64_t limit, const char* what) {
  if (begin < 0 || begin > end || end > limit) {
    throw Error(ErrorCode::invalid_argument, std::string(what) + " [" + std::to_string(begin) + ", " +
                                                 std::to_string(end) + "), expected a range within [0, " +
                                                 std::to_string(limit) + ")");
  }
}

/// Throws unless 0 <= index < limit.
void require_index(std::int64_t index, std::int64_t limit, const char* what) {
  if (index < 0 || index >= limit) {
    throw Error(ErrorCode::invalid_argument, std::string(what) + " = " + std::to_string(index) +
                                                 ", expected one in [0, " + std::to_string(limit) + ")");
  }
}

/// Sets bits [begin, end) of an array of words.
void set_bits(std::uint64_t* words, std::int64_t begin, std::int64_t end) {
  while (begin < end) {
    const std::int64_t word_end = std::min(end, (begin / 64 + 1) * 64);
    words[begin / 64] |= (~std::uint64_t{0} >> (64 - (word_end - begin))) << (begin % 64);
    begin = word_end;
  }
}

/// Sets the bits of one matrix row in blocks `indices`, of which it is row `block_row`. `words` are their bits.
void set_row_bits(const BsrPattern& matrix, std::span<const std::int32_t> indices, std::int64_t block_row,
                  const std::vector<ColumnRun>& runs, std::uint64_t* words) {
  const std::int64_t words_per_block = matrix.view().words_per_block();
  const std::int64_t width = matrix.block_columns;
  std::size_t block = 0;
  for (const ColumnRun run : runs) {
    for (std::int64_t column = run.begin; column < run.end;) {
      const std::int64_t base = column / width * width;
      while (indices[block] < column / width) ++block;
      const std::int64_t stop = std::min<std::int64_t>(run.end, base + width);
      set_bits(words + static_cast<std::int64_t>(block) * words_per_block, block_row * width + column - base,
               block_row * width + stop - base);
      column = stop;
    }
  }
}

/// The bits of a matrix whose blocks are known already, from the runs of each row.
void fill_bits(const detail::PatternNode& node, BsrPattern& matrix) {
  const std::int64_t words_per_block = matrix.view().words_per_block();
  const std::int64_t words = checked_product({matrix.view().blocks(), words_per_block}, "the size of the blocks' bits");
  detail::reserve_entries(matrix.bits, words, "the list of the blocks' bits");
  matrix.bits.resize(static_cast<std::size_t>(words));
  std::vector<ColumnRun> runs;
  for (std::int32_t row = 0; row < node.rows(); ++row) {
    const auto panel = static_cast<std::size_t>(row / matrix.block_rows);
    const std::int64_t first = matrix.block_row_offsets[panel];
    const std::span<const std::int32_t> indices{matrix.block_column_indices.data() + first,
                                                static_cast<std::size_t>(matrix.block_row_offsets[panel + 1] - first)};
    runs.clear();
    node.append_runs(row, 0, node.columns(), runs);
    set_row_bits(matrix, indices, row % matrix.block_rows, runs, matrix.bits.data() + first * words_per_block);
  }
}

}  // namespace

Pattern::Pattern()
    : node_([] {
        static const Pattern empty = full(0);
        return empty.node_;
      }()) {}

Pattern::Pattern(std::shared_ptr<const detail::PatternNode> node) : node_(std::move(node)) {
  if (!node_) throw Error(ErrorCode::invalid_argument, "node is null, expected a pattern");
}

std::int64_t Pattern::rows() const noexcept { return node_->rows(); }

std::int64_t Pattern::columns() const noexcept { return node_->columns(); }

std::int64_t Pattern::pairs() const { return node_->total_pairs(); }

std::int64_t Pattern::pairs(std::int64_t row_begin, std::int64_t row_end) const {
  require_range(row_begin, row_end, rows(), "rows");
  if (row_begin == 0 && row_end == rows()) return node_->total_pairs();
  return node_->pairs(static_cast<std::int32_t>(row_begin), static_cast<std::int32_t>(row_end));
}

bool Pattern::contains(std::int64_t row, std::int64_t column) const {
  require_index(row, rows(), "row");
  require_index(column, columns(), "column");
  detail::ScratchRuns scratch;
  const auto position = static_cast<std::int32_t>(column);
  node_->append_runs(static_cast<std::int32_t>(row), position, position + 1, scratch.runs());
  return scratch.runs().size() > scratch.first();
}

void Pattern::append_runs(std::int64_t row, std::int64_t column_begin, std::int64_t column_end,
                          std::vector<ColumnRun>& runs) const {
  require_index(row, rows(), "row");
  require_range(column_begin, column_end, columns(), "columns");
  node_->append_runs(static_cast<std::int32_t>(row), static_cast<std::int32_t>(column_begin),
                     static_cast<std::int32_t>(column_end), runs);
}

std::uint64_t Pattern::bits(std::int64_t row, std::int64_t column) const {
  require_index(row, rows(), "row");
  require_index(column, columns(), "column");
  return node_->bits(static_cast<std::int32_t>(row), static_cast<std::int32_t>(column));
}

void Pattern::tiles(std::int64_t row_begin, std::int64_t row_end, std::int64_t column_panel,
                    std::vector<PatternTile>& tiles) const {
  require_range(row_begin, row_end, rows(), "rows");
  detail::require_at_least(column_panel, 1, "column_panel");
  detail::TileClassifier(columns(), column_panel).classify(*node_, row_begin, row_end, tiles);
}

std::string Pattern::describe() const { return node_->describe(); }

CsrPattern Pattern::to_csr() const {
  CsrPattern matrix{rows(), columns(), {0}, {}};
  detail::reserve_entries(matrix.column_indices, pairs(), "the list of pairs");
  detail::reserve_entries(matrix.row_offsets, rows() + 1, "the list of row offsets");
  std::vector<ColumnRun> runs;
  for (std::int32_t row = 0; row < node_->rows(); ++row) {
    runs.clear();
    node_->append_runs(row, 0, node_->columns(), runs);
    for (const ColumnRun run : runs) {
      for (std::int32_t column = run.begin; column < run.end; ++column) matrix.column_indices.push_back(column);
    }
    matrix.row_offsets.push_back(static_cast<std::int64_t>(matrix.column_indices.size()));
  }
  return matrix;
}

BsrPattern Pattern::to_bsr(std::int32_t block_rows, std::int32_t block_columns) const {
  detail::require_at_least(block_rows, 1, "block_rows");
  detail::require_at_least(block_columns, 1, "block_columns");
  BsrPattern matrix{rows(), columns(), block_rows, block_columns, {0}, {}, {}};
  detail::TileClassifier classifier(columns(), block_columns);
  std::vector<PatternTile> tiles;
  bool whole = true;
  for (std::int64_t row = 0; row < rows(); row += block_rows) {
    classifier.classify(*node_, row, std::min(row + block_rows, rows()), tiles);
    for (const PatternTile& tile : tiles) {
      matrix.block_column_indices.push_back(tile.column_panel);
      whole = whole && tile.kind == TileKind::full;
    }
    matrix.block_row_offsets.push_back(static_cast<std::int64_t>(matrix.block_column_indices.size()));
  }
  if (!whole) fill_bits(*node_, matrix);
  return matrix;
}

}  // namespace cobble
