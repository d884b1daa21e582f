// Products of panels and tiles. Included once for each target.
#if defined(COBBLE_KERNELS_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef COBBLE_KERNELS_PRODUCT_INL
#undef COBBLE_KERNELS_PRODUCT_INL
#else
#define COBBLE_KERNELS_PRODUCT_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/bf16_block.hpp"
#include "kernels/hull-inl.hpp"
#include "kernels/tile_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3
inline constexpr int kAccumulators = 24;  // of 32 registers
inline constexpr int kStripVectors = 4;
#elif HWY_TARGET == HWY_NEON
inline constexpr int kAccumulators = 24;
inline constexpr int kStripVectors = 4;
#else
inline constexpr int kAccumulators = 12;  // of 16 registers
inline constexpr int kStripVectors = 2;
#endif

/// How many rows of c a register tile of `vectors` vectors takes.
constexpr int block_rows(int vectors) {
  return vectors == 1 ? kAccumulators / 2 : kAccumulators / vectors;  // more rows of one vector gain nothing
}

/// c = alpha a b (+ c) for kRows rows and kVectors vectors of columns, the sums in registers.
template <int kRows, int kVectors, class T>
HWY_NOINLINE void multiply_block(const Product<T>& p, std::int64_t inner, const T* HWY_RESTRICT a,
                                 const T* HWY_RESTRICT b, T* HWY_RESTRICT c) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  V sums[kRows][kVectors];
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const std::int64_t a_stride = p.a_stride;
  const std::int64_t a_inner_stride = p.a_inner_stride;
  const std::int64_t b_stride = p.b_stride;
  LineWalk ahead = walk_ahead(p.ahead, inner, b);
  for (std::int64_t l = 0; l < inner; ++l) {
    ahead.fetch();
    V columns[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) columns[v] = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
      const V row = hn::Set(d, a[r * a_stride]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(row, columns[v], sums[r][v]);
    }
    a += a_inner_stride;
    b += b_stride;
  }
  // By adding alone where that will do: a multiplication here costs as much as one in the loop.
  const std::int64_t c_stride = p.c_stride;
  const auto finish = [&](auto value) HWY_ATTR {
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        T* const to = c + r * c_stride + v * kLanes;
        hn::StoreU(value(sums[r][v], to), d, to);
      }
    }
  };
  const V alpha = hn::Set(d, p.alpha);
  if (p.alpha == T{1}) {
    if (p.add) return finish([&](V sum, const T* to) HWY_ATTR { return hn::Add(sum, hn::LoadU(d, to)); });
    return finish([&](V sum, const T*) HWY_ATTR { return sum; });
  }
  if (p.add) return finish([&](V sum, const T* to) HWY_ATTR { return hn::MulAdd(alpha, sum, hn::LoadU(d, to)); });
  finish([&](V sum, const T*) HWY_ATTR { return hn::Mul(alpha, sum); });
}

/// How many steps a block takes, and which: one for each inner element.
template <class T>
HWY_INLINE Interval steps_of(const Product<T>&, Interval inner) {
  return inner;
}

#ifdef COBBLE_HAS_BF16_BLOCK
template <int kRows, int kVectors>
HWY_INLINE void multiply_block(const Bf16PairProduct& p, std::int64_t steps, const bfloat16* a, const std::uint32_t* b,
                               float* c) {
  multiply_bf16_block<kRows, kVectors>(p, steps, a, b, c);
}

/// Whole pairs.
HWY_INLINE Interval steps_of(const Bf16PairProduct&, Interval inner) { return {inner.begin / 2, (inner.end + 1) / 2}; }
#endif

/// kRows rows of c and `vectors` of the kVectors or fewer vectors from `column` on.
template <int kRows, int kVectors, class T, class A, class B>
HWY_INLINE void multiply_rows_by(const Product<T, A, B>& p, std::int64_t row, std::int64_t column, int vectors,
                                 Interval steps) {
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) return multiply_rows_by<kRows, kVectors - 1>(p, row, column, vectors, steps);
  }
  multiply_block<kRows, kVectors>(p, steps.end - steps.begin, p.a + row * p.a_stride + steps.begin * p.a_inner_stride,
                                  p.b + steps.begin * p.b_stride + column, p.c + row * p.c_stride + column);
}

/// Rows [row, row + kRows) of c in the strip of `vectors` vectors from `column` on, as far as they are wanted.
template <int kRows, int kVectors, class T, class A, class B>
HWY_INLINE void multiply_rows(const Product<T, A, B>& p, std::int64_t row, std::int64_t column, int vectors) {
  constexpr std::int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  Interval inner{0, static_cast<std::int32_t>(p.inner)};
  if (p.inner_of_row != nullptr) {
    inner = hull(p.inner_of_row + row, kRows);
    if (inner.begin == inner.end && p.add) return;
  }
  const Interval steps = steps_of(p, inner);
  if (p.columns_of_row != nullptr) {
    const Interval wanted = hull(p.columns_of_row + row, kRows);
    const std::int64_t end = column + vectors * kLanes;
    const std::int64_t first = wanted.begin <= column ? column : wanted.begin / kLanes * kLanes;
    const std::int64_t last = wanted.end >= end ? end : (wanted.end + kLanes - 1) / kLanes * kLanes;
    if (first >= last) return;
    if (first > column || last < end) {
      return multiply_rows_by<kRows, kVectors>(p, row, first, static_cast<int>((last - first) / kLanes), steps);
    }
  }
  multiply_rows_by<kRows, kVectors>(p, row, column, vectors, steps);
}

