// Softmax, forward and backward, on dense tiles. Included once for each target.
#if defined(COBBLE_KERNELS_SOFTMAX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef COBBLE_KERNELS_SOFTMAX_INL
#undef COBBLE_KERNELS_SOFTMAX_INL
#else
#define COBBLE_KERNELS_SOFTMAX_INL
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "kernels/exponential-inl.hpp"
#include "kernels/hull-inl.hpp"
#include "kernels/tile_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// A kind of tile says which pairs count. Of a vector of neighbouring queries, its column, that is: between which keys
// these pairs stand, which keys among them all of its queries attend to, and which lanes of the other keys.

/// All of a dense tile's pairs count.
template <class T>
struct WholeTile {
  Interval keys;

  explicit WholeTile(const DenseTile<T>& tile) : keys{0, static_cast<std::int32_t>(tile.keys)} {}
  template <class D>
  struct Column {
    Interval keys;
    Interval whole;

    HWY_INLINE Column(D, const WholeTile& tile, std::int64_t) : keys(tile.keys), whole(tile.keys) {}
    HWY_INLINE hn::Vec<D> select(D, std::int64_t, hn::Vec<D> value, hn::Vec<D>) const { return value; }
  };
};

/// Those count that have their bit set.
template <class T>
struct BitTile {
  Interval keys;
  const std::uint64_t* bits;
  std::int64_t words;

  explicit BitTile(const DenseTile<T>& tile)
      : keys{0, static_cast<std::int32_t>(tile.keys)}, bits(tile.bits), words(tile.words) {}
  template <class D>
  struct Column {
    Interval keys;
    Interval whole{0, 0};  // no one has counted
    const std::uint64_t* first;
    std::int64_t words;
    int shift;

    HWY_INLINE Column(D, const BitTile& tile, std::int64_t query)
        : keys(tile.keys), first(tile.bits + query / 64), words(tile.words), shift(static_cast<int>(query % 64)) {}
    HWY_INLINE hn::Vec<D> select(D d, std::int64_t key, hn::Vec<D> value, hn::Vec<D> other) const {
      const std::uint64_t word = first[key * words] >> shift;
      std::uint8_t bytes[8];
      hwy::CopyBytes<8>(&word, bytes);
      return hn::IfThenElse(hn::LoadMaskBits(d, bytes), value, other);
    }
  };
};

/// Those count whose key lies in the query's interval.
template <class T>
struct IntervalTile {
  const Interval* intervals;

  explicit IntervalTile(const DenseTile<T>& tile) : intervals(tile.keys_of_query) {}
  template <class D>
  struct Column {
    Interval keys;
    Interval whole;
    hn::Vec<D> begin;
    hn::Vec<D> end;

    HWY_INLINE Column(D d, const IntervalTile& tile, std::int64_t query)
        : keys(hull(tile.intervals + query, hn::MaxLanes(d))), whole(keys) {
      HWY_ALIGN T ends[2][hn::MaxLanes(d)];
      for (std::int64_t lane = 0; lane < static_cast<std::int64_t>(hn::MaxLanes(d)); ++lane) {
        const Interval interval = tile.intervals[query + lane];
        ends[0][lane] = static_cast<T>(interval.begin);
        ends[1][lane] = static_cast<T>(interval.end);
        whole.begin = interval.begin > whole.begin ? interval.begin : whole.begin;
        whole.end = interval.end < whole.end ? interval.end : whole.end;
      }
      if (whole.begin >= whole.end) whole = {keys.begin, keys.begin};
      begin = hn::Load(d, ends[0]);
      end = hn::Load(d, ends[1]);
    }
    HWY_INLINE hn::Vec<D> select(D d, std::int64_t key, hn::Vec<D> value, hn::Vec<D> other) const {
      const auto at = hn::Set(d, static_cast<T>(key));
      return hn::IfThenElse(hn::And(hn::Ge(at, begin), hn::Lt(at, end)), value, other);
    }
  };
};

/// Calls visit with the kind of tile that says which pairs count.
template <class T, class Visit>
HWY_INLINE auto with_pairs_of(const DenseTile<T>& tile, Visit visit) {
  if (tile.bits != nullptr) return visit(BitTile<T>(tile));
  if (tile.keys_of_query != nullptr) return visit(IntervalTile<T>(tile));
  return visit(WholeTile<T>(tile));
}

