#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/conversions.hpp"
#include "attention/scratch_pool.hpp"
#include "cobble/score_terms.hpp"
#include "cobble/tensor.hpp"
#include "core/checked.hpp"
#include "core/parallel_for.hpp"
#include "pattern/score_term_checks.hpp"

// What a pass computes with instead of the caller's tensors where those hold halves.

namespace cobble::detail {

/// Converts a tensor into another of the same shape.
template <class From, class To>
void convert(const TensorView<From>& from, const TensorView<To>& to) {
  constexpr std::int64_t kElements = 1 << 14;  // of a task
  const TensorShape& shape = from.shape();
  if (shape.size() == 0) return;
  // Parts of either axis: a bias has one token with very many features.
  const std::int64_t tokens = std::max<std::int64_t>(1, kElements / shape.features);
  const std::int64_t token_parts = divide_up(shape.tokens, tokens);
  const std::int64_t feature_parts = divide_up(shape.features, kElements);
  parallel_for(shape.batch * shape.heads * token_parts * feature_parts, [&](std::int64_t task) {
    const std::int64_t feature = task % feature_parts * kElements;
    const std::int64_t first = task / feature_parts % token_parts * tokens;
    const std::int64_t matrix = task / feature_parts / token_parts;
    const std::int64_t batch = matrix / shape.heads;
    const std::int64_t head = matrix % shape.heads;
    for (std::int64_t token = first; token < std::min(first + tokens, shape.tokens); ++token) {
      convert(std::min(kElements, shape.features - feature), &from(batch, head, token, feature),
              from.strides().features, &to(batch, head, token, feature), to.strides().features);
    }
  });
}

/// A gradient that tasks add to, in the type that is computed in: the caller's memory or, for halves, memory of the
/// pass.
template <class Storage>
class GradientSums {
 public:
  using T = ComputeType<Storage>;

  GradientSums(const TensorView<Storage>& gradient, ScratchPool& pool)
      : gradient_(gradient), memory_(pool.lend<T>(kIsHalf<Storage> && is_wanted() ? gradient.shape().size() : 0)) {}

  bool is_wanted() const noexcept { return gradient_.data() != nullptr; }
  TensorView<T> view() {
    if constexpr (kIsHalf<Storage>) {
      return is_wanted() ? TensorView<T>(memory_.template as<T>(), gradient_.shape()) : TensorView<T>();
    } else {
      return gradient_;
    }
  }
  /// Rounds the sums into the caller's memory.
  void finish() {
    if constexpr (kIsHalf<Storage>) {
      if (is_wanted()) convert(view(), gradient_);
    }
  }

 private:
  TensorView<Storage> gradient_;
  ScratchPool::Lease memory_;
};

/// Score terms whose values have the type that is computed in. Those of halves are copied.
template <class Storage>
class ComputeTerms {
 public:
  using T = ComputeType<Storage>;

  ComputeTerms(const ScoreTerms<Storage>& terms, ScratchPool& pool)
      : bias_(pool.lend<T>(kIsHalf<Storage> && has_bias(terms) ? terms.bias.values.shape().size() : 0)) {
    if constexpr (kIsHalf<Storage>) {
      terms_.softcap = terms.softcap;
      terms_.alibi_slopes = terms.alibi_slopes;
      for (const Storage sink : terms.sinks) sinks_.push_back(static_cast<T>(sink));
      terms_.sinks = sinks_;
      if (!has_bias(terms)) return;
      const TensorView<T> values(bias_.template as<T>(), terms.bias.values.shape());
      convert(terms.bias.values, values);
      terms_.bias = {terms.bias.structure, values};
    } else {
      terms_ = terms;
    }
  }
  ComputeTerms(ComputeTerms&&) = delete;
  ComputeTerms& operator=(ComputeTerms&&) = delete;
  ~ComputeTerms() = default;

  const ScoreTerms<T>& terms() const noexcept { return terms_; }

 private:
  ScratchPool::Lease bias_;
  std::vector<T> sinks_;
  ScoreTerms<T> terms_;
};

}  // namespace cobble::detail
