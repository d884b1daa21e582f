#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cobble/pattern.hpp"
#include "cobble/tensor.hpp"

// What may be put into a score besides scale <q_i, k_j>:
//
//   s_ij = softcap(scale <q_i, k_j>) + bias_ij - slope_h |position_i - j|      softcap(x) = c tanh(x / c)
//   lse_i = log(sum_j exp(s_ij) + exp(sink_h))
//
// All terms are off by default and cost nothing then.

namespace cobble {

/// Values added to scores, stored on a sparse structure. A pair of the attention pattern that the structure does not
/// store has the bias 0; a stored value outside the attention pattern is ignored, whatever it is, and has the gradient
/// 0. A bias of -infinity removes its pair, whatever the tokens hold: no part in lse and output, all gradients 0; a
/// row whose pairs are all removed is an empty row. Any other value, NaN included, follows IEEE arithmetic.
template <class T>
struct ScoreBias {
  /// Where values stand: n_q x n_k, a pattern that is held as a matrix (from_csr, from_bsr, read_pattern and others)
  /// and was therefore validated once; it may be the attention pattern itself. Blocks must have no bits.
  Pattern structure;
  /// (1 or batch) x (1 or H_q) x 1 x bias_values(structure), an axis of 1 being shared by all; the values of one
  /// matrix are contiguous, in the order in which its storage keeps them. No data: off.
  TensorView<const T> values;
};

/// The number of values that a bias on this structure has: the entries of a CSR matrix; the blocks of a BSR matrix
/// times their area, as the padding of ragged blocks is stored (and ignored). Throws Error{invalid_argument} for a
/// pattern that is not held as a matrix, or as one of blocks with bits.
std::int64_t bias_values(const Pattern& structure);

/// T is the type of the tensors.
template <class T>
struct ScoreTerms {
  double softcap = 0;  ///< c > 0; 0: off
  ScoreBias<T> bias = {};
  /// ALiBi (arXiv 2108.12409): one slope for each of the H_q query heads; empty: off. Queries are aligned at the end,
  /// as those of causal() are: position_i = i + n_k - n_q.
  std::span<const double> alibi_slopes = {};
  /// One learned score for each of the H_q query heads that takes part in every row's softmax and has no value; empty:
  /// off. A row without pairs then has output 0 and lse = sink_h. A sink of -infinity is as good as none.
  std::span<const T> sinks = {};
};

/// The slopes of the ALiBi paper for a power of two of heads, 2^(-8 (h + 1) / heads) for head h, which also serve any
/// other number. Throws Error{invalid_argument} when heads is negative.
std::vector<double> alibi_slopes(std::int64_t heads);

}  // namespace cobble
