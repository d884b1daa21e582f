// Products pair by pair, for tiles too sparse for the dense kernels. Included once for each target.
#if defined(COBBLE_KERNELS_PAIRS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef COBBLE_KERNELS_PAIRS_INL
#undef COBBLE_KERNELS_PAIRS_INL
#else
#define COBBLE_KERNELS_PAIRS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/tile_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// The first `count` < Lanes(d) elements, then zeros; reads no others.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_first(D d, const T* from, std::int64_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
  for (std::int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d, from);
#endif
}

template <class D, class T>
HWY_INLINE void store_first(D d, hn::Vec<D> value, T* to, std::int64_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(value, d, lanes);
  for (std::int64_t i = 0; i < count; ++i) to[i] = lanes[i];
#else
  hn::BlendedStore(value, hn::FirstN(d, static_cast<std::size_t>(count)), d, to);
#endif
}

/// kVectors vectors of features; of the last one only `tail` elements when tail > 0.
template <int kVectors, class D, class T>
HWY_INLINE void load_features(D d, const T* from, std::int64_t tail, hn::Vec<D> (&to)[kVectors]) {
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
#pragma GCC unroll 8
  for (int v = 0; v + 1 < kVectors; ++v) to[v] = hn::LoadU(d, from + v * kLanes);
  const T* const last = from + (kVectors - 1) * kLanes;
  to[kVectors - 1] = tail == 0 ? hn::LoadU(d, last) : load_first(d, last, tail);
}

template <int kVectors, class D, class T>
HWY_INLINE void store_features(D d, const hn::Vec<D> (&from)[kVectors], T* to, std::int64_t tail) {
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
#pragma GCC unroll 8
  for (int v = 0; v + 1 < kVectors; ++v) hn::StoreU(from[v], d, to + v * kLanes);
  T* const last = to + (kVectors - 1) * kLanes;
  if (tail == 0) {
    hn::StoreU(from[kVectors - 1], d, last);
  } else {
    store_first(d, from[kVectors - 1], last, tail);
  }
}

#if HWY_TARGET == HWY_SCALAR
template <class D, class T>
HWY_INLINE hn::Vec<D> sums_of_rows(D d, const T* rows) {
  return hn::Load(d, rows);
}
#else
/// How many vectors sums_of_blocks takes: as many as a 128-bit block has elements.
template <class T>
inline constexpr int kBlockElements = 16 / static_cast<int>(sizeof(T));

/// Block by block, the sum of each vector's block; in the order of the vectors.
template <class D, class T = hn::TFromD<D> >
HWY_INLINE hn::Vec<D> sums_of_blocks(D d, const hn::Vec<D> (&rows)[kBlockElements<T>]) {
  const auto pair = [&](int first) HWY_ATTR {
    return hn::Add(hn::InterleaveLower(d, rows[first], rows[first + 1]),
                   hn::InterleaveUpper(d, rows[first], rows[first + 1]));
  };
  if constexpr (sizeof(T) == sizeof(double)) {
    return pair(0);
  } else {
    const hn::RepartitionToWide<D> wide;
    const auto low = hn::BitCast(wide, pair(0));
    const auto high = hn::BitCast(wide, pair(2));
    return hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, low, high)),
                   hn::BitCast(d, hn::InterleaveUpper(wide, low, high)));
  }
}

/// How many vectors of block sums make up a vector of sums.
template <class T>
inline constexpr int kBlocks = static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>())) / kBlockElements<T>;

/// Adds up the blocks of each vector; the sums of the first vector's come first.
template <class D, class T = hn::TFromD<D> >
HWY_INLINE hn::Vec<D> sums_across_blocks(D d, const hn::Vec<D> (&parts)[kBlocks<T>]) {
  if constexpr (kBlocks<T> == 1) {
    return parts[0];
  } else {
    const auto halves = [&](int low, int high) HWY_ATTR {
      return hn::Add(hn::ConcatLowerLower(d, parts[high], parts[low]),
                     hn::ConcatUpperUpper(d, parts[high], parts[low]));
    };
    if constexpr (kBlocks<T> == 2) {
      return halves(0, 1);
    } else {
      static_assert(kBlocks<T> == 4);
      const auto even = halves(0, 2);
      const auto odd = halves(1, 3);
      return hn::OddEvenBlocks(hn::Add(odd, hn::SwapAdjacentBlocks(odd)), hn::Add(even, hn::SwapAdjacentBlocks(even)));
    }
  }
}

/// The sums of kLanes rows of kLanes elements each, one row after another in memory.
template <class D, class T>
HWY_INLINE hn::Vec<D> sums_of_rows(D d, const T* rows) {
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  hn::Vec<D> parts[kBlocks<T>];
#pragma GCC unroll 4
  for (int part = 0; part < kBlocks<T>; ++part) {
    hn::Vec<D> block[kBlockElements<T>];
#pragma GCC unroll 4
    for (int row = 0; row < kBlockElements<T>; ++row) {
      block[row] = hn::Load(d, rows + (part * kBlockElements<T> + row) * kLanes);
    }
    parts[part] = sums_of_blocks(d, block);
  }
  return sums_across_blocks(d, parts);
}

