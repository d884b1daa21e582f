#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cobble/bsr.hpp"
#include "cobble/csr.hpp"

// What may attend to what: a Pattern is a set of pairs (query row, key column).

namespace cobble {

/// A run of consecutive columns [begin, end) of one row, all in the pattern. Not empty.
struct ColumnRun {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  bool operator==(const ColumnRun&) const = default;
};

enum class TileKind : std::uint8_t { empty, full, partial };

/// One non-empty tile of a row panel: the column panel's number and the pairs inside.
struct PatternTile {
  std::int32_t column_panel = 0;
  TileKind kind = TileKind::partial;
  std::int64_t pairs = 0;

  bool operator==(const PatternTile&) const = default;
};

namespace detail {
class PatternNode;
}

/// An immutable set of pairs. Cheap to copy, safe to share between threads. Analytic kinds answer by arithmetic,
/// stored ones from their arrays, set operations from their parts: nothing is ever expanded to rows x columns.
///
/// Functions that take rows or columns throw Error{invalid_argument} when these are out of range.
class Pattern {
 public:
  /// The empty pattern of no rows and no columns.
  Pattern();
  explicit Pattern(std::shared_ptr<const detail::PatternNode> node);

  std::int64_t rows() const noexcept;
  std::int64_t columns() const noexcept;
  /// The number of pairs, Z_QK; exact. O(1) for most kinds, otherwise by walking the rows' runs.
  std::int64_t pairs() const;
  /// The number of pairs in rows [row_begin, row_end).
  std::int64_t pairs(std::int64_t row_begin, std::int64_t row_end) const;
  bool contains(std::int64_t row, std::int64_t column) const;

  /// Appends to `runs` the maximal runs of `row` within columns [column_begin, column_end): sorted, disjoint, with a
  /// gap between each two.
  void append_runs(std::int64_t row, std::int64_t column_begin, std::int64_t column_end,
                   std::vector<ColumnRun>& runs) const;
  /// The pairs of `row` in columns [column, column + 64): bit k stands for column + k. Columns beyond the end are 0.
  std::uint64_t bits(std::int64_t row, std::int64_t column) const;
  /// Replaces `tiles` by the non-empty tiles of rows [row_begin, row_end) cut into column panels of
  /// `column_panel` columns, in ascending order, classified exactly. A ragged last tile is full when all its pairs
  /// inside the matrix are there. Memory O(tiles).
  void tiles(std::int64_t row_begin, std::int64_t row_end, std::int64_t column_panel,
             std::vector<PatternTile>& tiles) const;

  /// An expression for messages, e.g. "window(16384,512,0) | leading_tokens(16384,64)".
  std::string describe() const;
  /// The pattern in compressed rows. O(pairs) memory.
  CsrPattern to_csr() const;
  /// The pattern in blocks (with bits where a block is not whole). O(stored blocks) memory.
  BsrPattern to_bsr(std::int32_t block_rows, std::int32_t block_columns) const;

  const detail::PatternNode& node() const noexcept { return *node_; }

  /// Set operations. Both sides have the same rows and columns, else Error{shape_mismatch}. More than 1000 on top of
  /// one another are refused with Error{unsupported}: each question descends through all of them.
  friend Pattern operator|(const Pattern& a, const Pattern& b);
  friend Pattern operator&(const Pattern& a, const Pattern& b);
  friend Pattern operator-(const Pattern& a, const Pattern& b);
  /// All pairs that are not in `a`.
  friend Pattern operator!(const Pattern& a);

