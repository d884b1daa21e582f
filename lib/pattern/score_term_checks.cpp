#include "pattern/score_term_checks.hpp"

#include <cmath>
#include <string>

#include "cobble/half.hpp"
#include "core/checked.hpp"
#include "pattern/stored_values.hpp"

namespace cobble::detail {
namespace {

void require_per_head(std::size_t found, std::int64_t heads, const char* name) {
  if (found == 0 || static_cast<std::int64_t>(found) == heads) return;
  throw Error(ErrorCode::shape_mismatch, std::string(name) + " has " + std::to_string(found) +
                                             " entries, expected one for each of " + std::to_string(heads) +
                                             " query heads");
}

bool is_one_or(std::int64_t found, std::int64_t expected) { return found == 1 || found == expected; }

template <class T>
void validate_bias(const ScoreBias<T>& bias, const TermSizes& sizes) {
  const StoredValues stored(bias.structure, "bias.structure");
  if (bias.structure.rows() != sizes.query_tokens || bias.structure.columns() != sizes.key_tokens) {
    throw Error(ErrorCode::shape_mismatch, "bias.structure is " + std::to_string(bias.structure.rows()) + " x " +
                                               std::to_string(bias.structure.columns()) + ", expected " +
                                               std::to_string(sizes.query_tokens) + " x " +
                                               std::to_string(sizes.key_tokens) + " (query tokens x key tokens)");
  }
  const TensorShape& shape = bias.values.shape();
  if (!is_one_or(shape.batch, sizes.batch) || !is_one_or(shape.heads, sizes.query_heads) || shape.tokens != 1 ||
      shape.features != stored.size()) {
    throw Error(ErrorCode::shape_mismatch,
                "bias.values is " + std::to_string(shape.batch) + " x " + std::to_string(shape.heads) + " x " +
                    std::to_string(shape.tokens) + " x " + std::to_string(shape.features) + ", expected 1 or " +
                    std::to_string(sizes.batch) + " x 1 or " + std::to_string(sizes.query_heads) + " x 1 x " +
                    std::to_string(stored.size()) + " (batch x query heads x 1 x stored values)");
  }
  if (shape.size() > 0 && bias.values.data() == nullptr) {
    throw Error(ErrorCode::invalid_argument, "bias.values has no data");
  }
  if (bias.values.strides().features != 1 && stored.size() > 1) {
    throw Error(ErrorCode::invalid_argument, "bias.values has a stride of " +
                                                 std::to_string(bias.values.strides().features) +
                                                 " between the values of a matrix, expected 1");
  }
}

}  // namespace

template <class T>
void validate(const ScoreTerms<T>& terms, const TermSizes& sizes) {
  if (!(terms.softcap >= 0) || !std::isfinite(terms.softcap)) {
    throw Error(ErrorCode::invalid_argument,
                "softcap = " + std::to_string(terms.softcap) + ", expected a positive finite number, or 0 for none");
  }
  if (has_bias(terms)) validate_bias(terms.bias, sizes);
  require_per_head(terms.alibi_slopes.size(), sizes.query_heads, "alibi_slopes");
  for (std::size_t head = 0; head < terms.alibi_slopes.size(); ++head) {
    if (std::isfinite(terms.alibi_slopes[head])) continue;
    throw Error(ErrorCode::invalid_argument, "alibi_slopes[" + std::to_string(head) +
                                                 "] = " + std::to_string(terms.alibi_slopes[head]) +
                                                 ", expected a finite number");
  }
  require_per_head(terms.sinks.size(), sizes.query_heads, "sinks");
}

template void validate(const ScoreTerms<float>&, const TermSizes&);
template void validate(const ScoreTerms<double>&, const TermSizes&);
template void validate(const ScoreTerms<bfloat16>&, const TermSizes&);
template void validate(const ScoreTerms<float16>&, const TermSizes&);

}  // namespace cobble::detail
