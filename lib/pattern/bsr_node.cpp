#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/checked.hpp"
#include "pattern/pattern_node.hpp"
#include "pattern/stored_patterns.hpp"

namespace cobble {
namespace detail {
namespace {

class BsrNode final : public PatternNode {
 public:
  BsrNode(BsrPattern matrix, std::string text)
      : PatternNode(static_cast<std::int32_t>(matrix.rows), static_cast<std::int32_t>(matrix.columns)),
        matrix_(std::move(matrix)),
        words_per_block_(matrix_.view().words_per_block()),
        text_(std::move(text)) {
    count_panels();
  }

  const BsrPattern& matrix() const noexcept { return matrix_; }

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    if (begin >= end) return;
    const std::size_t first = runs.size();
    const std::int32_t panel = row / matrix_.block_rows;
    const auto* const indices = matrix_.block_column_indices.data();
    const auto* const last = indices + block_offset(panel + std::int64_t{1});
    const auto* block = indices + block_offset(panel);
    if (begin > 0) block = std::lower_bound(block, last, begin / matrix_.block_columns);
    for (; block != last; ++block) {
      const std::int64_t column = std::int64_t{*block} * matrix_.block_columns;
      if (column >= end) return;
      if (matrix_.bits.empty()) {
        append_clipped(column, column + matrix_.block_columns, begin, end, first, runs);
      } else {
        append_block_row(block - indices, row - panel * matrix_.block_rows, column, begin, end, first, runs);
      }
    }
  }
  std::int32_t alike_until(std::int32_t row) const override {
    if (!matrix_.bits.empty()) return row + 1;
    const std::int64_t end = (row / matrix_.block_rows + std::int64_t{1}) * matrix_.block_rows;
    return static_cast<std::int32_t>(std::min<std::int64_t>(end, rows()));
  }
  std::int64_t index_words(std::int64_t pairs) const override {
    // A block's index and, where it has them, its bits, shared by the pairs of a mean block.
    const std::int64_t words = matrix_.view().blocks() * (matrix_.bits.empty() ? 1 : 1 + words_per_block_);
    const std::int64_t total = total_pairs();
    return total == 0 ? 0 : (pairs * words + total - 1) / total;
  }
  std::int64_t pairs(std::int32_t row_begin, std::int32_t row_end) const override {
    const std::int64_t first_panel = divide_up(row_begin, matrix_.block_rows);
    const std::int64_t last_panel =
        row_end == rows() ? divide_up(row_end, matrix_.block_rows) : row_end / matrix_.block_rows;
    if (first_panel >= last_panel) return PatternNode::pairs(row_begin, row_end);
    const auto first_row = static_cast<std::int32_t>(first_panel * matrix_.block_rows);
    const auto last_row = static_cast<std::int32_t>(std::min<std::int64_t>(last_panel * matrix_.block_rows, row_end));
    return PatternNode::pairs(row_begin, first_row) + pairs_before_[static_cast<std::size_t>(last_panel)] -
           pairs_before_[static_cast<std::size_t>(first_panel)] + PatternNode::pairs(last_row, row_end);
  }
  std::string describe() const override {
    if (!text_.empty()) return text_;
    return "bsr(" + std::to_string(rows()) + "x" + std::to_string(columns()) + ", " +
           std::to_string(matrix_.block_column_indices.size()) + " blocks of " + std::to_string(matrix_.block_rows) +
           "x" + std::to_string(matrix_.block_columns) + ", " + std::to_string(pairs_before_.back()) + " pairs)";
  }

 private:
  std::int64_t block_offset(std::int64_t panel) const {
    return matrix_.block_row_offsets[static_cast<std::size_t>(panel)];
  }

  /// Appends the runs of ones in one row of a block with bits. The block begins at `column` of the matrix.
  void append_block_row(std::int64_t block, std::int64_t block_row, std::int64_t column, std::int32_t begin,
                        std::int32_t end, std::size_t first, std::vector<ColumnRun>& runs) const {
    const auto* const words = matrix_.bits.data() + block * words_per_block_;
    const std::int64_t row_bit = block_row * matrix_.block_columns;
    std::int64_t bit = row_bit + std::max<std::int64_t>(begin - column, 0);
    const std::int64_t bit_end = row_bit + std::min<std::int64_t>(end - column, matrix_.block_columns);
    while (bit < bit_end) {
      const std::uint64_t word = words[bit / 64] >> (bit % 64);
      if (word == 0) {
        bit = (bit / 64 + 1) * 64;
        continue;
      }
      bit += std::countr_zero(word);
      const std::uint64_t ones = words[bit / 64] >> (bit % 64);
      // A run that fills the word goes on in the next one, where append_clipped joins the two.
      const std::int64_t run_end = std::min(bit + std::countr_one(ones), bit_end);
      append_clipped(column + bit - row_bit, column + run_end - row_bit, begin, end, first, runs);
      bit = run_end;
    }
  }

  void count_panels() {
    const std::int64_t panels = matrix_.view().row_panels();
    const std::int64_t last_column_block = matrix_.view().column_panels() - 1;
    const std::int64_t padding = (last_column_block + 1) * matrix_.block_columns - matrix_.columns;
    pairs_before_.assign(static_cast<std::size_t>(panels) + 1, 0);
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      const std::int64_t first = block_offset(panel);
      const std::int64_t last = block_offset(panel + 1);
      std::int64_t pairs = 0;
      if (matrix_.bits.empty()) {
        const std::int64_t height =
            std::min<std::int64_t>(matrix_.block_rows, matrix_.rows - panel * matrix_.block_rows);
        const bool ragged =
            first < last && matrix_.block_column_indices[static_cast<std::size_t>(last - 1)] == last_column_block;
        pairs = height * ((last - first) * matrix_.block_columns - (ragged ? padding : 0));
      } else {
        for (std::int64_t word = first * words_per_block_; word < last * words_per_block_; ++word) {
          pairs += std::popcount(matrix_.bits[static_cast<std::size_t>(word)]);
        }
      }
      pairs_before_[static_cast<std::size_t>(panel) + 1] = pairs_before_[static_cast<std::size_t>(panel)] + pairs;
    }
  }

  BsrPattern matrix_;
  std::int64_t words_per_block_;
  std::string text_;
  std::vector<std::int64_t> pairs_before_;  ///< in earlier block rows
};

}  // namespace

Pattern bsr_pattern(BsrPattern matrix, std::string text) {
  return Pattern(std::make_shared<BsrNode>(std::move(matrix), std::move(text)));
}

const BsrPattern* stored_blocks(const Pattern& pattern) noexcept {
  const auto* node = dynamic_cast<const BsrNode*>(&pattern.node());
  return node == nullptr ? nullptr : &node->matrix();
}

}  // namespace detail

Pattern from_bsr(BsrPattern matrix) {
  validate(matrix);
  return detail::bsr_pattern(std::move(matrix));
}

}  // namespace cobble
