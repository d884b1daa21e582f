#include "check.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <type_traits>
#include <vector>

#include "cobble/half.hpp"
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
  void add(double expected, double found) {
    if (std::isfinite(expected)) largest_reference = std::max(largest_reference, std::abs(expected));
    if (expected == found || (std::isnan(expected) && std::isnan(found))) return;
    const double difference = std::abs(expected - found);
    largest_difference =
        std::isfinite(difference) ? std::max(largest_difference, difference) : std::numeric_limits<double>::infinity();
  }
  void merge(const Comparison& other) {
    largest_difference = std::max(largest_difference, other.largest_difference);
    largest_reference = std::max(largest_reference, other.largest_reference);
  }
  double relative(double largest_term) const {
    if (largest_difference == 0) return 0;
    const bool cancelled = largest_reference <= kCancelled * largest_term;
    return largest_difference / (cancelled ? largest_term : largest_reference);
  }

  double largest_difference = 0;
  double largest_reference = 0;
};

/// `reference` has the rows of `tokens` only.
template <class T>
Comparison compare(const TensorView<const T>& actual, const Tensor<double>& reference,
                   const std::vector<std::int64_t>& tokens) {
  Comparison comparison;
  const TensorShape shape = reference.shape();
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    for (std::int64_t t = 0; t < shape.tokens; ++t) {
      for (std::int64_t f = 0; f < shape.features; ++f) {
        comparison.add(reference(0, head, t, f),
                       static_cast<double>(actual(0, head, tokens[static_cast<std::size_t>(t)], f)));
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

/// Axis `size` of something that may be shared: where entries [first, first + count) of `all` stand in it.
struct SharedAxis {
  std::int64_t first;
  std::int64_t count;

  SharedAxis(std::int64_t size, std::int64_t all_first, std::int64_t all_count)
      : first(size == 1 ? 0 : all_first), count(size == 1 ? 1 : all_count) {}
};

/// The terms of some heads of a batch entry.
template <class T>
ScoreTerms<T> select_heads(const ScoreTerms<T>& terms, std::int64_t batch, std::int64_t head, std::int64_t heads) {
  ScoreTerms<T> selected = terms;
  const auto first = static_cast<std::size_t>(head);
  const auto count = static_cast<std::size_t>(heads);
  if (!terms.alibi_slopes.empty()) selected.alibi_slopes = terms.alibi_slopes.subspan(first, count);
  if (!terms.sinks.empty()) selected.sinks = terms.sinks.subspan(first, count);
  const TensorShape& shape = terms.bias.values.shape();
  const SharedAxis of_batch(shape.batch, batch, 1);
  const SharedAxis of_heads(shape.heads, head, heads);
  selected.bias.values = select_heads(terms.bias.values, of_batch.first, of_heads.first, of_heads.count);
  return selected;
}

/// The gradient of a bias and the places of it that are compared.
class BiasCheck {
 public:
  template <class T>
  BiasCheck(const ScoreTerms<T>& terms, const std::vector<std::int64_t>& query_tokens)
      : reference_(terms.bias.values.shape()) {
    std::fill(reference_.values().begin(), reference_.values().end(), 0.0);
    const CsrPattern rows = terms.bias.structure.to_csr();
    for (const std::int64_t token : query_tokens) {
      const auto row = static_cast<std::size_t>(token);
      for (std::int64_t place = rows.row_offsets[row]; place < rows.row_offsets[row + 1]; ++place) {
        places_.push_back(place);
      }
    }
  }

  /// Adds the share of some heads of a batch entry.
  void add(const Tensor<double>& share, std::int64_t batch, std::int64_t head, std::int64_t heads) {
    const SharedAxis of_batch(reference_.shape().batch, batch, 1);
    const SharedAxis of_heads(reference_.shape().heads, head, heads);
    for (std::int64_t h = 0; h < of_heads.count; ++h) {
      for (const std::int64_t place : places_) {
        reference_(of_batch.first, of_heads.first + h, 0, place) += share(0, h, 0, place);
      }
    }
  }

  template <class T>
  Comparison compare(const TensorView<const T>& actual) const {
    Comparison comparison;
    const TensorShape& shape = reference_.shape();
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        for (const std::int64_t place : places_) {
          comparison.add(reference_(b, h, 0, place), static_cast<double>(actual(b, h, 0, place)));
        }
      }
    }
    return comparison;
  }

 private:
  Tensor<double> reference_;
  std::vector<std::int64_t> places_;
};

/// -sum_i p_sink (<do_i, o_i> - dlse_i) for one query head, from the results that are checked on their own.
template <class T>
double sink_gradient(const ReferenceProblem<T>& problem, const AttentionView<const T>& result, std::int64_t batch,
                     std::int64_t head) {
  const double sink = static_cast<double>(problem.terms.sinks[static_cast<std::size_t>(head)]);
  double gradient = 0;
  for (std::int64_t i = 0; i < problem.patterns.rows(); ++i) {
    const double p = std::exp(sink - static_cast<double>(result.lse(batch, head, i, 0)));
    if (p == 0) continue;
    double delta = 0;
    for (std::int64_t f = 0; f < result.output.shape().features; ++f) {
      const double output = static_cast<double>(result.output(batch, head, i, f));
      if (output != 0) delta += output * static_cast<double>(problem.grad_output(batch, head, i, f));
    }
    if (problem.grad_lse.data() != nullptr) delta -= static_cast<double>(problem.grad_lse(batch, head, i, 0));
    gradient -= p * delta;
  }
  return gradient;
}

}  // namespace

