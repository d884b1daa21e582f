#include "attention/tile_map.hpp"

#include <algorithm>
#include <bit>

#include "pattern/pattern_node.hpp"
#include "storage/bit_range.hpp"

namespace cobble::detail {
namespace {

/// Transposes 64 x 64 bits: bit c of word r becomes bit r of word c. (Hacker's Delight, section 7-3.)
void transpose_bits(std::uint64_t* words) noexcept {
  std::uint64_t mask = 0x00000000FFFFFFFFU;
  for (int width = 32; width != 0; width /= 2, mask ^= mask << width) {
    for (int row = 0; row < 64; row = ((row | width) + 1) & ~width) {
      const std::uint64_t swapped = ((words[row] >> width) ^ words[row | width]) & mask;
      words[row] ^= swapped << width;
      words[row | width] ^= swapped;
    }
  }
}

}  // namespace

void TileMap::assign(const Pattern& pattern, Range rows, Range keys, std::int64_t width, std::int64_t pairs,
                     TileKind kind, TileForms forms) {
  const PatternNode& node = pattern.node();
  if (node_ == &node && rows_ == rows && keys_ == keys) return;  // P and dS share a tile
  node_ = &node;
  rows_ = rows;
  keys_ = keys;
  width_ = width;
  gathered_.clear();
  if (forms == TileForms::gathered && width < keys.size()) {
    gather(node);
    return build_gathered_bits();
  }
  if (kind == TileKind::full && width == keys.size()) {
    form_ = Form::all;
    return;
  }
  if (forms == TileForms::gathered_lists) {
    gather(node);
    return list_gathered(pairs);
  }
  if (tile_layout(rows.size(), keys.size(), pairs, forms == TileForms::lists).compact) {
    list_pattern(node, pairs);
    return;
  }
  if (!find_intervals(node)) build_bits(node);
  std::int64_t places = 0;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const kernels::Interval interval = keys_of_query_[static_cast<std::size_t>(i)];
    places += interval.end - interval.begin;
  }
  if (is_cheaper_listed(pairs, places)) list_pattern(node, pairs);
}

void TileMap::gather(const PatternNode& node) {
  const auto begin = static_cast<std::int32_t>(keys_.begin);
  runs_.clear();
  run_ends_.clear();
  place_of_key_.resize(static_cast<std::size_t>(keys_.size()));
  touched_.assign(static_cast<std::size_t>(divide_up(keys_.size(), 64)), 0);
  for (std::int64_t i = 0; i < rows(); ++i) {
    const std::size_t first = runs_.size();
    node.append_runs(static_cast<std::int32_t>(rows_.begin + i), begin, static_cast<std::int32_t>(keys_.end), runs_);
    for (std::size_t run = first; run < runs_.size(); ++run) {
      for (std::int32_t key = runs_[run].begin; key < runs_[run].end; ++key) set_bit(touched_, key - begin);
    }
    run_ends_.push_back(runs_.size());
  }
  for_each_set_bit(touched_, 0, keys_.size(), [&](std::int64_t key) {
    place_of_key_[static_cast<std::size_t>(key)] = static_cast<std::int32_t>(gathered_.size());
    gathered_.push_back(static_cast<std::int32_t>(key));
  });
  width_ = std::ssize(gathered_);
  // A run's keys all have a place, side by side.
  for (ColumnRun& run : runs_) {
    const std::int32_t first = place_of_key_[static_cast<std::size_t>(run.begin - begin)];
    run = {first, first + (run.end - run.begin)};
  }
}

