#include "check.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <type_traits>
#include <vector>

#include "progress.hpp"
#include "random.hpp"

namespace cobble::program {
namespace {

constexpr std::int64_t kSampledQueries = 64;
constexpr std::int64_t kSampledKeys = 16;
/// Below this share of its largest term a sum in double has cancelled: what is left is rounding.
constexpr double kCancelled = 1e-12;

/// Difference and scale of one tensor, over all heads.
struct Comparison {
  double largest_difference = 0;
  double largest_reference = 0;

  void merge(const Comparison& other) {
    largest_difference = std::max(largest_difference, other.largest_difference);
    largest_reference = std::max(largest_reference, other.largest_reference);
  }
  double relative(double largest_term) const {
    if (largest_difference == 0) return 0;
    const bool cancelled = largest_reference <= kCancelled * largest_term;
    return largest_difference / (cancelled ? largest_term : largest_reference);
  }
};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// `reference` has the rows of `tokens` only.
template <class T>
Comparison compare(const TensorView<const T>& actual, const Tensor<double>& reference,
                   const std::vector<std::int64_t>& tokens) {
  Comparison comparison;
  const TensorShape shape = reference.shape();
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    for (std::int64_t t = 0; t < shape.tokens; ++t) {
      for (std::int64_t f = 0; f < shape.features; ++f) {
        const double expected = reference(0, head, t, f);
        const double found = static_cast<double>(actual(0, head, tokens[static_cast<std::size_t>(t)], f));
        if (std::isfinite(expected))
          comparison.largest_reference = std::max(comparison.largest_reference, std::abs(expected));
        if (same(expected, found)) continue;
        const double difference = std::abs(expected - found);
        comparison.largest_difference = std::isfinite(difference) ? std::max(comparison.largest_difference, difference)
                                                                  : std::numeric_limits<double>::infinity();
      }
    }
  }
  return comparison;
}

/// The heads [head, head + heads) of one batch entry.
template <class T>
TensorView<const T> select_heads(const TensorView<const T>& tensor, std::int64_t batch, std::int64_t head,
                                 std::int64_t heads) {
  if (tensor.data() == nullptr) return tensor;
  TensorShape shape = tensor.shape();
  shape.batch = 1;
  shape.heads = heads;
  return {tensor.row(batch, head, 0), shape, tensor.strides()};
}

template <class T>
double largest_magnitude(const TensorView<const T>& tensor) {
  double largest = 0;
  const TensorShape& shape = tensor.shape();
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      for (std::int64_t t = 0; t < shape.tokens; ++t) {
        for (std::int64_t f = 0; f < shape.features; ++f) {
          const double magnitude = std::abs(static_cast<double>(tensor(b, h, t, f)));
          if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
        }
      }
    }
  }
  return largest;
}

}  // namespace

bool CheckResult::passed() const { return worst().relative <= tolerance; }

const TensorError& CheckResult::worst() const {
  return *std::max_element(errors.begin(), errors.end(),
                           [](const TensorError& a, const TensorError& b) { return a.relative < b.relative; });
}

template <class T>
double check_tolerance() {
  return std::is_same_v<T, double> ? 1e-12 : 2e-5;
}

template <class T>
CheckResult check_against_reference(const ReferenceProblem<T>& problem, const AttentionView<const T>& result,
                                    const GradientsView<const T>& gradients, std::uint64_t seed,
                                    std::int64_t full_check_tokens) {
  const std::int64_t rows = problem.patterns.rows();
  const std::int64_t columns = problem.patterns.columns();
  const bool sampled = std::max(rows, columns) > full_check_tokens;
  const ReferenceSample sample{sample_tokens(rows, sampled ? kSampledQueries : rows, seed),
                               sample_tokens(columns, sampled ? kSampledKeys : columns, seed + 1)};

  const std::int64_t batch = problem.query.shape().batch;
  const std::int64_t kv_heads = problem.key.shape().heads;
  const std::int64_t group = problem.query.shape().heads / kv_heads;
  std::array<Comparison, 5> comparisons;
  std::mutex mutex;
  Progress progress("checking against the reference", batch * kv_heads > 1 ? batch * kv_heads : 0);
  // One key/value head with its query heads is a problem of its own.
  tbb::parallel_for(std::int64_t{0}, batch * kv_heads, [&](std::int64_t index) {
    const std::int64_t b = index / kv_heads;
    const std::int64_t kv_head = index % kv_heads;
    const auto of_queries = [&](const TensorView<const T>& tensor) {
      return select_heads(tensor, b, kv_head * group, group);
    };
    const auto of_keys = [&](const TensorView<const T>& tensor) { return select_heads(tensor, b, kv_head, 1); };
    const ReferenceResult reference = reference_attention(
        ReferenceProblem<T>{problem.patterns, of_queries(problem.query), of_keys(problem.key), of_keys(problem.value),
                            of_queries(problem.grad_output), of_queries(problem.grad_lse), problem.scale},
        sampled ? std::optional(sample) : std::nullopt);
    const std::array<Comparison, 5> found = {
        compare(of_queries(result.output), reference.output, sample.query_tokens),
        compare(of_queries(result.lse), reference.lse, sample.query_tokens),
        compare(of_queries(gradients.query), reference.grad_query, sample.query_tokens),
        compare(of_keys(gradients.key), reference.grad_key, sample.key_tokens),
        compare(of_keys(gradients.value), reference.grad_value, sample.key_tokens)};
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < found.size(); ++i) comparisons[i].merge(found[i]);
    progress.advance();
  });

  const double scale =
      std::abs(problem.scale.value_or(1 / std::sqrt(static_cast<double>(problem.query.shape().features))));
  const double score_gradient = scale * largest_magnitude(problem.grad_output) * largest_magnitude(problem.value);
  CheckResult check;
  check.errors = {TensorError{"output", comparisons[0].relative(0)}, TensorError{"lse", comparisons[1].relative(1)},
                  TensorError{"grad_query", comparisons[2].relative(score_gradient * largest_magnitude(problem.key))},
                  TensorError{"grad_key", comparisons[3].relative(score_gradient * largest_magnitude(problem.query))},
                  TensorError{"grad_value", comparisons[4].relative(0)}};
  check.tolerance = check_tolerance<T>();
  check.query_tokens = static_cast<std::int64_t>(sample.query_tokens.size());
  check.key_tokens = static_cast<std::int64_t>(sample.key_tokens.size());
  return check;
}

template double check_tolerance<float>();
template double check_tolerance<double>();
template CheckResult check_against_reference(const ReferenceProblem<float>&, const AttentionView<const float>&,
                                             const GradientsView<const float>&, std::uint64_t, std::int64_t);
template CheckResult check_against_reference(const ReferenceProblem<double>&, const AttentionView<const double>&,
                                             const GradientsView<const double>&, std::uint64_t, std::int64_t);

}  // namespace cobble::program
