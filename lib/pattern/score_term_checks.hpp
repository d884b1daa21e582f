#pragma once

#include <cstdint>

#include "cobble/score_terms.hpp"

namespace cobble::detail {

/// The sizes of a problem that its score terms have to fit.
struct TermSizes {
  std::int64_t batch;
  std::int64_t query_heads;
  std::int64_t query_tokens;
  std::int64_t key_tokens;
};

template <class T>
bool has_bias(const ScoreTerms<T>& terms) {
  return terms.bias.values.data() != nullptr || terms.bias.values.shape() != TensorShape{};
}

/// Whether any term is on.
template <class T>
bool has_terms(const ScoreTerms<T>& terms) {
  return terms.softcap != 0 || has_bias(terms) || !terms.alibi_slopes.empty() || !terms.sinks.empty();
}

/// Throws Error{invalid_argument, shape_mismatch} that names the term. O(heads): structures were validated when they
/// were made.
template <class T>
void validate(const ScoreTerms<T>& terms, const TermSizes& sizes);

}  // namespace cobble::detail