/// Dot products of kVectors vectors of features, of rows with many pairs: a vector of results at a time, in registers.
template <int kVectors, class T>
HWY_NOINLINE void long_row_products(const PairTile& pairs, std::int64_t tail, T alpha, FeatureRows<const T> queries,
                                    FeatureRows<const T> keys, T* values, bool add) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const V factor = hn::Set(d, alpha);
  const std::int32_t first = pairs.row_offsets[0];
  for (std::int64_t row = 0; row < pairs.rows; ++row) {
    const std::int32_t begin = pairs.row_offsets[row];
    const std::int32_t end = pairs.row_offsets[row + 1];
    if (begin == end) continue;
    V query[kVectors];
    load_features<kVectors>(d, queries.data + row * queries.stride, tail, query);
    const auto product = [&](std::int32_t pair) HWY_ATTR {
      V key[kVectors];
      load_features<kVectors>(d, keys.data + pairs.keys[pair] * keys.stride, tail, key);
      V sum = hn::Mul(query[0], key[0]);
#pragma GCC unroll 8
      for (int v = 1; v < kVectors; ++v) sum = hn::MulAdd(query[v], key[v], sum);
      return sum;
    };
    for (std::int32_t pair = begin; pair < end; pair += static_cast<std::int32_t>(kLanes)) {
      const std::int32_t count = end - pair < kLanes ? end - pair : static_cast<std::int32_t>(kLanes);
      V parts[kBlocks<T>];
#pragma GCC unroll 4
      for (int part = 0; part < kBlocks<T>; ++part) {
        V block[kBlockElements<T>];
        if ((part + 1) * kBlockElements<T> <= count) {
#pragma GCC unroll 4
          for (int i = 0; i < kBlockElements<T>; ++i) block[i] = product(pair + part * kBlockElements<T> + i);
        } else {
#pragma GCC unroll 4
          for (int i = 0; i < kBlockElements<T>; ++i) {
            const int index = part * kBlockElements<T> + i;
            block[i] = index < count ? product(pair + index) : hn::Zero(d);
          }
        }
        parts[part] = sums_of_blocks(d, block);
      }
      const V sums = hn::Mul(factor, sums_across_blocks(d, parts));
      T* const to = values + (pair - first);
      if (count == kLanes) {
        hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sums) : sums, d, to);
      } else {
        store_first(d, add ? hn::Add(load_first(d, to, count), sums) : sums, to, count);
      }
    }
  }
}
#endif

/// Dot products of kVectors vectors of features, of rows with few pairs: vectors of results span rows.
template <int kVectors, class T>
HWY_NOINLINE void short_row_products(const PairTile& pairs, std::int64_t tail, T alpha, FeatureRows<const T> queries,
                                     FeatureRows<const T> keys, T* values, bool add) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  HWY_ALIGN T partial[kLanes * kLanes];
  const V factor = hn::Set(d, alpha);
  std::int64_t filled = 0;
  T* to = values;
  const auto flush = [&](std::int64_t count) HWY_ATTR {
    const V product = hn::Mul(factor, sums_of_rows(d, partial));
    if (count == kLanes) {
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), product) : product, d, to);
    } else {
      const V before = add ? load_first(d, to, count) : hn::Zero(d);
      store_first(d, hn::Add(before, product), to, count);
    }
    to += count;
    filled = 0;
  };
  for (std::int64_t row = 0; row < pairs.rows; ++row) {
    const std::int32_t end = pairs.row_offsets[row + 1];
    std::int32_t pair = pairs.row_offsets[row];
    if (pair == end) continue;
    V query[kVectors];
    load_features<kVectors>(d, queries.data + row * queries.stride, tail, query);
    for (; pair < end; ++pair) {
      V key[kVectors];
      load_features<kVectors>(d, keys.data + pairs.keys[pair] * keys.stride, tail, key);
      V sum = hn::Mul(query[0], key[0]);
#pragma GCC unroll 8
      for (int v = 1; v < kVectors; ++v) sum = hn::MulAdd(query[v], key[v], sum);
      hn::Store(sum, d, partial + filled * kLanes);
      if (++filled == kLanes) flush(kLanes);
    }
  }
  if (filled > 0) {
    for (std::int64_t rest = filled * kLanes; rest < kLanes * kLanes; ++rest) partial[rest] = T{0};
    flush(filled);
  }
}