template <int kVectors, class T, class A, class B>
HWY_INLINE void multiply_strip(const Product<T, A, B>& p, std::int64_t column, int vectors) {
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) return multiply_strip<kVectors - 1>(p, column, vectors);
  }
  constexpr int kRows = block_rows(kVectors);
  std::int64_t row = 0;
  for (; row + kRows <= p.rows; row += kRows) multiply_rows<kRows, kVectors>(p, row, column, kVectors);
  if constexpr (kRows > 8) {
    for (; row + 8 <= p.rows; row += 8) multiply_rows<8, kVectors>(p, row, column, kVectors);
  }
  for (; row + 4 <= p.rows; row += 4) multiply_rows<4, kVectors>(p, row, column, kVectors);
  for (; row + 2 <= p.rows; row += 2) multiply_rows<2, kVectors>(p, row, column, kVectors);
  for (; row < p.rows; ++row) multiply_rows<1, kVectors>(p, row, column, kVectors);
}

template <class T, class A, class B>
void multiply(const Product<T, A, B>& p) {
  constexpr std::int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  const std::int64_t vectors = p.columns / kLanes;
  const std::int64_t strips = (vectors + kStripVectors - 1) / kStripVectors;
  // Strips as even as can be: 5 vectors as 3 + 2, not 4 + 1.
  std::int64_t begin = 0;
  for (std::int64_t strip = 0; strip < strips; ++strip) {
    const std::int64_t end = vectors * (strip + 1) / strips;
    multiply_strip<kStripVectors>(p, begin * kLanes, static_cast<int>(end - begin));
    begin = end;
  }
}

#if HWY_TARGET != HWY_SCALAR
/// How many rows transpose_block takes at a time: as many as a vector has lanes.
template <class T>
inline constexpr std::int64_t kBlockRowsOf = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));

/// Row r, r + n, r + 2 n, ... of n columns each in the 128-bit blocks of a vector, where n = 16 / sizeof(T).
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* from, std::int64_t stride) {
  constexpr std::int64_t kColumns = 16 / static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kBlocks = static_cast<std::int64_t>(hn::MaxLanes(d)) / kColumns;
  if constexpr (kBlocks == 1) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks(half, from + kBlocks / 2 * kColumns * stride, stride),
                       load_blocks(half, from, stride));
  }
}

/// kBlockRowsOf rows x 16 bytes of columns.
template <class T>
HWY_INLINE void transpose_block(T alpha, const T* from, std::int64_t stride, T* to, std::int64_t to_stride) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, alpha);
  const auto a = load_blocks(d, from, stride);
  const auto b = load_blocks(d, from + stride, stride);
  if constexpr (sizeof(T) == sizeof(double)) {
    hn::StoreU(hn::Mul(factor, hn::InterleaveLower(d, a, b)), d, to);
    hn::StoreU(hn::Mul(factor, hn::InterleaveUpper(d, a, b)), d, to + to_stride);
  } else {
    const hn::RepartitionToWide<decltype(d)> wide;
    const auto c = load_blocks(d, from + 2 * stride, stride);
    const auto e = load_blocks(d, from + 3 * stride, stride);
    const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(d, a, b));
    const auto ab_high = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
    const auto ce_low = hn::BitCast(wide, hn::InterleaveLower(d, c, e));
    const auto ce_high = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
    const auto store = [&](auto column, std::int64_t index)
                           HWY_ATTR { hn::StoreU(hn::Mul(factor, hn::BitCast(d, column)), d, to + index * to_stride); };
    store(hn::InterleaveLower(wide, ab_low, ce_low), 0);
    store(hn::InterleaveUpper(wide, ab_low, ce_low), 1);
    store(hn::InterleaveLower(wide, ab_high, ce_high), 2);
    store(hn::InterleaveUpper(wide, ab_high, ce_high), 3);
  }
}
#endif

template <class T>
void transpose(std::int64_t rows, std::int64_t columns, T alpha, const T* from, std::int64_t from_stride,
               std::int64_t column_distance, T* to, std::int64_t to_stride) {
  const std::int64_t padded = (rows + kPaddedElements - 1) / kPaddedElements * kPaddedElements;
  std::int64_t block_rows = 0;  // what whole blocks cover
  std::int64_t block_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  if (column_distance == 1) {
    constexpr std::int64_t kColumns = 16 / static_cast<std::int64_t>(sizeof(T));
    block_rows = rows / kBlockRowsOf<T> * kBlockRowsOf<T>;
    block_columns = columns / kColumns * kColumns;
    for (std::int64_t r = 0; r < block_rows; r += kBlockRowsOf<T>) {
      for (std::int64_t c = 0; c < block_columns; c += kColumns) {
        transpose_block(alpha, from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
      }
    }
  }
#endif
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = c < block_columns ? block_rows : 0; r < rows; ++r) {
      to[c * to_stride + r] = alpha * from[r * from_stride + c * column_distance];
    }
    for (std::int64_t r = rows; r < padded; ++r) to[c * to_stride + r] = T{0};
  }
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
