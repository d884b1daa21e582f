#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cobble/pattern.hpp"

// Patterns of every kind, each with the set it stands for written down once more as a plain predicate.

namespace cobble::test {

using PairPredicate = std::function<bool(std::int64_t row, std::int64_t column)>;

struct SamplePattern {
  std::string name;
  Pattern pattern;
  PairPredicate contains;
};

/// The pairs of a predicate in compressed rows, by asking for each.
inline CsrPattern csr_of(std::int64_t n_q, std::int64_t n_k, const PairPredicate& contains) {
  CsrPattern matrix;
  matrix.rows = n_q;
  matrix.columns = n_k;
  for (std::int64_t i = 0; i < n_q; ++i) {
    for (std::int64_t j = 0; j < n_k; ++j) {
      if (contains(i, j)) matrix.column_indices.push_back(static_cast<std::int32_t>(j));
    }
    matrix.row_offsets.push_back(matrix.view().entries());
  }
  return matrix;
}

/// The blocks that hold a pair of the predicate, with bits.
inline BsrPattern bsr_of(std::int64_t n_q, std::int64_t n_k, std::int32_t block_rows, std::int32_t block_columns,
                         const PairPredicate& contains) {
  BsrPattern matrix{n_q, n_k, block_rows, block_columns, {0}, {}, {}};
  const auto words = static_cast<std::size_t>(matrix.view().words_per_block());
  for (std::int64_t panel = 0; panel < matrix.view().row_panels(); ++panel) {
    for (std::int64_t block = 0; block < matrix.view().column_panels(); ++block) {
      std::vector<std::uint64_t> bits(words);
      bool any = false;
      for (std::int64_t r = 0; r < block_rows && panel * block_rows + r < n_q; ++r) {
        for (std::int64_t c = 0; c < block_columns && block * block_columns + c < n_k; ++c) {
          if (!contains(panel * block_rows + r, block * block_columns + c)) continue;
          const std::int64_t index = r * block_columns + c;
          bits[static_cast<std::size_t>(index / 64)] |= std::uint64_t{1} << (index % 64);
          any = true;
        }
      }
      if (!any) continue;
      matrix.block_column_indices.push_back(static_cast<std::int32_t>(block));
      matrix.bits.insert(matrix.bits.end(), bits.begin(), bits.end());
    }
    matrix.block_row_offsets.push_back(static_cast<std::int64_t>(matrix.block_column_indices.size()));
  }
  return matrix;
}

/// Whether a pair is in a pattern that has no closed predicate (the random kinds), by its compressed rows.
inline PairPredicate stored_predicate(const Pattern& pattern) {
  return [matrix = pattern.to_csr()](std::int64_t i, std::int64_t j) {
    const auto row = matrix.view().row(i);
    return std::binary_search(row.begin(), row.end(), static_cast<std::int32_t>(j));
  };
}

namespace detail {

/// Scattered pairs with empty rows (i % 4 == 1) and unattended keys (j % 5 == 2).
inline bool scattered(std::int64_t i, std::int64_t j) {
  return i % 4 != 1 && j % 5 != 2 && (i * 31 + j * 17 + i * j) % 11 < 3;
}

inline void add_rectangular_kinds(std::int64_t n_q, std::int64_t n_k, std::vector<SamplePattern>& samples) {
  const auto add = [&](std::string name, Pattern pattern, PairPredicate contains) {
    samples.push_back({std::move(name), std::move(pattern), std::move(contains)});
  };
  const std::int64_t shift = n_k - n_q;
  add("full", full(n_q, n_k), [](std::int64_t, std::int64_t) { return true; });
  add("causal", causal(n_q, n_k), [=](std::int64_t i, std::int64_t j) { return j <= i + shift; });
  add("window 20 0", window(n_q, n_k, 20, 0),
      [=](std::int64_t i, std::int64_t j) { return j >= i + shift - 20 && j <= i + shift; });
  add("window 3 70", window(n_q, n_k, 3, 70),
      [=](std::int64_t i, std::int64_t j) { return j >= i + shift - 3 && j <= i + shift + 70; });
  add("window 0 0", window(n_q, n_k, 0, 0), [=](std::int64_t i, std::int64_t j) { return j == i + shift; });
  add("dilated 3 5", dilated(n_q, n_k, 3, 5), [=](std::int64_t i, std::int64_t j) {
    const std::int64_t distance = j - (i + shift);
    return distance % 5 == 0 && distance >= -15 && distance <= 15;
  });
  add("dilated 4 1", dilated(n_q, n_k, 4, 1),
      [=](std::int64_t i, std::int64_t j) { return j - (i + shift) >= -4 && j - (i + shift) <= 4; });
  add("global tokens 3", global_tokens(n_q, n_k, 3), [](std::int64_t i, std::int64_t j) { return i < 3 || j < 3; });
  add("leading tokens 5", leading_tokens(n_q, n_k, 5), [](std::int64_t, std::int64_t j) { return j < 5; });
  add("predicate", from_predicate(n_q, n_k, [](std::int64_t i, std::int64_t j) { return (i * 7 + j * 3) % 5 < 2; }),
      [](std::int64_t i, std::int64_t j) { return (i * 7 + j * 3) % 5 < 2; });

  const Pattern random = random_pairs(n_q, n_k, std::min<std::int64_t>(n_k, 6), 11);
  add("random pairs", random, stored_predicate(random));

  // Documents of growing length over the rows; keys cut elsewhere, the first document without keys.
  std::vector<std::int64_t> query_offsets{0};
  std::vector<std::int64_t> key_offsets{0};
  for (std::int64_t length = 0; query_offsets.back() < n_q || key_offsets.back() < n_k; ++length) {
    const bool last = query_offsets.back() + length >= n_q;
    query_offsets.push_back(last ? n_q : query_offsets.back() + length);
    key_offsets.push_back(last ? n_k : std::min(n_k, key_offsets.back() + (length <= 1 ? 0 : length + 2)));
  }
  add("documents from offsets", documents_from_offsets(query_offsets, key_offsets),
      [=](std::int64_t i, std::int64_t j) {
        for (std::size_t k = 0; k + 1 < query_offsets.size(); ++k) {
          if (i >= query_offsets[k] && i < query_offsets[k + 1]) {
            return j >= key_offsets[k] && j < key_offsets[k + 1];
          }
        }
        return false;
      });

  // Padded lists: row i selects i % 4 tokens, one of them twice.
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < n_q; ++i) {
    for (std::int64_t k = 0; k < 5; ++k)
      tokens.push_back(k <= i % 4 && i % 4 > 0 && n_k > 0 ? (i * 5 + k % 3) % n_k : -1);
  }
  add("top-k tokens", top_k_tokens(tokens, n_q, 5, n_k), [=](std::int64_t i, std::int64_t j) {
    for (std::int64_t k = 0; k <= i % 4 && i % 4 > 0; ++k) {
      if ((i * 5 + k % 3) % n_k == j) return true;
    }
    return false;
  });
  const std::int64_t key_blocks = (n_k + 8) / 9;
  std::vector<std::int64_t> blocks;
  for (std::int64_t i = 0; i < (n_q + 6) / 7; ++i) {
    blocks.push_back(i % 3 == 1 || key_blocks == 0 ? -1 : (i * 2) % key_blocks);
    blocks.push_back(-1);
    blocks.push_back(i % 3 != 2 || key_blocks == 0 ? -1 : (i + 5) % key_blocks);
  }
  add("top-k blocks 7x9", top_k_blocks(blocks, n_q, n_k, 3, 7, 9), [=](std::int64_t i, std::int64_t j) {
    const std::int64_t panel = i / 7;
    return (panel % 3 != 1 && (panel * 2) % key_blocks == j / 9) ||
           (panel % 3 == 2 && (panel + 5) % key_blocks == j / 9);
  });

