#pragma once

#include <cstdint>
#include <string_view>

// The I/O model of attention: two levels of memory, the fast one of M words, the slow one without limit; an I/O for
// each word that moves between them. Theorems are those of "On Fine-Grained I/O Complexity of Attention Backward
// Passes", arXiv 2410.09397; lib/model/README.md derives what follows from them. All sizes are of one head. A count of
// traffic is a double, because products of sizes pass 2^63, and a bound leaves out the constant that its theorem leaves
// open.

namespace cobble {

/// The sizes of one head that the model looks at. Every member is at least 0.
struct AttentionSize {
  std::int64_t queries = 0;    ///< n_q
  std::int64_t keys = 0;       ///< n_k
  std::int64_t pairs = 0;      ///< Z_QK, at most n_q n_k
  std::int64_t head_dim = 0;   ///< d
  std::int64_t value_dim = 0;  ///< d_v
};

/// Z_input of dense inputs: the largest of n_q d, n_k d and n_k d_v. With compressed inputs take the largest nnz.
double input_words(const AttentionSize& size) noexcept;

/// rho = Z_QK / (n_q n_k), 0 where a side is empty.
double density(const AttentionSize& size) noexcept;

/// Which side of the split point M* fast memory lies on.
enum class Regime { small_fast_memory, large_fast_memory };
std::string_view to_string(Regime regime) noexcept;

/// M* = Z_input^2 / Z_QK in words (theorem 4.5), infinite when the pattern is empty. Throws Error{invalid_argument} for
/// a negative or undefined size.
double split_point(double z_input, double z_qk);

/// M* = d^2 in words (theorem 1.1). The same as split_point(n d, n^2).
double dense_split_point(double head_dim);

/// Large from M = M* on, where it costs no more to recompute scores than to store them. Throws Error{invalid_argument}
/// for M < 1.
Regime regime(std::int64_t fast_memory_words, double split_point);

/// The two sides of theorem 4.5, in words, each at any M:
///   large fast memory   Z_input^2 / M                        = Z_QK (M* / M)
///   small fast memory   Z_input sqrt(Z_QK) / sqrt(M)         = Z_QK sqrt(M* / M)
/// They are computed from the right-hand forms, so at M = M* they are the same number bit for bit, Z_QK.
double sparse_bound_large(double z_input, double z_qk, double fast_memory_words);
double sparse_bound_small(double z_input, double z_qk, double fast_memory_words);
/// The side that the regime picks. Worst case over all patterns with these counts; 0 for an empty pattern.
double sparse_bound(double z_input, double z_qk, std::int64_t fast_memory_words);

/// The two sides of theorem 1.1, in words, for the gradient with respect to the weights of full n x n attention:
///   large fast memory   (n^2 d^2 + n d^3) / M                = n (n + d) (M* / M)
///   small fast memory   (n^2 d + n d^2) / sqrt(M)            = n (n + d) sqrt(M* / M)
double dense_bound_large(double tokens, double head_dim, double fast_memory_words);
double dense_bound_small(double tokens, double head_dim, double fast_memory_words);
double dense_bound(double tokens, double head_dim, std::int64_t fast_memory_words);

/// What the products with d x d weights add (the second terms of theorem 1.1): n d^3 / M from M = d^2 on, where the
/// weights fit fast memory, n d^2 / sqrt(M) below.
double weight_product_bound(double tokens, double head_dim, std::int64_t fast_memory_words);

/// Theorem 4.5 for forward and backward, which start from Q, K and V: the products with the weights are not part of
/// them.
double attention_bound(const AttentionSize& size, std::int64_t fast_memory_words);
/// attention_bound and the products with the weights at n = max(n_q, n_k); theorem 1.1 when the pattern is full and
/// square.
double parameter_gradients_bound(const AttentionSize& size, std::int64_t fast_memory_words);

/// Compulsory traffic in words: each input read once, each output written once. No schedule does with less for a
/// pattern in which every query and every key takes part.
///   forward               reads Q, K, V; writes O and LSE
///   backward              reads Q, K, V, O, dO, LSE, and dLSE where given; writes dQ, dK, dV
///   parameter gradients   reads A1 (n_q x d), A2 and A3 (n_k x d), X (d x d), Y (d x d_v), dO; writes dX, dY
double forward_compulsory(const AttentionSize& size) noexcept;
double backward_compulsory(const AttentionSize& size, bool lse_gradient = false) noexcept;
double parameter_gradients_compulsory(const AttentionSize& size) noexcept;

/// A floor of traffic: the larger of what a theorem and what compulsory traffic demand.
struct TrafficBound {
  double theorem = 0;
  double compulsory = 0;

  double words() const noexcept { return theorem > compulsory ? theorem : compulsory; }
  bool theorem_binds() const noexcept { return theorem > compulsory; }
};
TrafficBound forward_bound(const AttentionSize& size, std::int64_t fast_memory_words);
TrafficBound backward_bound(const AttentionSize& size, std::int64_t fast_memory_words, bool lse_gradient = false);

}  // namespace cobble