bool CheckResult::passed() const { return worst().relative <= tolerance; }

const TensorError& CheckResult::worst() const {
  return *std::max_element(errors.begin(), errors.end(),
                           [](const TensorError& a, const TensorError& b) { return a.relative < b.relative; });
}

template <class T>
double check_tolerance() {
  constexpr double kFloat = 2e-5;
  if (std::is_same_v<T, double>) return 1e-12;
  if (std::is_same_v<T, float>) return kFloat;
  return kFloat + 4 * std::ldexp(1, -std::numeric_limits<T>::digits);
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
  std::optional<BiasCheck> bias;
  if (gradients.bias.data() != nullptr) bias.emplace(problem.terms, sample.query_tokens);
  std::vector<double> sinks(gradients.sinks.size());
  std::mutex mutex;
  Progress progress("checking against the reference", batch * kv_heads > 1 ? batch * kv_heads : 0);
  // One key/value head with its query heads is a problem of its own.
  tbb::parallel_for(std::int64_t{0}, batch * kv_heads, [&](std::int64_t index) {
    const std::int64_t b = index / kv_heads;
    const std::int64_t kv_head = index % kv_heads;
    const auto of_queries = [&](const auto& tensor) { return select_heads(tensor, b, kv_head * group, group); };
    const auto of_keys = [&](const TensorView<const T>& tensor) { return select_heads(tensor, b, kv_head, 1); };
    const ReferenceResult reference =
        reference_attention(ReferenceProblem<T>{problem.patterns, of_queries(problem.query), of_keys(problem.key),
                                                of_keys(problem.value), of_queries(problem.grad_output),
                                                of_queries(problem.grad_lse), problem.scale, of_queries(problem.terms)},
                            sampled ? std::optional(sample) : std::nullopt);
    const std::array<Comparison, 5> found = {
        compare(of_queries(result.output), reference.output, sample.query_tokens),
        compare(of_queries(result.lse), reference.lse, sample.query_tokens),
        compare(of_queries(gradients.query), reference.grad_query, sample.query_tokens),
        compare(of_keys(gradients.key), reference.grad_key, sample.key_tokens),
        compare(of_keys(gradients.value), reference.grad_value, sample.key_tokens)};
    std::vector<double> sink_shares;
    for (std::int64_t head = 0; head < group && !sinks.empty(); ++head) {
      sink_shares.push_back(sampled ? sink_gradient(problem, result, b, kv_head * group + head)
                                    : reference.grad_sinks(0, head, 0, 0));
    }
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < found.size(); ++i) comparisons[i].merge(found[i]);
    if (bias) bias->add(reference.grad_bias, b, kv_head * group, group);
    for (std::size_t head = 0; head < sink_shares.size(); ++head) {
      sinks[static_cast<std::size_t>(kv_head * group) + head] += sink_shares[head];
    }
    progress.advance();
  });

  const double scale =
      std::abs(problem.scale.value_or(1 / std::sqrt(static_cast<double>(problem.query.shape().features))));
  const double bias_gradient = largest_magnitude(problem.grad_output) * largest_magnitude(problem.value);
  const double score_gradient = scale * bias_gradient;
  CheckResult check;
  check.errors = {TensorError{"output", comparisons[0].relative(0)}, TensorError{"lse", comparisons[1].relative(1)},
                  TensorError{"grad_query", comparisons[2].relative(score_gradient * largest_magnitude(problem.key))},
                  TensorError{"grad_key", comparisons[3].relative(score_gradient * largest_magnitude(problem.query))},
                  TensorError{"grad_value", comparisons[4].relative(0)}};
  if (bias) check.errors.push_back({"grad_bias", bias->compare(gradients.bias).relative(bias_gradient)});
  if (!sinks.empty()) {
    Comparison comparison;
    for (std::size_t head = 0; head < sinks.size(); ++head) {
      comparison.add(sinks[head], static_cast<double>(gradients.sinks[head]));
    }
    check.errors.push_back({"grad_sinks", comparison.relative(bias_gradient)});
  }
  check.tolerance = check_tolerance<T>();
  check.query_tokens = static_cast<std::int64_t>(sample.query_tokens.size());
  check.key_tokens = static_cast<std::int64_t>(sample.key_tokens.size());
  return check;
}

template double check_tolerance<float>();
template double check_tolerance<double>();
template double check_tolerance<bfloat16>();
template double check_tolerance<float16>();
template CheckResult check_against_reference(const ReferenceProblem<float>&, const AttentionView<const float>&,
                                             const GradientsView<const float>&, std::uint64_t, std::int64_t);
template CheckResult check_against_reference(const ReferenceProblem<double>&, const AttentionView<const double>&,
                                             const GradientsView<const double>&, std::uint64_t, std::int64_t);
template CheckResult check_against_reference(const ReferenceProblem<bfloat16>&, const AttentionView<const bfloat16>&,
                                             const GradientsView<const bfloat16>&, std::uint64_t, std::int64_t);
template CheckResult check_against_reference(const ReferenceProblem<float16>&, const AttentionView<const float16>&,
                                             const GradientsView<const float16>&, std::uint64_t, std::int64_t);

}  // namespace cobble::program