  add("csr", from_csr(csr_of(n_q, n_k, scattered)), scattered);
  add("csr without pairs", from_csr(csr_of(n_q, n_k, [](std::int64_t, std::int64_t) { return false; })),
      [](std::int64_t, std::int64_t) { return false; });
  add("bsr 5x50 with bits", from_bsr(bsr_of(n_q, n_k, 5, 50, scattered)), scattered);
  add("bsr 16x16 with bits", from_bsr(bsr_of(n_q, n_k, 16, 16, scattered)), scattered);
  const auto block_checks = [](std::int64_t i, std::int64_t j) { return (i / 4 + j / 6) % 3 == 0; };
  BsrPattern whole = bsr_of(n_q, n_k, 4, 6, block_checks);
  whole.bits.clear();
  add("bsr 4x6 without bits", from_bsr(std::move(whole)), block_checks);

  const auto is_causal = [=](std::int64_t i, std::int64_t j) { return j <= i + shift; };
  const auto in_window = [=](std::int64_t i, std::int64_t j) { return j >= i + shift - 20 && j <= i + shift; };
  const Pattern stored = from_csr(csr_of(n_q, n_k, scattered));
  add("window | leading tokens", window(n_q, n_k, 20, 0) | leading_tokens(n_q, n_k, 2),
      [=](std::int64_t i, std::int64_t j) { return in_window(i, j) || j < 2; });
  add("csr & causal", stored & causal(n_q, n_k),
      [=](std::int64_t i, std::int64_t j) { return scattered(i, j) && is_causal(i, j); });
  add("causal - csr", causal(n_q, n_k) - stored,
      [=](std::int64_t i, std::int64_t j) { return is_causal(i, j) && !scattered(i, j); });
  add("! full", !full(n_q, n_k), [](std::int64_t, std::int64_t) { return false; });
  add("three deep", !((window(n_q, n_k, 20, 0) | stored) & !(leading_tokens(n_q, n_k, 9) - stored)),
      [=](std::int64_t i, std::int64_t j) {
        return !((in_window(i, j) || scattered(i, j)) && !(j < 9 && !scattered(i, j)));
      });
}

inline void add_square_kinds(std::int64_t n, std::vector<SamplePattern>& samples) {
  const auto add = [&](std::string name, Pattern pattern, PairPredicate contains) {
    samples.push_back({std::move(name), std::move(pattern), std::move(contains)});
  };
  add("strided 8", strided(n, 8),
      [](std::int64_t i, std::int64_t j) { return j <= i && (i - j < 8 || (i - j) % 8 == 0); });
  add("fixed 9 2", fixed(n, 9, 2),
      [](std::int64_t i, std::int64_t j) { return j <= i && (j / 9 == i / 9 || j % 9 >= 7); });
  add("longformer 6 2", longformer(n, 6, 2),
      [](std::int64_t i, std::int64_t j) { return i < 2 || j < 2 || (j - i <= 6 && i - j <= 6); });
  add("prefix 11", prefix(n, 11), [](std::int64_t i, std::int64_t j) { return j <= i || j < 11; });

  std::vector<std::int32_t> verticals;
  std::vector<std::int32_t> slashes;
  std::vector<std::int32_t> globals;
  for (const std::int32_t k : {0, 1, 2, 7, 14, 40, 41, 90}) {
    if (k < n) slashes.push_back(k);
    if (k + 3 < n) verticals.push_back(k + 3);
    if (k > 0 && k < n) globals.push_back(k);
  }
  const auto among = [](const std::vector<std::int32_t>& list, std::int64_t value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  add("vertical-slash", vertical_slash(n, verticals, slashes),
      [=](std::int64_t i, std::int64_t j) { return j <= i && (among(verticals, j) || among(slashes, i - j)); });
  add("global tokens at positions", global_tokens(n, globals),
      [=](std::int64_t i, std::int64_t j) { return among(globals, i) || among(globals, j); });

  std::vector<std::int64_t> lengths{0};
  std::int64_t total = 0;
  for (std::int64_t k = 0; total < n; ++k) {
    const std::int64_t length = std::min(n - total, k % 3 == 1 ? std::int64_t{0} : 5 * k + 1);
    lengths.push_back(length);
    total += length;
  }
  add("documents", documents(lengths), [=](std::int64_t i, std::int64_t j) {
    std::int64_t start = 0;
    for (const std::int64_t length : lengths) {
      if (i >= start && i < start + length) return j >= start && j < start + length;
      start += length;
    }
    return false;
  });

  const Pattern bird = bigbird(n, 7, 3, 1, 2, 5);
  add("bigbird", bird, stored_predicate(bird));
  const Pattern blocks = random_blocks(n, 6, std::min<std::int64_t>(3, (n + 5) / 6), 3);
  add("random blocks", blocks, stored_predicate(blocks));
  const Pattern graph = power_law_graph(n, n > 8 ? 4.0 : 0.0, 9);
  add("power-law graph", graph, stored_predicate(graph));
}

}  // namespace detail

/// Every kind at n_q x n_k, among them patterns with empty rows, unattended keys, no pairs at all, and set operations.
/// Kinds that are always square come along when n_q == n_k.
inline std::vector<SamplePattern> named_sample_patterns(std::int64_t n_q, std::int64_t n_k) {
  std::vector<SamplePattern> samples;
  detail::add_rectangular_kinds(n_q, n_k, samples);
  if (n_q == n_k) detail::add_square_kinds(n_q, samples);
  return samples;
}

inline std::vector<Pattern> sample_patterns(std::int64_t n_q, std::int64_t n_k) {
  std::vector<Pattern> patterns;
  for (SamplePattern& sample : named_sample_patterns(n_q, n_k)) patterns.push_back(std::move(sample.pattern));
  return patterns;
}

}  // namespace cobble::test
