#include "kernels/bf16_product.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/isas.hpp"
#include "support/kernel_inputs.hpp"
#include "support/matrices.hpp"
#include "support/random.hpp"

// Products of bfloat16 by AVX-512 BF16 against sums in double, and what rounds and packs their operands against
// scalars, where the processor has the instructions.

using namespace cobble;
using namespace cobble::test;
using kernels::Interval;
using kernels::kPaddedElements;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::size_t place(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Runs `check` with the instruction set in use, if there is one.
template <class Check>
void with_avx512_bf16(Check check) {
  on_every_isa([] { CHECK(kernels::uses_avx512_bf16() == (isa() == Isa::avx512_bf16)); });
  CHECK(on_isa(Isa::avx512_bf16, check) == kernels::has_avx512_bf16());
}

struct Options {
  bool add = false;
  bool transposed = false;  ///< pairs of a stand inner x rows
  bool inner_of_row = false;
  bool columns_of_row = false;
};

/// A product whose operands end with their last pair, so that a sanitizer sees any access beyond.
struct Case {
  std::int64_t rows, columns, inner;
  Options options;
  std::vector<bfloat16> a, b;  ///< rows x inner, inner x columns, an odd `inner` with zeros behind it
  std::vector<Interval> inner_of_row, columns_of_row;

  Case(std::int64_t row_count, std::int64_t column_count, std::int64_t inner_count, const Options& given,
       Random& random)
      : rows(row_count),
        columns(column_count),
        inner(inner_count),
        options(given),
        a(normal_halves(rows * 2 * steps(), random)),
        b(normal_halves(2 * steps() * columns, random)),
        inner_of_row(random_intervals(rows, inner, random)),
        columns_of_row(random_intervals(rows, columns, random)) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const Interval interval = options.inner_of_row ? inner_of_row[place(i)] : Interval{0, INT32_MAX};
      for (std::int64_t l = 0; l < 2 * steps(); ++l) {
        if (l < interval.begin || l >= interval.end || l >= inner) a[place(i * 2 * steps() + l)] = bfloat16(0.0F);
      }
    }
    for (std::int64_t l = inner; l < 2 * steps(); ++l) {
      for (std::int64_t j = 0; j < columns; ++j) b[place(l * columns + j)] = bfloat16(0.0F);
    }
  }

  std::int64_t steps() const { return (inner + 1) / 2; }
  bool is_wanted(std::int64_t i, std::int64_t j) const {
    const Interval interval = columns_of_row[place(i)];
    return !options.columns_of_row || (interval.begin <= j && j < interval.end);
  }

  GappedMatrix<float> multiply(float alpha, const GappedMatrix<float>& before) const {
    std::vector<bfloat16> pairs_of_a(a.size());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t l = 0; l < 2 * steps(); ++l) {
        const std::int64_t at = options.transposed ? (l / 2 * rows + i) * 2 + l % 2 : i * 2 * steps() + l;
        pairs_of_a[place(at)] = a[place(i * 2 * steps() + l)];
      }
    }
    std::vector<std::uint32_t> pairs_of_b(place(steps() * columns));
    for (std::int64_t step = 0; step < steps(); ++step) {
      for (std::int64_t j = 0; j < columns; ++j) {
        pairs_of_b[place(step * columns + j)] =
            b[place(2 * step * columns + j)].bits | std::uint32_t{b[place((2 * step + 1) * columns + j)].bits} << 16;
      }
    }
    GappedMatrix<float> c = before;
    kernels::multiply_bf16_pairs({.rows = rows,
                                  .columns = columns,
                                  .inner = inner,
                                  .alpha = alpha,
                                  .a = pairs_of_a.data(),
                                  .a_stride = options.transposed ? 2 : 2 * steps(),
                                  .a_inner_stride = options.transposed ? 2 * rows : 2,
                                  .b = pairs_of_b.data(),
                                  .b_stride = columns,
                                  .c = c.data(),
                                  .c_stride = c.stride(),
                                  .add = options.add,
                                  .inner_of_row = options.inner_of_row ? inner_of_row.data() : nullptr,
                                  .columns_of_row = options.columns_of_row ? columns_of_row.data() : nullptr});
    return c;
  }
};

