#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pattern/pattern_node.hpp"
#include "pattern/stored_patterns.hpp"

namespace cobble {
namespace detail {
namespace {

class CsrNode final : public PatternNode {
 public:
  CsrNode(CsrPattern matrix, std::string text)
      : PatternNode(static_cast<std::int32_t>(matrix.rows), static_cast<std::int32_t>(matrix.columns)),
        matrix_(std::move(matrix)),
        text_(std::move(text)) {}

  const CsrPattern& matrix() const noexcept { return matrix_; }

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    const auto* column = first_from(row, begin);
    const auto* const last = matrix_.column_indices.data() + offset(row + std::int64_t{1});
    while (column != last && *column < end) {
      ColumnRun run{*column, *column + 1};
      for (++column; column != last && *column == run.end && run.end < end; ++column) ++run.end;
      runs.push_back(run);
    }
  }
  std::uint64_t bits(std::int32_t row, std::int32_t column) const override {
    const auto* index = first_from(row, column);
    const auto* const last = matrix_.column_indices.data() + offset(row + std::int64_t{1});
    std::uint64_t bits = 0;
    for (; index != last && *index - column < 64; ++index) bits |= std::uint64_t{1} << (*index - column);
    return bits;
  }
  std::int64_t pairs_before(std::int32_t row, std::int32_t column) const override {
    return first_from(row, column) - (matrix_.column_indices.data() + offset(row));
  }
  std::int64_t pairs(std::int32_t row_begin, std::int32_t row_end) const override {
    return offset(row_end) - offset(row_begin);
  }
  std::span<const std::int32_t> stored_row(std::int32_t row) const override {
    const std::int64_t begin = offset(row);
    return std::span(matrix_.column_indices)
        .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(offset(row + std::int64_t{1}) - begin));
  }
  std::int64_t index_words(std::int64_t pairs) const override { return pairs; }
  std::string describe() const override {
    if (!text_.empty()) return text_;
    return "csr(" + std::to_string(rows()) + "x" + std::to_string(columns()) + ", " +
           std::to_string(matrix_.column_indices.size()) + " pairs)";
  }

 private:
  std::int64_t offset(std::int64_t row) const { return matrix_.row_offsets[static_cast<std::size_t>(row)]; }
  /// The first stored column of `row` that is not before `column`.
  const std::int32_t* first_from(std::int32_t row, std::int32_t column) const {
    const std::int32_t* const begin = matrix_.column_indices.data() + offset(row);
    if (column == 0) return begin;
    return std::lower_bound(begin, matrix_.column_indices.data() + offset(row + std::int64_t{1}), column);
  }

  CsrPattern matrix_;
  std::string text_;
};

}  // namespace

Pattern csr_pattern(CsrPattern matrix, std::string text) {
  return Pattern(std::make_shared<CsrNode>(std::move(matrix), std::move(text)));
}

const CsrPattern* stored_rows(const Pattern& pattern) noexcept {
  const auto* node = dynamic_cast<const CsrNode*>(&pattern.node());
  return node == nullptr ? nullptr : &node->matrix();
}

}  // namespace detail

Pattern from_csr(CsrPattern matrix) {
  validate(matrix);
  return detail::csr_pattern(std::move(matrix));
}

}  // namespace cobble
