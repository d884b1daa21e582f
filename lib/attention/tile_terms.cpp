#include "attention/tile_terms.hpp"

#include <algorithm>
#include <cmath>

#include "pattern/score_term_checks.hpp"

namespace cobble::detail {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

/// A dense tile stands keys x queries, a matrix of biases by rows: between the two go squares of this side, which fit
/// the first level of cache.
constexpr std::int64_t kSquare = 64;

/// Calls visit(first query, queries, first key, keys) for the squares of a tile.
template <class Visit>
void for_each_square(std::int64_t queries, std::int64_t keys, Visit visit) {
  for (std::int64_t key = 0; key < keys; key += kSquare) {
    for (std::int64_t query = 0; query < queries; query += kSquare) {
      visit(query, std::min(kSquare, queries - query), key, std::min(kSquare, keys - key));
    }
  }
}

/// Calls visit(begin, end) for the queries of a key between which its pairs are.
template <class Visit>
void for_each_key(const TileMap& map, Visit visit) {
  const kernels::Interval* const intervals = map.queries_of_key();
  for (std::int64_t key = 0; key < map.keys(); ++key) {
    const std::int64_t begin = intervals == nullptr ? 0 : intervals[key].begin;
    const std::int64_t end = intervals == nullptr ? map.stride() : intervals[key].end;
    if (begin < end) visit(key, begin, end - begin);
  }
}

}  // namespace

template <class T>
TileTerms<T>::TileTerms(const PassTerms<T>& terms, std::int64_t query_tokens, std::int64_t key_tokens)
    : terms_(terms),
      kernels_(kernels::tile_kernels<T>()),
      position_shift_(key_tokens - query_tokens),
      softcap_(static_cast<T>(terms.given.softcap)),
      has_alibi_(!terms.given.alibi_slopes.empty()) {
  if (has_bias(terms.given)) bias_.emplace(terms.given.bias.structure, "bias.structure");
}

template <class T>
template <class Visit>
void TileTerms<T>::for_each_run(Visit&& visit) const {
  for (std::int64_t query = 0; query < queries_.size(); ++query) {
    bias_->for_each_run(queries_.begin + query, keys_.begin, keys_.end,
                        [&](std::int64_t first, std::int64_t count, std::int64_t place) {
                          visit(query, first - keys_.begin, count, place);
                        });
  }
}

template <class T>
template <class Visit>
void TileTerms<T>::for_each_listed(const TileMap& map, Visit&& visit) const {
  const kernels::PairTile pairs = map.pairs();
  std::int64_t last_query = -1;
  std::int32_t pair = 0;
  for_each_run([&](std::int64_t query, std::int64_t first, std::int64_t count, std::int64_t place) {
    if (query != last_query) pair = pairs.row_offsets[query];
    last_query = query;
    const std::int32_t end = pairs.row_offsets[query + 1];
    const auto key = [&](std::int32_t at) { return map.key_in_range(pairs.keys[at]); };
    while (pair < end && key(pair) < first) ++pair;
    for (; pair < end && key(pair) < first + count; ++pair) visit(pair, place + (key(pair) - first));
  });
}

template <class T>
void TileTerms<T>::apply(const TileMap& map, T* score, T* slope) const {
  map.is_dense() ? apply_dense(map, score, slope) : apply_listed(map, score, slope);
}

template <class T>
void TileTerms<T>::apply_dense(const TileMap& map, T* score, T* slope) const {
  const std::int64_t shift = queries_.begin + position_shift_ - keys_.begin;
  for_each_key(map, [&](std::int64_t key, std::int64_t query, std::int64_t count) {
    const std::int64_t at = key * map.stride() + query;
    if (softcap_ != T{0}) kernels_.soft_cap(count, softcap_, score + at, slope == nullptr ? nullptr : slope + at);
    if (has_alibi_) kernels_.subtract_distances(count, alibi_slope(), shift + query - key, score + at);
  });
  if (bias_) add_dense_bias(map, score);
}

template <class T>
void TileTerms<T>::add_dense_bias(const TileMap& map, T* score) const {
  alignas(64) T by_rows[kSquare * kSquare];
  alignas(64) T by_keys[kSquare * kSquare];
  const T* const values = bias();
  for_each_square(map.rows(), map.keys(), [&](auto query, auto queries, auto key, auto keys) {
    bool any = false;
    std::fill_n(by_rows, queries * kSquare, T{0});
    const std::int64_t first_key = keys_.begin + key;
    for (std::int64_t i = 0; i < queries; ++i) {
      bias_->for_each_run(queries_.begin + query + i, first_key, first_key + keys,
                          [&](std::int64_t first, std::int64_t count, std::int64_t place) {
                            std::copy_n(values + place, count, by_rows + i * kSquare + (first - first_key));
                            any = true;
                          });
    }
    if (!any) return;
    kernels_.transpose(queries, keys, T{1}, by_rows, kSquare, 1, by_keys, kSquare);
    for (std::int64_t j = 0; j < keys; ++j) {
      kernels_.add_bias(queries, by_keys + j * kSquare, score + (key + j) * map.stride() + query);
    }
  });
}

