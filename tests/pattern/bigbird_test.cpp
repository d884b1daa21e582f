#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"

namespace cobble {
namespace {

using test::error_of;

TEST_CASE("BigBird has its window, its globals and random blocks beside them") {
  const BsrPattern blocks = bigbird(30 * 4, 4, 3, 2, 3, 7).to_bsr(4, 4);
  CHECK(blocks.bits.empty());
  for (std::int32_t panel = 0; panel < 30; ++panel) {
    const auto first = blocks.block_row_offsets[static_cast<std::size_t>(panel)];
    const auto last = blocks.block_row_offsets[static_cast<std::size_t>(panel) + 1];
    const auto stored = [&](std::int32_t block) {
      return std::binary_search(blocks.block_column_indices.begin() + first, blocks.block_column_indices.begin() + last,
                                block);
    };
    INFO("block row ", panel);
    std::int64_t fixed = 0;
    for (std::int32_t block = 0; block < 30; ++block) {
      const bool expected = panel < 2 || block < 2 || std::abs(block - panel) <= 1;
      fixed += expected ? 1 : 0;
      if (expected) CHECK(stored(block));
    }
    CHECK(last - first == std::min<std::int64_t>(30, fixed + 3));
  }
  CHECK(bigbird(20, 4, 99, 0, 50).pairs() == 400);
}

TEST_CASE("arguments of BigBird are checked") {
  CHECK(error_of([] { bigbird(8, 2, 2, 0, 0); }) == "invalid_argument: window_blocks = 2, expected an odd number");
  CHECK(error_of([] { bigbird(8, 2, 1, -1, 0); }) == "invalid_argument: global_blocks = -1, expected at least 0");
  CHECK(error_of([] { bigbird(8, 2, 1, 0, -1); }) == "invalid_argument: random_blocks = -1, expected at least 0");
}

}  // namespace
}  // namespace cobble
