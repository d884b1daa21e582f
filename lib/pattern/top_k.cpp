#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pattern/arguments.hpp"
#include "pattern/stored_patterns.hpp"

// Padded lists of selected tokens or blocks, as top-k selections are stored.

namespace cobble {
namespace detail {
namespace {

/// One entry of a padded list of selections: -1, or an index below `limit`.
std::int32_t checked_selection(std::int64_t value, std::int64_t limit, std::int64_t row, std::int64_t position) {
  if (value < -1 || value >= limit) {
    throw Error(ErrorCode::invalid_argument,
                "indices[" + std::to_string(row) + "][" + std::to_string(position) + "] = " + std::to_string(value) +
                    ", expected -1 (padding) or an index in [0, " + std::to_string(limit) + ")");
  }
  return static_cast<std::int32_t>(value);
}

struct SelectionLists {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> indices;
};

/// Sorts each row's selections and drops padding and duplicates.
SelectionLists selection_lists(std::span<const std::int64_t> indices, std::int64_t lists, std::int64_t per_row,
                               std::int64_t limit) {
  require_at_least(per_row, 0, "per_row");
  const std::int64_t expected = checked_product({lists, per_row}, "rows x per_row");
  if (static_cast<std::int64_t>(indices.size()) != expected) {
    throw Error(ErrorCode::shape_mismatch, "indices has " + std::to_string(indices.size()) + " entries, expected " +
                                               std::to_string(lists) + " lists x per_row " + std::to_string(per_row) +
                                               " = " + std::to_string(expected));
  }
  SelectionLists result;
  result.offsets.reserve(static_cast<std::size_t>(lists) + 1);
  for (std::int64_t list = 0; list < lists; ++list) {
    const auto first = static_cast<std::ptrdiff_t>(result.indices.size());
    for (std::int64_t k = 0; k < per_row; ++k) {
      const std::int32_t index =
          checked_selection(indices[static_cast<std::size_t>(list * per_row + k)], limit, list, k);
      if (index >= 0) result.indices.push_back(index);
    }
    std::sort(result.indices.begin() + first, result.indices.end());
    result.indices.erase(std::unique(result.indices.begin() + first, result.indices.end()), result.indices.end());
    result.offsets.push_back(static_cast<std::int64_t>(result.indices.size()));
  }
  return result;
}

}  // namespace
}  // namespace detail

Pattern top_k_tokens(std::span<const std::int64_t> indices, std::int64_t rows, std::int64_t per_row,
                     std::int64_t columns) {
  checked_index(rows, "rows");
  checked_index(columns, "columns");
  detail::SelectionLists lists = detail::selection_lists(indices, rows, per_row, columns);
  return detail::csr_pattern({rows, columns, std::move(lists.offsets), std::move(lists.indices)});
}

Pattern top_k_blocks(std::span<const std::int64_t> indices, std::int64_t n_q, std::int64_t n_k, std::int64_t per_row,
                     std::int32_t block_rows, std::int32_t block_columns) {
  checked_index(n_q, "n_q");
  checked_index(n_k, "n_k");
  detail::require_at_least(block_rows, 1, "block_rows");
  detail::require_at_least(block_columns, 1, "block_columns");
  detail::SelectionLists lists =
      detail::selection_lists(indices, divide_up(n_q, block_rows), per_row, divide_up(n_k, block_columns));
  return detail::bsr_pattern(
      {n_q, n_k, block_rows, block_columns, std::move(lists.offsets), std::move(lists.indices), {}});
}

}  // namespace cobble