template <class T>
void TileTerms<T>::apply_listed(const TileMap& map, T* score, T* slope) const {
  const kernels::PairTile pairs = map.pairs();
  if (softcap_ != T{0}) kernels_.soft_cap(pairs.row_offsets[pairs.rows], softcap_, score, slope);
  if (has_alibi_) {
    const T by = alibi_slope();
    for (std::int64_t query = 0; query < pairs.rows; ++query) {
      const std::int64_t position = queries_.begin + query + position_shift_ - keys_.begin;
      for (std::int32_t pair = pairs.row_offsets[query]; pair < pairs.row_offsets[query + 1]; ++pair) {
        score[pair] -= by * static_cast<T>(std::abs(position - map.key_in_range(pairs.keys[pair])));
      }
    }
  }
  if (!bias_) return;
  const T* const values = bias();
  for_each_listed(map, [&](std::int32_t pair, std::int64_t place) {
    const T value = values[place];
    score[pair] = value == -kInfinity<T> ? value : score[pair] + value;
  });
}

template <class T>
bool TileTerms<T>::removes_pairs() {
  if (!bias_) return false;
  if (removal_ == Removal::unknown) {
    bool some = false;
    const T* const values = bias();
    for_each_run([&](std::int64_t, std::int64_t, std::int64_t count, std::int64_t place) {
      some = some || std::find(values + place, values + place + count, -kInfinity<T>) != values + place + count;
    });
    removal_ = some ? Removal::some : Removal::none;
  }
  return removal_ == Removal::some;
}

template <class T>
bool TileTerms<T>::removes(std::int64_t query, std::int64_t key) const {
  if (!bias_) return false;
  const std::int64_t place = bias_->index(queries_.begin + query, keys_.begin + key);
  return place >= 0 && bias()[place] == -kInfinity<T>;
}

template <class T>
void TileTerms<T>::clear_removed(const TileMap& map, T* grad_score) const {
  const T* const values = bias();
  if (!map.is_dense()) {
    for_each_listed(map, [&](std::int32_t pair, std::int64_t place) {
      if (values[place] == -kInfinity<T>) grad_score[pair] = T{0};
    });
    return;
  }
  for_each_run([&](std::int64_t query, std::int64_t first, std::int64_t count, std::int64_t place) {
    for (std::int64_t k = 0; k < count; ++k) {
      if (values[place + k] == -kInfinity<T>) grad_score[(first + k) * map.stride() + query] = T{0};
    }
  });
}

template <class T>
void TileTerms<T>::store_bias_gradient(const TileMap& map, const T* grad_score) const {
  T* const gradient = grad_bias();
  const bool add = terms_.add_to_grad_bias;
  if (!map.is_dense()) {
    for_each_listed(map, [&](std::int32_t pair, std::int64_t place) {
      gradient[place] = add ? gradient[place] + grad_score[pair] : grad_score[pair];
    });
    return;
  }
  alignas(64) T by_rows[kSquare * kSquare];
  for_each_square(map.rows(), map.keys(), [&](auto query, auto queries, auto key, auto keys) {
    kernels_.transpose(keys, queries, T{1}, grad_score + key * map.stride() + query, map.stride(), 1, by_rows, kSquare);
    const std::int64_t first_key = keys_.begin + key;
    for (std::int64_t i = 0; i < queries; ++i) {
      bias_->for_each_run(queries_.begin + query + i, first_key, first_key + keys,
                          [&](std::int64_t first, std::int64_t count, std::int64_t place) {
                            const T* const from = by_rows + i * kSquare + (first - first_key);
                            if (add) {
                              kernels_.axpy(count, T{1}, from, gradient + place);
                            } else {
                              std::copy_n(from, count, gradient + place);
                            }
                          });
    }
  });
}

template <class T>
void TileTerms<T>::multiply_slopes(const TileMap& map, const T* slope, T* grad_score) const {
  if (!map.is_dense()) {
    kernels_.multiply_by(map.pairs().row_offsets[map.rows()], slope, grad_score);
    return;
  }
  for_each_key(map, [&](std::int64_t key, std::int64_t query, std::int64_t count) {
    const std::int64_t at = key * map.stride() + query;
    kernels_.multiply_by(count, slope + at, grad_score + at);
  });
}

template <class T>
void TileTerms<T>::finish_gradients(const TileMap& map, const T* slope, T* grad_score) {
  if (removes_pairs()) clear_removed(map, grad_score);
  if (terms_.grad_bias.data() != nullptr) store_bias_gradient(map, grad_score);
  if (softcap_ != T{0}) multiply_slopes(map, slope, grad_score);
}

template class TileTerms<float>;
template class TileTerms<double>;

}  // namespace cobble::detail