void TileMap::build_gathered_bits() {
  form_ = Form::bits;
  words_ = divide_up(rows(), 64);
  bits_.assign(static_cast<std::size_t>(width_ * words_), 0);
  keys_of_query_.assign(static_cast<std::size_t>(stride()), {});
  queries_of_key_.assign(static_cast<std::size_t>(width_), {});
  std::size_t run = 0;
  for (std::int64_t i = 0; i < rows(); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    const auto query = static_cast<std::int32_t>(i);
    for (; run < run_ends_[static_cast<std::size_t>(i)]; ++run) {
      kernels::Interval& keys = keys_of_query_[static_cast<std::size_t>(i)];
      if (keys.begin == keys.end) keys.begin = runs_[run].begin;
      keys.end = runs_[run].end;
      for (std::int32_t place = runs_[run].begin; place < runs_[run].end; ++place) {
        bits_[static_cast<std::size_t>(place * words_ + i / 64)] |= bit;
        kernels::Interval& queries = queries_of_key_[static_cast<std::size_t>(place)];
        if (queries.begin == queries.end) queries.begin = query;
        queries.end = query + 1;
      }
    }
  }
}

void TileMap::list_gathered(std::int64_t pairs) {
  form_ = Form::list;
  followed_ = nullptr;
  row_offsets_.assign(1, 0);
  pair_keys_.clear();
  pair_keys_.reserve(static_cast<std::size_t>(pairs));
  std::size_t run = 0;
  for (const std::size_t end : run_ends_) {
    for (; run < end; ++run) {
      for (std::int32_t place = runs_[run].begin; place < runs_[run].end; ++place) pair_keys_.push_back(place);
    }
    row_offsets_.push_back(static_cast<std::int32_t>(pair_keys_.size()));
  }
  listed_keys_ = pair_keys_.data();
}

bool TileMap::find_intervals(const PatternNode& node) {
  runs_.resize(static_cast<std::size_t>(rows()));
  if (!node.single_runs(static_cast<std::int32_t>(rows_.begin), static_cast<std::int32_t>(rows_.end),
                        static_cast<std::int32_t>(keys_.begin), static_cast<std::int32_t>(keys_.end), runs_.data())) {
    return false;
  }
  keys_of_query_.assign(static_cast<std::size_t>(stride()), {});
  queries_of_key_.assign(static_cast<std::size_t>(keys()), {});
  const auto first_key = static_cast<std::int32_t>(keys_.begin);
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].begin < runs_[i].end) keys_of_query_[i] = {runs_[i].begin - first_key, runs_[i].end - first_key};
  }
  // Each row's interval must meet what the rows before it cover, so that only keys at either end are new.
  const auto sweep = [&](auto from, auto until, int step, auto set) {
    kernels::Interval covered{};
    for (auto i = from; i != until; i += step) {
      const kernels::Interval interval = keys_of_query_[static_cast<std::size_t>(i)];
      if (interval.begin == interval.end) continue;
      if (covered.begin == covered.end) covered = {interval.begin, interval.begin};
      if (interval.begin > covered.end || interval.end < covered.begin) return false;
      for (; covered.begin > interval.begin; --covered.begin) set(covered.begin - 1, i);
      for (; covered.end < interval.end; ++covered.end) set(covered.end, i);
    }
    return true;
  };
  const auto size = static_cast<std::int32_t>(rows());
  form_ = Form::intervals;
  return sweep(0, size, 1,
               [&](std::int32_t key, std::int32_t i) { queries_of_key_[static_cast<std::size_t>(key)].begin = i; }) &&
         sweep(size - 1, -1, -1,
               [&](std::int32_t key, std::int32_t i) { queries_of_key_[static_cast<std::size_t>(key)].end = i + 1; });
}

