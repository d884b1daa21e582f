#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/tile_kernels.hpp"
#include "support/isas.hpp"
#include "support/kernel_inputs.hpp"
#include "support/matrices.hpp"
#include "support/random.hpp"

// Products of tiles against plain loops, on every instruction set.

using namespace cobble;
using namespace cobble::test;
using kernels::Interval;
using kernels::tile_kernels;

namespace {

struct Shape {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t inner;
};

struct Options {
  bool add = false;
  bool transposed = false;  ///< a stands inner x rows
  bool inner_of_row = false;
  bool columns_of_row = false;
  std::int64_t gap = 0;
};

template <class T>
void check_product(const Shape& shape, const Options& options, Random& random) {
  const std::int64_t rows = shape.rows, columns = shape.columns, inner = shape.inner;
  CAPTURE(rows);
  CAPTURE(columns);
  CAPTURE(inner);
  CAPTURE(options.add);
  CAPTURE(options.transposed);
  CAPTURE(options.inner_of_row);
  CAPTURE(options.columns_of_row);
  GappedMatrix<T> a = options.transposed ? GappedMatrix<T>(inner, rows, rows + options.gap, random)
                                         : GappedMatrix<T>(rows, inner, inner + options.gap, random);
  const auto a_at = [&](std::int64_t i, std::int64_t l) -> T& { return options.transposed ? a(l, i) : a(i, l); };
  const GappedMatrix<T> b(inner, columns, columns + options.gap, random);
  GappedMatrix<T> c = options.add ? GappedMatrix<T>(rows, columns, columns + options.gap, random)
                                  : GappedMatrix<T>(rows, columns, columns + options.gap);
  const std::vector<Interval> inner_of_row = random_intervals(rows, inner, random);
  const std::vector<Interval> columns_of_row = random_intervals(rows, columns, random);
  if (options.inner_of_row) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const Interval interval = inner_of_row[static_cast<std::size_t>(i)];
      for (std::int64_t l = 0; l < inner; ++l) {
        if (l < interval.begin || l >= interval.end) a_at(i, l) = 0;
      }
    }
  }
  const GappedMatrix<T> before = c;
  const T alpha = T(0.75);
  tile_kernels<T>().multiply({.rows = rows,
                              .columns = columns,
                              .inner = inner,
                              .alpha = alpha,
                              .a = a.data(),
                              .a_stride = options.transposed ? 1 : a.stride(),
                              .a_inner_stride = options.transposed ? a.stride() : 1,
                              .b = b.data(),
                              .b_stride = b.stride(),
                              .c = c.data(),
                              .c_stride = c.stride(),
                              .add = options.add,
                              .inner_of_row = options.inner_of_row ? inner_of_row.data() : nullptr,
                              .columns_of_row = options.columns_of_row ? columns_of_row.data() : nullptr});
  bool right = c.gaps_are_untouched();
  for (std::int64_t i = 0; i < rows; ++i) {
    const Interval wanted = options.columns_of_row ? columns_of_row[static_cast<std::size_t>(i)]
                                                   : Interval{0, static_cast<std::int32_t>(columns)};
    for (std::int64_t j = wanted.begin; j < wanted.end; ++j) {
      double sum = options.add ? static_cast<double>(before(i, j)) : 0;
      double magnitude = std::abs(sum);
      for (std::int64_t l = 0; l < inner; ++l) {
        const double term = static_cast<double>(alpha) * static_cast<double>(a_at(i, l)) * static_cast<double>(b(l, j));
        sum += term;
        magnitude += std::abs(term);
      }
      right = right && is_sum(c(i, j), sum, magnitude, inner);
    }
  }
  CHECK(right);
}