/// The values of a column are 0 for keys out of the reach of its pairs.
template <class D, class T>
HWY_INLINE void clear_others(D d, const DenseTile<T>& tile, Interval keys, std::int64_t query) {
  T* const first = tile.values + query;
  for (std::int64_t key = 0; key < keys.begin; ++key) hn::StoreU(hn::Zero(d), d, first + key * tile.stride);
  for (std::int64_t key = keys.end; key < tile.keys; ++key) hn::StoreU(hn::Zero(d), d, first + key * tile.stride);
}

/// Calls visit(key, select) for the keys of a column in ascending order; select(value, other) is value in the lanes of
/// pairs that count.
template <class D, class Column, class Visit>
HWY_INLINE void for_each_key(D d, const Column& column, Visit visit) {
  const auto visit_some = [&](std::int64_t key) HWY_ATTR {
    visit(key, [&](auto value, auto other) HWY_ATTR { return column.select(d, key, value, other); });
  };
  std::int64_t key = column.keys.begin;
  for (; key < column.whole.begin; ++key) visit_some(key);
  for (; key < column.whole.end; ++key) visit(key, [](auto value, auto) HWY_ATTR { return value; });
  for (; key < column.keys.end; ++key) visit_some(key);
}

/// value = update(key, value) for the pairs of each key that count, 0 for the others.
template <class D, class Column, class T, class Update>
HWY_INLINE void update_keys(D d, const DenseTile<T>& tile, const Column& column, std::int64_t query, Update update) {
  clear_others(d, tile, column.keys, query);
  T* const first = tile.values + query;
  for_each_key(d, column, [&](std::int64_t key, auto select) HWY_ATTR {
    T* const at = first + key * tile.stride;
    hn::StoreU(select(update(key, hn::LoadU(d, at)), hn::Zero(d)), d, at);
  });
}

template <class D, class Column, class T>
HWY_INLINE hn::Vec<D> column_maximum(D d, const DenseTile<T>& tile, const Column& column, std::int64_t query,
                                     hn::Vec<D> maximum) {
  const auto lowest = hn::Neg(hn::Inf(d));
  hn::Vec<D> even = maximum;
  hn::Vec<D> odd = maximum;
  const T* const first = tile.values + query;
  const auto value = [&](std::int64_t key) HWY_ATTR { return hn::LoadU(d, first + key * tile.stride); };
  const auto some = [&](std::int64_t key) HWY_ATTR { return column.select(d, key, value(key), lowest); };
  std::int64_t key = column.keys.begin;
  // The second operand wins over a NaN. A column of one lane begins whole; GCC warns of a loop that never runs.
  if constexpr (hn::MaxLanes(D()) > 1) {
    for (; key < column.whole.begin; ++key) even = hn::Max(some(key), even);
  }
  for (; key + 2 <= column.whole.end; key += 2) {
    even = hn::Max(value(key), even);
    odd = hn::Max(value(key + 1), odd);
  }
  for (; key + 2 <= column.keys.end; key += 2) {
    even = hn::Max(some(key), even);
    odd = hn::Max(some(key + 1), odd);
  }
  if (key < column.keys.end) even = hn::Max(some(key), even);
  return hn::Max(even, odd);
}

template <bool kKeepScores, class Pairs, class T>
HWY_INLINE bool softmax(const Pairs& pairs, const DenseTile<T>& tile, T* maximum, T* sum, T* rescale) {
  const hn::ScalableTag<T> d;
  using Column = typename Pairs::template Column<hn::ScalableTag<T>>;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const auto lowest = hn::Neg(hn::Inf(d));
  const auto one = hn::Set(d, T{1});
  bool rescaled = false;
  for (std::int64_t query = 0; query < tile.queries; query += kLanes) {
    const Column column(d, pairs, query);
    const auto before = hn::LoadU(d, maximum + query);
    const auto largest = column_maximum(d, tile, column, query, before);
    const auto after =
        hn::IfThenElse(hn::Lt(hn::Add(before, hn::Set(d, static_cast<T>(kMaximumLag))), largest), largest, before);
    // A row whose scores are all -infinity so far has nothing to be measured against: exp(-inf - -inf) is no number.
    const auto shift = hn::IfThenZeroElse(hn::Eq(after, lowest), after);
    const auto factor = exponential<false>(d, hn::Sub(before, shift));
    auto total = hn::Zero(d);
    if constexpr (!kKeepScores) clear_others(d, tile, column.keys, query);
    T* const first = tile.values + query;
    for_each_key(d, column, [&](std::int64_t key, auto select) HWY_ATTR {
      T* const at = first + key * tile.stride;
      const auto p = select(exponential<false>(d, hn::Sub(hn::LoadU(d, at), shift)), hn::Zero(d));
      total = hn::Add(total, p);
      if constexpr (!kKeepScores) hn::StoreU(p, d, at);
    });
    if constexpr (!kKeepScores) {
      hn::StoreU(factor, d, rescale + query);
      rescaled = rescaled || !hn::AllTrue(d, hn::Eq(factor, one));
    }
    hn::StoreU(after, d, maximum + query);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, sum + query), factor, total), d, sum + query);
  }
  return rescaled;
}