void TileMap::build_bits(const PatternNode& node) {
  form_ = Form::bits;
  words_ = divide_up(rows(), 64);
  const std::int64_t key_words = divide_up(keys(), 64);
  bits_.resize(static_cast<std::size_t>(key_words * 64 * words_));
  keys_of_query_.assign(static_cast<std::size_t>(stride()), {});
  queries_of_key_.resize(static_cast<std::size_t>(keys()));
  for (std::int64_t word = 0; word < words_; ++word) {
    const std::int64_t height = std::min<std::int64_t>(64, rows() - word * 64);
    for (std::int64_t key_word = 0; key_word < key_words; ++key_word) {
      const std::int64_t width = std::min<std::int64_t>(64, keys() - key_word * 64);
      const std::uint64_t inside = ~std::uint64_t{0} >> (64 - width);
      std::uint64_t block[64] = {};
      for (std::int64_t i = 0; i < height; ++i) {
        const std::uint64_t bits = node.bits(static_cast<std::int32_t>(rows_.begin + word * 64 + i),
                                             static_cast<std::int32_t>(keys_.begin + key_word * 64)) &
                                   inside;
        block[i] = bits;
        if (bits == 0) continue;
        kernels::Interval& interval = keys_of_query_[static_cast<std::size_t>(word * 64 + i)];
        if (interval.end == 0) interval.begin = static_cast<std::int32_t>(key_word * 64 + std::countr_zero(bits));
        interval.end = static_cast<std::int32_t>(key_word * 64 + 64 - std::countl_zero(bits));
      }
      transpose_bits(block);
      for (std::int64_t j = 0; j < 64; ++j) {
        bits_[static_cast<std::size_t>((key_word * 64 + j) * words_ + word)] = block[j];
      }
    }
  }
  for (std::int64_t key = 0; key < keys(); ++key) {
    kernels::Interval interval{};
    for (std::int64_t word = 0; word < words_; ++word) {
      const std::uint64_t bits = bits_[static_cast<std::size_t>(key * words_ + word)];
      if (bits == 0) continue;
      if (interval.end == 0) interval.begin = static_cast<std::int32_t>(word * 64 + std::countr_zero(bits));
      interval.end = static_cast<std::int32_t>(word * 64 + 64 - std::countl_zero(bits));
    }
    queries_of_key_[static_cast<std::size_t>(key)] = interval;
  }
}

void TileMap::list_pattern(const PatternNode& node, std::int64_t pairs) {
  form_ = Form::list;
  row_offsets_.resize(static_cast<std::size_t>(rows()) + 1);
  row_offsets_.front() = 0;
  const bool stored = node.stored_row(0).data() != nullptr;
  if (stored && keys_.size() == node.columns()) {  // as they stand
    const std::int32_t* const first = node.stored_row(static_cast<std::int32_t>(rows_.begin)).data();
    for (std::int64_t i = 0; i < rows(); ++i) {
      const std::span<const std::int32_t> row = node.stored_row(static_cast<std::int32_t>(rows_.begin + i));
      row_offsets_[static_cast<std::size_t>(i) + 1] = static_cast<std::int32_t>(row.data() + row.size() - first);
    }
    listed_keys_ = first;
    return;
  }
  pair_keys_.resize(static_cast<std::size_t>(pairs));
  listed_keys_ = pair_keys_.data();
  std::int32_t* const keys_of_pairs = pair_keys_.data();
  std::int32_t count = 0;
  const auto end = static_cast<std::int32_t>(keys_.end);
  const auto begin = static_cast<std::int32_t>(keys_.begin);
  if (stored) {
    const bool goes_on = followed_ == &node && followed_rows_ == rows_ && followed_until_ == keys_.begin;
    next_.resize(static_cast<std::size_t>(rows()));
    for (std::int64_t i = 0; i < rows(); ++i) {
      const std::span<const std::int32_t> row = node.stored_row(static_cast<std::int32_t>(rows_.begin + i));
      const std::int32_t* const last = row.data() + row.size();
      const std::int32_t*& next = next_[static_cast<std::size_t>(i)];
      if (!goes_on) next = begin == 0 ? row.data() : std::lower_bound(row.data(), last, begin);
      const std::int32_t* column = next;
      for (; column != last && *column < end; ++column) keys_of_pairs[count++] = *column - begin;
      next = column;
      row_offsets_[static_cast<std::size_t>(i) + 1] = count;
    }
    followed_ = &node;
    followed_rows_ = rows_;
    followed_until_ = keys_.end;
    return;
  }
  for (std::int64_t i = 0; i < rows(); ++i) {
    runs_.clear();
    node.append_runs(static_cast<std::int32_t>(rows_.begin + i), begin, end, runs_);
    for (const ColumnRun run : runs_) {
      for (std::int32_t column = run.begin; column < run.end; ++column) keys_of_pairs[count++] = column - begin;
    }
    row_offsets_[static_cast<std::size_t>(i) + 1] = count;
  }
}

}  // namespace cobble::detail