/// All rows up to 70 and odd numbers of the others, without all combinations of them.
std::vector<Shape> shapes(std::int64_t row_step) {
  constexpr std::int64_t kColumns[] = {16, 32, 48, 64, 80, 96, 112, 144};
  constexpr std::int64_t kInner[] = {17, 1, 64, 0, 2, 33, 70, 5};
  std::vector<Shape> all;
  for (std::int64_t rows = 1; rows <= 70; rows += row_step) {
    const auto i = static_cast<std::size_t>(rows);
    all.push_back({rows, kColumns[i % 8], kInner[(i / 2) % 8]});
    all.push_back({rows, kColumns[(i / 3) % 8], kInner[(i + 3) % 8]});
  }
  return all;
}

}  // namespace

TEST_CASE_TEMPLATE("products of any size are those of plain loops", T, float, double) {
  on_every_isa([] {
    Random random(1);
    for (const Shape& shape : shapes(1)) {
      const bool odd = shape.rows % 2 == 1;
      check_product<T>(shape, {.add = odd, .transposed = shape.inner % 2 == 1, .gap = shape.columns % 32 / 4}, random);
    }
  });
}

TEST_CASE_TEMPLATE("products take only what intervals hold, empty ones too", T, float, double) {
  on_every_isa([] {
    Random random(2);
    for (const Shape& shape : shapes(6)) {
      for (const bool add : {false, true}) {
        check_product<T>(shape, {.add = add, .inner_of_row = true, .gap = 5}, random);
        check_product<T>(shape, {.add = add, .transposed = true, .columns_of_row = true}, random);
        check_product<T>(shape, {.add = add, .inner_of_row = true, .columns_of_row = true}, random);
      }
    }
  });
}

TEST_CASE_TEMPLATE("a product without intervals lets NaN and infinity through", T, float, double) {
  on_every_isa([] {
    Random random(3);
    GappedMatrix<T> a(7, 9, 9, random), b(9, 32, 32, random), c(7, 32, 32);
    a(3, 8) = std::numeric_limits<T>::quiet_NaN();
    a(5, 0) = std::numeric_limits<T>::infinity();
    tile_kernels<T>().multiply({.rows = 7,
                                .columns = 32,
                                .inner = 9,
                                .a = a.data(),
                                .a_stride = 9,
                                .b = b.data(),
                                .b_stride = 32,
                                .c = c.data(),
                                .c_stride = 32});
    for (std::int64_t i = 0; i < 7; ++i) {
      bool nan = true, finite = true;
      for (std::int64_t j = 0; j < 32; ++j) {
        nan = nan && std::isnan(c(i, j));
        finite = finite && std::isfinite(c(i, j));
      }
      CHECK(nan == (i == 3));
      CHECK(finite == (i != 3 && i != 5));
    }
  });
}

TEST_CASE_TEMPLATE("transposes are exact, padded with zeros and write nothing else", T, float, double) {
  on_every_isa([] {
    Random random(4);
    for (std::int64_t rows = 1; rows <= 70; rows += rows < 20 ? 1 : 7) {
      for (const std::int64_t columns : {1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 64, 70}) {
        for (const std::int64_t distance : {1, 2, -1}) {
          const std::int64_t span = (columns - 1) * std::abs(distance) + 1;
          const GappedMatrix<T> from(rows, span, span + 3, random);
          const std::int64_t first = distance < 0 ? span - 1 : 0;
          const std::int64_t padded = (rows + 15) / 16 * 16;
          GappedMatrix<T> to(columns, padded, padded + (rows % 3 == 0 ? 16 : 0));
          tile_kernels<T>().transpose(rows, columns, T(0.5), from.data() + first, from.stride(), distance, to.data(),
                                      to.stride());
          bool right = to.gaps_are_untouched();
          for (std::int64_t c = 0; c < columns; ++c) {
            for (std::int64_t r = 0; r < padded; ++r) {
              right = right && to(c, r) == (r < rows ? T(0.5) * from(r, first + c * distance) : T{0});
            }
          }
          CAPTURE(rows);
          CAPTURE(columns);
          CAPTURE(distance);
          CHECK(right);
        }
      }
    }
  });
}