template <class T>
bool online_softmax(const DenseTile<T>& tile, T* maximum, T* sum, T* rescale) {
  return with_pairs_of(tile,
                       [&](const auto& pairs) HWY_ATTR { return softmax<false>(pairs, tile, maximum, sum, rescale); });
}

template <class T>
void row_statistics(const DenseTile<T>& tile, T* maximum, T* sum) {
  with_pairs_of(tile, [&](const auto& pairs)
                          HWY_ATTR { return softmax<true>(pairs, tile, maximum, sum, static_cast<T*>(nullptr)); });
}

/// Calls visit(d, column, first query, shift of its queries, which of them are no empty rows).
template <class T, class Visit>
HWY_INLINE void for_each_column(const DenseTile<T>& tile, const T* shift, Visit visit) {
  with_pairs_of(tile, [&](const auto& pairs) HWY_ATTR {
    const hn::ScalableTag<T> d;
    using Column = typename std::remove_cvref_t<decltype(pairs)>::template Column<hn::ScalableTag<T>>;
    for (std::int64_t query = 0; query < tile.queries; query += static_cast<std::int64_t>(hn::MaxLanes(d))) {
      const auto by = hn::LoadU(d, shift + query);
      // Not Ne, which does not hold for NaN on some targets: rows whose LSE is NaN are not empty.
      visit(d, Column(d, pairs, query), query, by, hn::Not(hn::Eq(by, hn::Inf(d))));
    }
  });
}

template <class T>
void probabilities(const DenseTile<T>& tile, const T* shift) {
  for_each_column(tile, shift, [&](auto d, const auto& column, std::int64_t query, auto by, auto live) HWY_ATTR {
    update_keys(d, tile, column, query, [&](std::int64_t, auto score) HWY_ATTR {
      return hn::IfThenElseZero(live, exponential(d, hn::Sub(score, by)));
    });
  });
}

template <class T>
void grad_scores(const DenseTile<T>& tile, const T* probability, const T* shift, const T* delta, T factor) {
  for_each_column(tile, shift, [&](auto d, const auto& column, std::int64_t query, auto, auto live) HWY_ATTR {
    const auto by = hn::Mul(hn::Set(d, factor), hn::LoadU(d, delta + query));
    update_keys(d, tile, column, query, [&](std::int64_t key, auto grad) HWY_ATTR {
      const auto p = hn::LoadU(d, probability + key * tile.stride + query);
      return hn::IfThenElseZero(live, hn::Mul(p, hn::Sub(grad, by)));
    });
  });
}

template <class T>
void finish_rows(std::int64_t n, const T* maximum, const T* sum, T* lse, T* factor) {
  const hn::ScalableTag<T> d;
  const auto lowest = hn::Neg(hn::Inf(d));
  for (std::int64_t i = 0; i < n; i += static_cast<std::int64_t>(hn::MaxLanes(d))) {
    const auto total = hn::LoadU(d, sum + i);
    const auto empty = hn::Eq(total, hn::Zero(d));
    const auto safe = hn::IfThenElse(empty, hn::Set(d, T{1}), total);
    // Highway's logarithm makes a number of a NaN, and of infinity.
    const auto finite = hn::Lt(total, hn::Inf(d));
    const auto logarithm = hn::IfThenElse(finite, hn::Log(d, safe), total);
    hn::StoreU(hn::IfThenElse(empty, lowest, hn::Add(hn::LoadU(d, maximum + i), logarithm)), d, lse + i);
    hn::StoreU(hn::IfThenZeroElse(empty, hn::Div(hn::Set(d, T{1}), safe)), d, factor + i);
  }
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