void check_product(const Case& product, Random& random) {
  CAPTURE(product.rows);
  CAPTURE(product.columns);
  CAPTURE(product.inner);
  CAPTURE(product.options.add);
  CAPTURE(product.options.transposed);
  CAPTURE(product.options.inner_of_row);
  CAPTURE(product.options.columns_of_row);
  constexpr float kAlpha = 0.75F;
  const std::int64_t stride = product.columns + 5;
  const GappedMatrix<float> before = product.options.add
                                         ? GappedMatrix<float>(product.rows, product.columns, stride, random)
                                         : GappedMatrix<float>(product.rows, product.columns, stride);
  const GappedMatrix<float> c = product.multiply(kAlpha, before);
  bool right = true;
  for (std::int64_t i = 0; i < product.rows; ++i) {
    for (std::int64_t j = 0; j < product.columns; ++j) {
      if (!product.is_wanted(i, j)) continue;
      double sum = product.options.add ? static_cast<double>(before(i, j)) : 0;
      double magnitude = std::abs(sum);
      for (std::int64_t l = 0; l < product.inner; ++l) {
        const double term = static_cast<double>(kAlpha) *
                            static_cast<double>(product.a[place(i * 2 * product.steps() + l)]) *
                            static_cast<double>(product.b[place(l * product.columns + j)]);
        sum += term;
        magnitude += std::abs(term);
      }
      right = right && is_sum(c(i, j), sum, magnitude, product.inner + 1);
    }
  }
  CHECK(right);
  CHECK(c.gaps_are_untouched());
}

}  // namespace

TEST_CASE("products by AVX-512 BF16 are those of double, for any number of rows, columns and inner elements") {
  with_avx512_bf16([] {
    Random random(6);
    int turn = 0;
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 23, 24, 25, 47}) {
      for (const std::int64_t columns : {16, 32, 48, 64, 80, 112, 144}) {
        for (const std::int64_t inner : {1, 2, 3, 7, 16, 33, 64}) {
          ++turn;
          const Options options{turn % 2 == 0, turn / 2 % 2 == 0, turn / 4 % 2 == 0, turn / 8 % 2 == 0};
          check_product(Case(rows, columns, inner, options, random), random);
        }
      }
    }
  });
}

TEST_CASE("products by AVX-512 BF16 with every choice of options") {
  with_avx512_bf16([] {
    Random random(7);
    for (int choice = 0; choice < 16; ++choice) {
      const Options options{(choice & 1) != 0, (choice & 2) != 0, (choice & 4) != 0, (choice & 8) != 0};
      for (const std::int64_t inner : {1, 2, 30, 31}) check_product(Case(29, 96, inner, options, random), random);
    }
  });
}

TEST_CASE("products by AVX-512 BF16: what is not finite reaches its own row or column, and subnormal numbers are 0") {
  with_avx512_bf16([] {
    constexpr std::int64_t kRows = 30, kColumns = 80, kInner = 21;
    Random random(8);
    Case product(kRows, kColumns, kInner, {}, random);
    const std::int64_t stride = 2 * product.steps();
    product.a[place(7 * stride + 20)] = bfloat16(kNan);
    product.a[place(9 * stride + 3)] = bfloat16(kInfinity);
    product.b[place(4 * kColumns + 33)] = bfloat16(-kInfinity);
    for (std::int64_t l = 0; l < kInner; ++l) product.a[place(11 * stride + l)] = bfloat16::from_bits(0x007F);
    const GappedMatrix<float> c = product.multiply(1, GappedMatrix<float>(kRows, kColumns, kColumns));
    bool right = true;
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j < kColumns; ++j) {
        if (i == 7) {
          right = right && std::isnan(c(i, j));
        } else if (i == 11 && j != 33) {
          right = right && c(i, j) == 0;
        } else if (i == 9 && j != 33) {
          right = right && std::isinf(c(i, j));
        } else if (i != 9 && j == 33) {
          right = right && (i == 11 ? std::isnan(c(i, j)) : std::isinf(c(i, j)));
        } else if (i != 9) {
          right = right && std::isfinite(c(i, j));
        }
      }
    }
    CHECK(right);
  });
}

