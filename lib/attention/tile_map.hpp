#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cobble/pattern.hpp"
#include "core/checked.hpp"
#include "kernels/tile_kernels.hpp"
#include "plan/plan_data.hpp"

namespace cobble::detail {

/// What the tiles of a plan may be.
enum class TileForms : std::uint8_t {
  tiles,          ///< dense, or lists where that is cheaper
  lists,          ///< lists unless full
  gathered,       ///< dense, of those keys alone that have a pair
  gathered_lists  ///< lists of those keys unless full
};

/// Where the pairs of one tile stand: everywhere, at the bits of a mask, or in a list.
class TileMap {
 public:
  /// `width`: how many keys the tile holds.
  void assign(const Pattern& pattern, Range rows, Range keys, std::int64_t width, std::int64_t pairs, TileKind kind,
              TileForms forms);

  std::int64_t rows() const noexcept { return rows_.size(); }
  /// How many keys stand side by side.
  std::int64_t keys() const noexcept { return width_; }
  /// Which ones, counted from the tile's first; empty: all of its range.
  std::span<const std::int32_t> gathered_keys() const noexcept { return gathered_; }
  /// Where one of the tile's keys stands in its range.
  std::int64_t key_in_range(std::int64_t key) const noexcept {
    return gathered_.empty() ? key : gathered_[static_cast<std::size_t>(key)];
  }

  /// Whether the tile's values stand keys x queries; otherwise as pairs() lists them.
  bool is_dense() const noexcept { return form_ != Form::list; }
  /// Of a dense tile: from key to key.
  std::int64_t stride() const noexcept { return round_up(rows_.size(), kPaddedElements); }
  template <class T>
  kernels::DenseTile<T> dense(T* values) const noexcept {
    return {stride(),
            keys(),
            values,
            stride(),
            form_ == Form::intervals ? keys_of_query_.data() : nullptr,
            form_ == Form::bits ? bits_.data() : nullptr,
            words_};
  }
  /// Of a dense tile with a mask: for each query the keys between its first and its last pair, and for each key the
  /// queries; otherwise null.
  const kernels::Interval* keys_of_query() const noexcept {
    return form_ == Form::all ? nullptr : keys_of_query_.data();
  }
  const kernels::Interval* queries_of_key() const noexcept {
    return form_ == Form::all ? nullptr : queries_of_key_.data();
  }
  kernels::PairTile pairs() const noexcept { return {rows(), row_offsets_.data(), listed_keys_}; }

  /// Calls visit(query, key, place of the value) for each pair, row by row in a list and key by key in a dense tile.
  template <class Visit>
  void for_each_pair(Visit&& visit) const;
  /// Calls visit(key, place of the value) for the pairs of a query in ascending order of keys.
  template <class Visit>
  void for_each_key(std::int64_t query, Visit&& visit) const;

 private:
  enum class Form : std::uint8_t {
    all,
    intervals,  ///< one run of keys a query
    bits,
    list
  };

  void gather(const PatternNode& node);
  void build_gathered_bits();
  void list_gathered(std::int64_t pairs);
  bool find_intervals(const PatternNode& node);
  void build_bits(const PatternNode& node);
  void list_pattern(const PatternNode& node, std::int64_t pairs);
  bool holds(std::int64_t query, std::int64_t key) const noexcept {
    if (form_ == Form::all) return true;
    if (form_ == Form::intervals) {
      const kernels::Interval interval = keys_of_query_[static_cast<std::size_t>(query)];
      return interval.begin <= key && key < interval.end;
    }
    return (bits_[static_cast<std::size_t>(key * words_ + query / 64)] >> (query % 64) & 1U) != 0;
  }

  const PatternNode* node_ = nullptr;
  Range rows_;
  Range keys_;
  std::int64_t width_ = 0;
  Form form_ = Form::all;
  std::int64_t words_ = 0;  ///< of bits, a key
  std::vector<std::uint64_t> bits_;
  std::vector<kernels::Interval> keys_of_query_;
  std::vector<kernels::Interval> queries_of_key_;
  std::vector<std::int32_t> gathered_;
  std::vector<std::uint64_t> touched_;      ///< scratch: a bit for each key of the range
  std::vector<std::int32_t> place_of_key_;  ///< scratch: of each key of the range that has a pair
  std::vector<std::size_t> run_ends_;       ///< scratch: of each row's runs
  std::vector<std::int32_t> row_offsets_;
  std::vector<std::int32_t> pair_keys_;
  const std::int32_t* listed_keys_ = nullptr;  ///< pair_keys_, or the pattern's own
  std::vector<ColumnRun> runs_;                ///< scratch
  // Where each row's pairs go on in the next tile of the same rows, of a pattern that is stored by rows.
  const PatternNode* followed_ = nullptr;
  Range followed_rows_;
  std::int64_t followed_until_ = 0;
  std::vector<const std::int32_t*> next_;
};

template <class Visit>
void TileMap::for_each_pair(Visit&& visit) const {
  if (form_ == Form::list) {
    for (std::int64_t query = 0; query < rows(); ++query)
      for_each_key(query, [&](auto key, auto at) { visit(query, key, at); });
    return;
  }
  for (std::int64_t key = 0; key < keys(); ++key) {
    for (std::int64_t query = 0; query < rows(); ++query) {
      if (holds(query, key)) visit(query, key, key * stride() + query);
    }
  }
}

template <class Visit>
void TileMap::for_each_key(std::int64_t query, Visit&& visit) const {
  if (form_ == Form::list) {
    const auto row = static_cast<std::size_t>(query);
    for (std::int32_t at = row_offsets_[row]; at < row_offsets_[row + 1]; ++at) {
      visit(std::int64_t{listed_keys_[at]}, std::int64_t{at});
    }
    return;
  }
  for (std::int64_t key = 0; key < keys(); ++key) {
    if (holds(query, key)) visit(key, key * stride() + query);
  }
}

}  // namespace cobble::detail
