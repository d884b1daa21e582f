#include "kernels/bf16_pairs.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "support/kernel_inputs.hpp"
#include "support/random.hpp"

using namespace cobble;
using namespace cobble::kernels;
using cobble::test::normal_halves;

namespace {

constexpr std::int64_t padded(std::int64_t count) { return (count + 15) / 16 * 16; }

}  // namespace

TEST_CASE("pairs of features stand side by side, with zeros where there are none") {
  cobble::test::Random random(3);
  for (const std::int64_t rows : {1, 15, 16, 33}) {
    for (const std::int64_t features : {16, 17, 31, 32, 40, 65}) {
      for (const std::int64_t distance : {1, 2}) {
        CAPTURE(rows);
        CAPTURE(features);
        CAPTURE(distance);
        const std::int64_t row_distance = features * distance + 3;
        const std::vector<bfloat16> from = normal_halves(rows * row_distance, random);
        const std::int64_t stride = padded(rows);
        std::vector<std::uint32_t> to(static_cast<std::size_t>(paired_rows(features) * stride), 0xFFFFFFFFU);
        pair_features(rows, features, from.data(), row_distance, distance, to.data(), stride);
        bool same = true;
        const auto bits = [&](std::int64_t row, std::int64_t feature) -> std::uint32_t {
          if (row >= rows || feature >= features) return 0;
          return from[static_cast<std::size_t>(row * row_distance + feature * distance)].bits;
        };
        for (std::int64_t p = 0; p < paired_rows(features); ++p) {
          for (std::int64_t i = 0; i < stride; ++i) {
            const std::uint32_t expected = bits(i, 2 * p) | bits(i, 2 * p + 1) << 16;
            same = same && to[static_cast<std::size_t>(p * stride + i)] == expected;
          }
        }
        CHECK(same);
      }
    }
  }
}
