#include "kernels/amx.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/kernel_inputs.hpp"
#include "support/random.hpp"

// Products of bfloat16 against sums in double, where the processor has AMX.

using namespace cobble;
using namespace cobble::kernels;
using cobble::test::normal_halves;

TEST_CASE("products by AMX are those of double, for any number of rows, columns and features") {
  if (!has_amx()) {
    MESSAGE("this machine has no AMX");
    return;
  }
  cobble::test::Random random(4);
  for (const std::int64_t rows : {1, 15, 32, 33, 70}) {
    for (const std::int64_t columns : {16, 32, 48}) {
      for (const std::int64_t inner : {16, 17, 32, 40, 64, 65, 512}) {
        CAPTURE(rows);
        CAPTURE(columns);
        CAPTURE(inner);
        const std::int64_t a_stride = inner + 5;
        const std::vector<bfloat16> a = normal_halves(rows * a_stride, random);
        const std::vector<bfloat16> b = normal_halves(columns * inner, random);
        std::vector<std::uint32_t> paired(static_cast<std::size_t>(paired_rows(inner) * columns));
        pair_features(columns, inner, b.data(), inner, 1, paired.data(), columns);
        const std::int64_t c_stride = columns + 16;
        std::vector<float> c(static_cast<std::size_t>(rows * c_stride), -7.0F);
        multiply_bf16({.rows = rows,
                       .columns = columns,
                       .inner = inner,
                       .alpha = 0.5F,
                       .a = a.data(),
                       .a_stride = a_stride,
                       .b = paired.data(),
                       .b_stride = columns,
                       .c = c.data(),
                       .c_stride = c_stride});
        double worst = 0;
        bool untouched = true;
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t i = 0; i < c_stride; ++i) {
            const float found = c[static_cast<std::size_t>(r * c_stride + i)];
            if (i >= columns) {
              untouched = untouched && found == -7.0F;
              continue;
            }
            double sum = 0;
            for (std::int64_t l = 0; l < inner; ++l) {
              sum += static_cast<double>(a[static_cast<std::size_t>(r * a_stride + l)]) *
                     static_cast<double>(b[static_cast<std::size_t>(i * inner + l)]);
            }
            worst = std::max(worst, std::abs(0.5 * sum - static_cast<double>(found)));
          }
        }
        CHECK(worst <= 1e-6 * static_cast<double>(inner));
        CHECK(untouched);
      }
    }
  }
}

TEST_CASE("products by AMX leave NaN in its row, and may leave out columns that no one wants") {
  if (!has_amx()) return;
  cobble::test::Random random(5);
  constexpr std::int64_t kRows = 40, kColumns = 80, kInner = 40;
  std::vector<bfloat16> a = normal_halves(kRows * kInner, random);
  a[7 * kInner + 3] = std::numeric_limits<bfloat16>::quiet_NaN();
  const std::vector<bfloat16> b = normal_halves(kColumns * kInner, random);
  std::vector<std::uint32_t> paired(static_cast<std::size_t>(paired_rows(kInner) * kColumns));
  pair_features(kColumns, kInner, b.data(), kInner, 1, paired.data(), kColumns);
  std::vector<Interval> intervals;
  for (int r = 0; r < kRows; ++r) intervals.push_back({r, r + 30});
  Bf16Product product{.rows = kRows,
                      .columns = kColumns,
                      .inner = kInner,
                      .a = a.data(),
                      .a_stride = kInner,
                      .b = paired.data(),
                      .b_stride = kColumns,
                      .c_stride = kColumns};
  std::vector<float> all(kRows * kColumns, -7.0F);
  std::vector<float> wanted = all;
  product.c = all.data();
  multiply_bf16(product);
  product.c = wanted.data();
  product.columns_of_row = intervals.data();
  multiply_bf16(product);
  bool same = true;
  bool skipped = false;
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t i = 0; i < kColumns; ++i) {
      const auto at = static_cast<std::size_t>(r * kColumns + i);
      same = same && std::isnan(all[at]) == (r == 7);
      if (r != 7 && i >= r && i < r + 30) same = same && all[at] == wanted[at];
      skipped = skipped || wanted[at] == -7.0F;
    }
  }
  CHECK(same);
  CHECK(skipped);
}
