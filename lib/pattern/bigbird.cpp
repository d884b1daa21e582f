#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "pattern/arguments.hpp"
#include "pattern/random.hpp"
#include "pattern/sampling.hpp"
#include "pattern/stored_patterns.hpp"

namespace cobble {
namespace {

/// Appends to `blocks` the numbers that `ranks` (sorted) have among [0, ...) without the sorted `excluded`.
void append_unranked(const std::vector<std::int32_t>& ranks, const std::vector<std::int32_t>& excluded,
                     std::vector<std::int32_t>& blocks) {
  std::int32_t skipped = 0;
  for (const std::int32_t rank : ranks) {
    while (static_cast<std::size_t>(skipped) < excluded.size() &&
           excluded[static_cast<std::size_t>(skipped)] <= rank + skipped) {
      ++skipped;
    }
    blocks.push_back(rank + skipped);
  }
}

}  // namespace

Pattern bigbird(std::int64_t n, std::int64_t block, std::int64_t window_blocks, std::int64_t global_blocks,
                std::int64_t random_blocks, std::uint64_t seed) {
  checked_index(n, "n");
  detail::require_at_least(block, 1, "block");
  const std::int32_t block_size = checked_index(block, "block");
  detail::require_at_least(window_blocks, 1, "window_blocks");
  if (window_blocks % 2 == 0) {
    throw Error(ErrorCode::invalid_argument,
                "window_blocks = " + std::to_string(window_blocks) + ", expected an odd number");
  }
  detail::require_at_least(global_blocks, 0, "global_blocks");
  detail::require_at_least(random_blocks, 0, "random_blocks");

  const std::int64_t panels = divide_up(n, block);
  const std::int64_t globals = std::min(global_blocks, panels);
  const std::int64_t reach = std::min(window_blocks / 2, panels);
  BsrPattern matrix{n, n, block_size, block_size, {0}, {}, {}};
  matrix.block_row_offsets.reserve(static_cast<std::size_t>(panels) + 1);
  detail::DistinctSampler sampler(panels);
  std::vector<std::int32_t> fixed;
  std::vector<std::int32_t> ranks;
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    fixed.resize(static_cast<std::size_t>(panel < globals ? panels : globals));
    std::iota(fixed.begin(), fixed.end(), 0);
    const std::int64_t window_begin = std::max(static_cast<std::int64_t>(fixed.size()), panel - reach);
    for (std::int64_t k = window_begin; k <= std::min(panel + reach, panels - 1); ++k) {
      fixed.push_back(static_cast<std::int32_t>(k));
    }
    const std::int64_t free = panels - static_cast<std::int64_t>(fixed.size());
    ranks.clear();
    detail::Random random(seed, panel);
    sampler.append(std::min(random_blocks, free), free, random, ranks);

    auto& indices = matrix.block_column_indices;
    const auto first = static_cast<std::ptrdiff_t>(indices.size());
    indices.insert(indices.end(), fixed.begin(), fixed.end());
    append_unranked(ranks, fixed, indices);
    std::inplace_merge(indices.begin() + first, indices.begin() + first + static_cast<std::ptrdiff_t>(fixed.size()),
                       indices.end());
    matrix.block_row_offsets.push_back(static_cast<std::int64_t>(indices.size()));
  }
  std::string text = "bigbird(" + std::to_string(n);
  for (const std::int64_t argument : {block, window_blocks, global_blocks, random_blocks}) {
    text += "," + std::to_string(argument);
  }
  return detail::bsr_pattern(std::move(matrix), text + "," + std::to_string(seed) + ")");
}

}  // namespace cobble
