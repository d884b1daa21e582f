#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cobble/pattern.hpp"

// Attention does not care in which order tokens stand, tiles do. A Reordering says where every query and every key
// should stand so that pairs lie together in few, full tiles.

namespace cobble {

enum class ReorderMethod {
  automatic,          ///< identity, similarity, nested_dissection or amd: what fills tiles best
  identity,           ///< every token stays
  amd,                ///< approximate minimum degree (SuiteSparse)
  colamd,             ///< column approximate minimum degree: of A for the keys, of its transpose for the queries
  nested_dissection,  ///< by METIS
  similarity          ///< queries with similar keys side by side, and keys with similar queries
};
/// The enumerator's name.
std::string_view to_string(ReorderMethod method) noexcept;
/// The method of this name. Throws Error{invalid_argument} that lists the names.
ReorderMethod parse_reorder_method(std::string_view name);

/// Two permutations: query queries[i] of the caller is to stand at place i, and key keys[j] at place j.
struct Reordering {
  ReorderMethod method = ReorderMethod::identity;  ///< never automatic: the one that was chosen
  std::vector<std::int32_t> queries;
  std::vector<std::int32_t> keys;

  bool operator==(const Reordering&) const = default;
};

/// Throws Error{shape_mismatch} unless there are `rows` queries and `columns` keys, Error{invalid_structure} when one
/// of the two is no permutation, naming the first place that is wrong.
void validate(const Reordering& reordering, std::int64_t rows, std::int64_t columns);

/// The place at which each token stands: inverse[permutation[i]] = i. Throws Error{invalid_structure} when
/// `permutation` is none.
std::vector<std::int32_t> inverse_permutation(std::span<const std::int32_t> permutation);

/// The size of the tiles whose fill `automatic` compares.
inline constexpr std::int64_t kReorderTile = 64;

/// An order for the pattern's tokens. The same pattern gives the same order.
///
/// amd and nested_dissection order a graph. Where the pattern is square and at least half of its pairs (i, j) have
/// their mirror image (j, i), that is A + A^T, and both permutations are one; otherwise the graph whose nodes are
/// queries and keys, with an edge for each pair. These two and colamd are orderings for little fill-in of
/// factorisations: what they gain for tiles is a side effect, which automatic measures. It leaves out colamd, which
/// takes ten times as long as the others on irregular graphs. similarity is made for tiles: it groups rows by min-hash
/// (as in Jiang, Hong and Agrawal, PPoPP 2020), columns likewise, and orders the groups by Cuthill and McKee's
/// algorithm.
///
/// Takes O(pairs) memory, also for analytic patterns, except where automatic finds that tiles of kReorderTile are at
/// least 90 % full already. nested_dissection runs in one thread at a time, since METIS keeps the state of its random
/// numbers for the whole process. Throws Error{overflow} when memory is out.
Reordering reorder(const Pattern& pattern, ReorderMethod method = ReorderMethod::automatic);

/// The pattern in the new order: pair (i, j) of it is pair (queries[i], keys[j]) of `pattern`. CSR-backed, O(pairs)
/// time and memory. Throws what validate() throws.
Pattern permute(const Pattern& pattern, const Reordering& reordering);

/// Pairs over the area of all non-empty tiles of `tile` x `tile`, ragged ones clipped; 0 without any.
double tile_fill(const Pattern& pattern, std::int64_t tile);

}  // namespace cobble