TEST_CASE("rows of bfloat16 are interleaved, any number of elements") {
  with_avx512_bf16([] {
    Random random(9);
    for (std::int64_t count = 0; count <= 70; ++count) {
      CAPTURE(count);
      const std::vector<bfloat16> even = normal_halves(count, random);
      const std::vector<bfloat16> odd = normal_halves(count, random);
      for (const bool alone : {false, true}) {
        std::vector<std::uint32_t> to(place(count) + 1, 0xABCDABCDU);
        kernels::interleave(count, even.data(), alone ? nullptr : odd.data(), to.data());
        bool same = to.back() == 0xABCDABCDU;
        for (std::int64_t i = 0; i < count; ++i) {
          const std::uint32_t upper = alone ? 0 : odd[place(i)].bits;
          same = same && to[place(i)] == (even[place(i)].bits | upper << 16);
        }
        CHECK(same);
      }
    }
  });
}

TEST_CASE("tiles are rounded to nearest, ties to even, with NaN and infinity kept, in pairs of keys and of queries") {
  // What vcvtneps2bf16 makes of a float: subnormal numbers become 0, everything else is rounded as half.hpp says.
  const auto rounded = [](float number) {
    if (std::abs(number) < std::numeric_limits<float>::min()) return std::signbit(number) ? 0x8000U : 0U;
    return static_cast<unsigned>(bfloat16(number).bits);
  };
  const float special[] = {0.0F,          -0.0F,     kNan,      kInfinity, -kInfinity,
                           0x1.01p0F,     0x1.03p0F, 0x1.FFp0F, 0x1p-127F, 0x1.000002p0F,
                           0x1.010002p0F, 1e-30F,    -3e38F,    0x1p-126F, std::numeric_limits<float>::max()};
  with_avx512_bf16([&] {
    Random random(10);
    for (const std::int64_t keys : {1, 2, 5, 8}) {
      for (const std::int64_t queries : {1, 15, 16, 17, 31, 32, 47, 64, 80}) {
        CAPTURE(keys);
        CAPTURE(queries);
        const std::int64_t stride = (queries + kPaddedElements - 1) / kPaddedElements * kPaddedElements;
        std::vector<float> tile(place(keys * stride));
        for (float& x : tile) {
          const std::int64_t choice = random.below(40);
          x = choice < 15 ? special[choice] : static_cast<float>(random.normal());
        }
        std::vector<std::uint32_t> key_pairs(place((keys + 1) / 2 * stride) + 1, 0xABCDABCDU);
        kernels::round_key_pairs(keys, stride, tile.data(), key_pairs.data());
        std::vector<bfloat16> query_pairs(place(keys * stride) + 1, bfloat16::from_bits(0xABCD));
        kernels::round_query_pairs(keys, queries, stride, tile.data(), query_pairs.data());
        bool same = key_pairs.back() == 0xABCDABCDU && query_pairs.back().bits == 0xABCD;
        for (std::int64_t key = 0; key < keys; ++key) {
          for (std::int64_t query = 0; query < queries; ++query) {
            const std::uint32_t expected = rounded(tile[place(key * stride + query)]);
            const std::uint32_t pair = key_pairs[place(key / 2 * stride + query)];
            same = same && (key % 2 == 0 ? pair & 0xFFFFU : pair >> 16) == expected;
            same = same && query_pairs[place(key * stride + query)].bits == expected;
          }
          if (queries % 2 != 0) same = same && query_pairs[place(key * stride + queries)].bits == 0;
        }
        if (keys % 2 != 0) {
          for (std::int64_t query = 0; query < queries; ++query)
            same = same && key_pairs[place(keys / 2 * stride + query)] >> 16 == 0;
        }
        CHECK(same);
      }
    }
  });
}