template <int kVectors, class T>
HWY_NOINLINE void pairs_to_rows_of(const PairTile& pairs, std::int64_t tail, T alpha, const T* values,
                                   FeatureRows<const T> keys, FeatureRows<T> sums) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const V factor = hn::Set(d, alpha);
  for (std::int64_t row = 0; row < pairs.rows; ++row) {
    const std::int32_t end = pairs.row_offsets[row + 1];
    std::int32_t pair = pairs.row_offsets[row];
    if (pair == end) continue;
    V even[kVectors];
    V odd[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) even[v] = odd[v] = hn::Zero(d);
    V key[kVectors];
    const auto add_pair = [&](std::int32_t which, V(&to)[kVectors]) HWY_ATTR {
      load_features<kVectors>(d, keys.data + pairs.keys[which] * keys.stride, tail, key);
      const V value = hn::Set(d, values[which]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) to[v] = hn::MulAdd(value, key[v], to[v]);
    };
    for (; pair + 2 <= end; pair += 2) {
      add_pair(pair, even);
      add_pair(pair + 1, odd);
    }
    if (pair < end) add_pair(pair, even);
    T* const sum = sums.data + row * sums.stride;
    V before[kVectors];
    load_features<kVectors>(d, sum, tail, before);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) before[v] = hn::MulAdd(factor, hn::Add(even[v], odd[v]), before[v]);
    store_features<kVectors>(d, before, sum, tail);
  }
}

template <int kVectors, class T>
HWY_NOINLINE void pairs_to_keys_of(const PairTile& pairs, std::int64_t tail, T alpha, const T* values,
                                   FeatureRows<const T> rows, FeatureRows<T> sums) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const V factor = hn::Set(d, alpha);
  for (std::int64_t row = 0; row < pairs.rows; ++row) {
    const std::int32_t end = pairs.row_offsets[row + 1];
    std::int32_t pair = pairs.row_offsets[row];
    if (pair == end) continue;
    V features[kVectors];
    load_features<kVectors>(d, rows.data + row * rows.stride, tail, features);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) features[v] = hn::Mul(factor, features[v]);
    for (; pair < end; ++pair) {
      T* const sum = sums.data + pairs.keys[pair] * sums.stride;
      const V value = hn::Set(d, values[pair]);
      V before[kVectors];
      load_features<kVectors>(d, sum, tail, before);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) before[v] = hn::MulAdd(value, features[v], before[v]);
      store_features<kVectors>(d, before, sum, tail);
    }
  }
}

/// Calls visit<vectors>(first feature, elements of the last vector or 0 for all) for the features cut into pieces that
/// registers hold.
template <class T, class Visit>
HWY_INLINE void for_each_piece(std::int64_t features, Visit visit) {
  constexpr std::int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  const std::int64_t tail = features % kLanes;
  const std::int64_t vectors = (features + kLanes - 1) / kLanes;
  std::int64_t first = 0;
  const auto take = [&]<int kVectors>() HWY_ATTR {
    const bool last = first + kVectors == vectors;
    visit.template operator()<kVectors>(first * kLanes, last ? tail : 0);
    first += kVectors;
  };
  while (first + 8 <= vectors) take.template operator()<8>();
  if (first + 4 <= vectors) take.template operator()<4>();
  switch (vectors - first) {
    case 3: return take.template operator()<3>();
    case 2: return take.template operator()<2>();
    case 1: return take.template operator()<1>();
    default: return;
  }
}

template <class T>
void pair_products(const PairTile& pairs, std::int64_t features, T alpha, FeatureRows<const T> queries,
                   FeatureRows<const T> keys, T* values, bool add) {
  for_each_piece<T>(features, [&]<int kVectors>(std::int64_t begin, std::int64_t tail) HWY_ATTR {
    const FeatureRows<const T> query_features = {queries.data + begin, queries.stride};
    const FeatureRows<const T> key_features = {keys.data + begin, keys.stride};
#if HWY_TARGET != HWY_SCALAR
    // Half a vector of results is empty at the end of a row, on average.
    constexpr std::int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
    if (pairs.row_offsets[pairs.rows] - pairs.row_offsets[0] >= kLanes * pairs.rows) {
      return long_row_products<kVectors, T>(pairs, tail, alpha, query_features, key_features, values, add || begin > 0);
    }
#endif
    short_row_products<kVectors, T>(pairs, tail, alpha, query_features, key_features, values, add || begin > 0);
  });
}

template <class T>
void pairs_to_rows(const PairTile& pairs, std::int64_t features, T alpha, const T* values, FeatureRows<const T> keys,
                   FeatureRows<T> sums) {
  for_each_piece<T>(features, [&]<int kVectors>(std::int64_t begin, std::int64_t tail) HWY_ATTR {
    pairs_to_rows_of<kVectors, T>(pairs, tail, alpha, values, {keys.data + begin, keys.stride},
                                  {sums.data + begin, sums.stride});
  });
}

template <class T>
void pairs_to_keys(const PairTile& pairs, std::int64_t features, T alpha, const T* values, FeatureRows<const T> rows,
                   FeatureRows<T> sums) {
  for_each_piece<T>(features, [&]<int kVectors>(std::int64_t begin, std::int64_t tail) HWY_ATTR {
    pairs_to_keys_of<kVectors, T>(pairs, tail, alpha, values, {rows.data + begin, rows.stride},
                                  {sums.data + begin, sums.stride});
  });
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