 private:
  std::shared_ptr<const detail::PatternNode> node_;
};

// Kinds. n_q is the number of query rows, n_k of key columns; the one-size forms are square. Sizes lie in
// [0, 2^31 - 1]; all throw Error{invalid_argument, overflow} on bad sizes, naming the argument.
// In kinds that relate positions, rectangular forms are aligned at the bottom right: query i stands at key position
// i + n_k - n_q (the last query sees the last key), as in decoding with a key/value cache. Counts and distances may
// reach beyond the matrix: window(16, 100, 0) is causal(16).

Pattern full(std::int64_t n);
Pattern full(std::int64_t n_q, std::int64_t n_k);

/// Key j <= position of i.
Pattern causal(std::int64_t n);
Pattern causal(std::int64_t n_q, std::int64_t n_k);

/// position - left <= j <= position + right. left, right >= 0.
Pattern window(std::int64_t n, std::int64_t left, std::int64_t right);
Pattern window(std::int64_t n_q, std::int64_t n_k, std::int64_t left, std::int64_t right);

/// Symmetric dilated window: j = position + t * step for |t| <= window. window >= 0, step >= 1. (Longformer,
/// section 3.)
Pattern dilated(std::int64_t n, std::int64_t window, std::int64_t step);
Pattern dilated(std::int64_t n_q, std::int64_t n_k, std::int64_t window, std::int64_t step);

/// Sparse Transformer, strided (arXiv 1904.10509, section 4.3): j <= i and (i - j < stride or (i - j) % stride == 0).
Pattern strided(std::int64_t n, std::int64_t stride);
/// Sparse Transformer, fixed: j <= i and (j / stride == i / stride or j % stride >= stride - summary).
Pattern fixed(std::int64_t n, std::int64_t stride, std::int64_t summary);

/// Global tokens: pairs with row < count or column < count (the tokens see all and are seen by all).
Pattern global_tokens(std::int64_t n, std::int64_t count);
Pattern global_tokens(std::int64_t n_q, std::int64_t n_k, std::int64_t count);
/// Global tokens at the given, sorted distinct positions of a square pattern.
Pattern global_tokens(std::int64_t n, std::vector<std::int32_t> positions);

/// Leading tokens ("sinks") that all attend to: column < count.
Pattern leading_tokens(std::int64_t n, std::int64_t count);
Pattern leading_tokens(std::int64_t n_q, std::int64_t n_k, std::int64_t count);

/// Longformer: window of `window` to either side, plus the first `globals` tokens as global ones.
Pattern longformer(std::int64_t n, std::int64_t window, std::int64_t globals);

/// BigBird over blocks (arXiv 2007.14062): window of `window_blocks` blocks centred on the diagonal (odd), the first
/// `global_blocks` block rows and columns, and `random_blocks` further random blocks a row (or as many as are left),
/// seeded.
Pattern bigbird(std::int64_t n, std::int64_t block, std::int64_t window_blocks, std::int64_t global_blocks,
                std::int64_t random_blocks, std::uint64_t seed = 0);

/// Documents of the given lengths, one after another: tokens attend within their document.
Pattern documents(std::span<const std::int64_t> lengths);
/// The same from cumulative lengths (first 0, never decreasing), as packed batches carry them: query and key offsets.
Pattern documents_from_offsets(std::span<const std::int64_t> query_offsets, std::span<const std::int64_t> key_offsets);

/// Prefix-LM: causal, and the first `prefix` keys are seen by all.
Pattern prefix(std::int64_t n, std::int64_t prefix);

/// Vertical-slash: causal pairs whose column is in `verticals` or whose distance i - j is in `slashes`. Both sorted,
/// distinct, in [0, n).
Pattern vertical_slash(std::int64_t n, std::vector<std::int32_t> verticals, std::vector<std::int32_t> slashes);

/// Row-wise lists of selected tokens: `indices` is rows x per_row in C order, -1 is padding, anything else must lie in
/// [0, columns). Duplicates in a row are merged.
Pattern top_k_tokens(std::span<const std::int64_t> indices, std::int64_t rows, std::int64_t per_row,
                     std::int64_t columns);
/// Lists of selected key blocks for each block of query rows, padded with -1.
Pattern top_k_blocks(std::span<const std::int64_t> indices, std::int64_t n_q, std::int64_t n_k, std::int64_t per_row,
                     std::int32_t block_rows, std::int32_t block_columns);

/// `per_row` random distinct key blocks for each block row, seeded. At most as many as there are.
Pattern random_blocks(std::int64_t n, std::int64_t block, std::int64_t per_row, std::uint64_t seed = 0);
/// `per_row` random distinct keys for each row, seeded. At most n_k.
Pattern random_pairs(std::int64_t n_q, std::int64_t n_k, std::int64_t per_row, std::uint64_t seed = 0);
/// A symmetric random graph without self-loops whose degrees follow a power law (exponent 2.5), seeded; about
/// n * mean_degree pairs (fewer in small dense graphs, where drawing more finds no new pair). mean_degree <= n - 1.
Pattern power_law_graph(std::int64_t n, double mean_degree, std::uint64_t seed = 0);

/// Stored patterns. The matrix is validated and taken over.
Pattern from_csr(CsrPattern matrix);
Pattern from_bsr(BsrPattern matrix);

/// All pairs for which `predicate(row, column)` holds, evaluated whenever the pattern is asked: a row costs `columns`
/// calls. The function must be pure and safe to call from several threads.
Pattern from_predicate(std::int64_t n_q, std::int64_t n_k, std::function<bool(std::int64_t, std::int64_t)> predicate,
                       std::string name = "predicate");

/// Builds a pattern from an expression such as "window(16384,512,0) | leading_tokens(16384,64)": calls of the kinds
/// above by name (`blocks`, `random`, `graph` for the random ones, `documents(l1,l2,...)`), joined by & | - (& binds
/// tighter than | and -, which associate to the left), prefixed by !, with parentheses (at most 200 deep). `n_q x n_k`
/// stands for n where a kind can be rectangular ("causal(128x4096)", "documents(16x16,16x64)"); lists of positions
/// stand in brackets ("vertical_slash(4096,[0,1,9],[0,128])"). Random kinds take an optional last seed argument; `seed`
/// is the default. Throws Error{invalid_argument} that says in which column and what was expected. Reads back what
/// describe() says, but for stored patterns, predicates, and lists of more than 64 numbers.
Pattern parse_pattern(std::string_view expression, std::uint64_t seed = 0);

}  // namespace cobble
