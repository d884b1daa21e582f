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
/// Of each 128-bit block of the next 16 / sizeof(T) rows, the sum; block by block, in the order of the rows.
template <class D, class T>
HWY_INLINE hn::Vec<D> block_sums(D d, const T* rows) {
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const auto sum_of_pair = [&](const T* at) HWY_ATTR {
    const auto first = hn::Load(d, at);
    const auto second = hn::Load(d, at + kLanes);
    return hn::Add(hn::InterleaveLower(d, first, second), hn::InterleaveUpper(d, first, second));
  };
  if constexpr (sizeof(T) == sizeof(double)) {
    return sum_of_pair(rows);
  } else {
    const hn::RepartitionToWide<D> wide;
    const auto low = hn::BitCast(wide, sum_of_pair(rows));
    const auto high = hn::BitCast(wide, sum_of_pair(rows + 2 * kLanes));
    return hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, low, high)),
                   hn::BitCast(d, hn::InterleaveUpper(wide, low, high)));
  }
}

/// The sums of kLanes rows of kLanes elements each, one row after another in memory.
template <class D, class T>
HWY_INLINE hn::Vec<D> sums_of_rows(D d, const T* rows) {
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  constexpr std::int64_t kBlocks = kLanes * static_cast<std::int64_t>(sizeof(T)) / 16;
  constexpr std::int64_t kStep = kLanes / kBlocks * kLanes;  // of elements from one block_sums to the next
  const auto halves = [&](const T* low, const T* high) HWY_ATTR {
    const auto first = block_sums(d, low);
    const auto second = block_sums(d, high);
    return hn::Add(hn::ConcatLowerLower(d, second, first), hn::ConcatUpperUpper(d, second, first));
  };
  if constexpr (kBlocks == 1) {
    return block_sums(d, rows);
  } else if constexpr (kBlocks == 2) {
    return halves(rows, rows + kStep);
  } else {
    static_assert(kBlocks == 4);
    const auto even = halves(rows, rows + 2 * kStep);
    const auto odd = halves(rows + kStep, rows + 3 * kStep);
    return hn::OddEvenBlocks(hn::Add(odd, hn::SwapAdjacentBlocks(odd)), hn::Add(even, hn::SwapAdjacentBlocks(even)));
  }
}
#endif

/// Dot products of kVectors vectors of features; vectors of results span rows.
template <int kVectors, class T>
HWY_NOINLINE void pair_products_of(const PairTile& pairs, std::int64_t tail, T alpha, FeatureRows<const T> queries,
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
    pair_products_of<kVectors, T>(pairs, tail, alpha, {queries.data + begin, queries.stride},
                                  {keys.data + begin, keys.stride}, values, add || begin > 0);
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
