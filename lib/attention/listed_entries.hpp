#pragma once

#include <cstdint>

#include "kernels/tile_kernels.hpp"

// Products of a list of pairs with the entries that a compressed tensor stores of each key. With few entries a key they
// cost less than a key in full: an entry is a multiply-add, and all that moves.

namespace cobble::detail {

/// Rows of entries in CSR, as they stand: entry e of row j, row_offsets[j] <= e < row_offsets[j + 1].
template <class T>
struct EntryRows {
  const std::int64_t* row_offsets = nullptr;  ///< null: there are none
  const std::int32_t* features = nullptr;
  const T* values = nullptr;
};

/// Calls visit(row, pair, its key's first entry, the end of its entries).
template <class T, class Visit>
void for_each_listed_pair(const kernels::PairTile& pairs, const EntryRows<T>& keys, Visit visit) {
  for (std::int64_t row = 0; row < pairs.rows; ++row) {
    for (std::int32_t pair = pairs.row_offsets[row]; pair < pairs.row_offsets[row + 1]; ++pair) {
      const std::int64_t* const offset = keys.row_offsets + pairs.keys[pair];
      visit(row, pair, offset[0], offset[1]);
    }
  }
}

/// tile_p = alpha <row, key> of each pair, or += when `add`.
template <class T>
void multiply_listed_entries(const kernels::PairTile& pairs, const EntryRows<T>& keys, T alpha,
                             kernels::FeatureRows<const T> rows, T* tile, bool add) {
  for_each_listed_pair(pairs, keys, [&](std::int64_t row, std::int32_t pair, std::int64_t entry, std::int64_t end) {
    const T* const features = rows.data + row * rows.stride;
    T sum{0};
    for (; entry < end; ++entry) sum += keys.values[entry] * features[keys.features[entry]];
    tile[pair] = (add ? tile[pair] : T{0}) + alpha * sum;
  });
}

/// sums of a row += alpha sum over its pairs of tile_p times the key.
template <class T>
void add_listed_entries_to_rows(const kernels::PairTile& pairs, const EntryRows<T>& keys, T alpha, const T* tile,
                                kernels::FeatureRows<T> sums) {
  for_each_listed_pair(pairs, keys, [&](std::int64_t row, std::int32_t pair, std::int64_t entry, std::int64_t end) {
    T* const features = sums.data + row * sums.stride;
    const T weight = alpha * tile[pair];
    for (; entry < end; ++entry) features[keys.features[entry]] += weight * keys.values[entry];
  });
}

/// sums of a key's entries, which stand as the entries do, += alpha sum over its pairs of tile_p times the row.
template <class T>
void add_to_listed_entries(const kernels::PairTile& pairs, const EntryRows<T>& keys, T alpha, const T* tile,
                           kernels::FeatureRows<const T> rows, T* sums) {
  for_each_listed_pair(pairs, keys, [&](std::int64_t row, std::int32_t pair, std::int64_t entry, std::int64_t end) {
    const T* const features = rows.data + row * rows.stride;
    const T weight = alpha * tile[pair];
    for (; entry < end; ++entry) sums[entry] += weight * features[keys.features[entry]];
  });
}

}  // namespace cobble::detail
