#include "cobble/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "pattern/stored_values.hpp"
#include "reference/problem_checks.hpp"

namespace cobble {
namespace {

using detail::is_given;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One token's features, read as double.
template <class T>
struct TokenRow {
  const T* data;
  std::int64_t stride;

  TokenRow(const TensorView<const T>& tensor, std::int64_t batch, std::int64_t head, std::int64_t token)
      : data(tensor.row(batch, head, token)), stride(tensor.strides().features) {}
  double operator[](std::int64_t feature) const { return static_cast<double>(data[feature * stride]); }
};

/// <a, b>. Four partial sums, so that an addition need not wait for the one before it.
template <class A, class B>
double dot(const A& a, const B& b, std::int64_t size) {
  double sums[4] = {0, 0, 0, 0};
  for (std::int64_t f = 0; f < size; ++f) sums[f % 4] += a[f] * b[f];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// sum += factor * a
template <class A>
void add_scaled(double factor, const A& a, std::int64_t size, double* sum) {
  for (std::int64_t f = 0; f < size; ++f) sum[f] += factor * a[f];
}

// ---------------------------------------------------------------------------------------------------------------------
// Which tokens

std::vector<std::int64_t> all_tokens(std::int64_t size) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

/// For each token its place in the sample, -1 for tokens outside.
std::vector<std::int64_t> places_of(const std::vector<std::int64_t>& sampled, std::int64_t size) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(size), -1);
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    place[static_cast<std::size_t>(sampled[i])] = static_cast<std::int64_t>(i);
  }
  return place;
}

/// The rows to compute: the sampled ones and, for gradients of keys, all that attend to a sampled key.
std::vector<std::int64_t> needed_rows(const Pattern& pattern, const ReferenceSample& sample, bool gradients) {
  const auto attends = [&](std::int64_t row) {
    return std::any_of(sample.key_tokens.begin(), sample.key_tokens.end(),
                       [&](std::int64_t key) { return pattern.contains(row, key); });
  };
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < pattern.rows(); ++row) {
    const bool sampled = std::binary_search(sample.query_tokens.begin(), sample.query_tokens.end(), row);
    if (sampled || (gradients && attends(row))) rows.push_back(row);
  }
  return rows;
}

// ---------------------------------------------------------------------------------------------------------------------
// Scores

/// What turns <q_i, k_j> of one query head into s_ij.
template <class T>
class Scores {
 public:
  struct Pair {
    std::int64_t key;
    double score;
    double slope;             ///< of the score as a function of <q_i, k_j>
    std::int64_t bias_place;  ///< -1: the pair has no bias of its own
    double probability;
  };

  Scores(const ReferenceProblem<T>& problem, std::int64_t batch, std::int64_t head)
      : problem_(problem), batch_(batch), head_(head) {
    const ScoreTerms<T>& terms = problem.terms;
    scale_ = problem.scale.value_or(1.0 / std::sqrt(static_cast<double>(problem.query.shape().features)));
    if (!terms.alibi_slopes.empty()) alibi_slope_ = terms.alibi_slopes[static_cast<std::size_t>(head)];
    if (!terms.sinks.empty()) sink_ = static_cast<double>(terms.sinks[static_cast<std::size_t>(head)]);
    if (is_given(terms.bias.values)) bias_places_.emplace(terms.bias.structure, "bias.structure");
  }

  double sink() const { return sink_; }
  std::int64_t key_head() const { return head_ / (problem_.query.shape().heads / problem_.key.shape().heads); }
  std::int64_t bias_batch() const { return problem_.terms.bias.values.shape().batch == 1 ? 0 : batch_; }
  std::int64_t bias_head() const { return problem_.terms.bias.values.shape().heads == 1 ? 0 : head_; }

  /// The pairs of a row but for those that a bias of -infinity removes.
  std::vector<Pair> row(std::int64_t query) const {
    const std::int64_t position = query + problem_.patterns.columns() - problem_.patterns.rows();
    const TokenRow q(problem_.query, batch_, head_, query);
    std::vector<ColumnRun> runs;
    problem_.patterns.at(batch_, head_).append_runs(query, 0, problem_.patterns.columns(), runs);
    std::vector<Pair> pairs;
    for (const ColumnRun& run : runs) {
      for (std::int64_t key = run.begin; key < run.end; ++key) {
        const std::int64_t place = bias_places_ ? bias_places_->index(query, key) : -1;
        const double bias =
            place < 0 ? 0 : static_cast<double>(problem_.terms.bias.values(bias_batch(), bias_head(), 0, place));
        if (bias == -kInfinity) continue;
        const TokenRow k(problem_.key, batch_, key_head(), key);
        const auto [capped, slope] = soft_capped(scale_ * dot(q, k, problem_.query.shape().features));
        const double alibi = -alibi_slope_ * static_cast<double>(std::abs(position - key));
        pairs.push_back({key, capped + bias + alibi, scale_ * slope, place, 0});
      }
    }
    return pairs;
  }

 private:
  /// c tanh(x / c) and its derivative, 1 - tanh^2.
  std::pair<double, double> soft_capped(double x) const {
    const double c = problem_.terms.softcap;
    if (c == 0) return {x, 1};
    const double tanh = std::tanh(x / c);
    return {c * tanh, 1 - tanh * tanh};
  }

  const ReferenceProblem<T>& problem_;
  std::int64_t batch_;
  std::int64_t head_;
  double scale_;
  double alibi_slope_ = 0;
  double sink_ = -kInfinity;
  std::optional<detail::StoredValues> bias_places_;
};

// ---------------------------------------------------------------------------------------------------------------------
// One row

/// Row `query` of one head: its pairs with their probabilities, its output and its lse.
template <class T>
struct RowResult {
  std::vector<typename Scores<T>::Pair> pairs;
  std::vector<double> output;
  double lse = -kInfinity;
  double sink_probability = 0;
};

template <class T>
RowResult<T> forward_row(const ReferenceProblem<T>& problem, const Scores<T>& scores, std::int64_t batch,
                         std::int64_t query) {
  const std::int64_t d_v = problem.value.shape().features;
  RowResult<T> row;
  row.output.assign(static_cast<std::size_t>(d_v), 0.0);
  row.pairs = scores.row(query);
  if (std::all_of(row.pairs.begin(), row.pairs.end(), [](const auto& pair) { return pair.score == -kInfinity; })) {
    row.pairs.clear();
    row.lse = scores.sink();
    row.sink_probability = row.lse == -kInfinity ? 0 : 1;
    return row;
  }

  double maximum = scores.sink();
  for (const auto& pair : row.pairs) maximum = std::max(maximum, pair.score);
  double sum = std::exp(scores.sink() - maximum);
  for (const auto& pair : row.pairs) sum += std::exp(pair.score - maximum);
  row.lse = maximum + std::log(sum);
  row.sink_probability = std::exp(scores.sink() - maximum) / sum;
  for (auto& pair : row.pairs) {
    pair.probability = std::exp(pair.score - maximum) / sum;
    add_scaled(pair.probability, TokenRow(problem.value, batch, scores.key_head(), pair.key), d_v, row.output.data());
  }
  return row;
}

/// Where a row's gradients go: tokens outside the sample have place -1.
struct Places {
  std::int64_t query;
  const std::vector<std::int64_t>& keys;
};

/// Adds the row's share to its gradients.
template <class T>
void backward_row(const ReferenceProblem<T>& problem, const Scores<T>& scores, std::int64_t batch, std::int64_t head,
                  std::int64_t query, const RowResult<T>& row, const Places& places, ReferenceResult& result) {
  const std::int64_t d = problem.query.shape().features;
  const std::int64_t d_v = problem.value.shape().features;
  const TokenRow q(problem.query, batch, head, query);
  const TokenRow grad_output(problem.grad_output, batch, head, query);

  double delta = row.pairs.empty() ? 0 : dot(grad_output, row.output.data(), d_v);  // an output that is 0 stays 0
  if (is_given(problem.grad_lse)) delta -= static_cast<double>(problem.grad_lse(batch, head, query, 0));
  // As if a pair with the value 0: dp = 0.
  if (row.sink_probability != 0 && result.grad_sinks.data() != nullptr) {
    result.grad_sinks(0, head, 0, 0) -= row.sink_probability * delta;
  }
  for (const auto& pair : row.pairs) {
    const std::int64_t key_place = places.keys[static_cast<std::size_t>(pair.key)];
    if (places.query < 0 && key_place < 0) continue;
    const double dp = dot(grad_output, TokenRow(problem.value, batch, scores.key_head(), pair.key), d_v);
    const double ds = pair.probability * (dp - delta);
    if (places.query >= 0) {
      add_scaled(pair.slope * ds, TokenRow(problem.key, batch, scores.key_head(), pair.key), d,
                 &result.grad_query(batch, head, places.query, 0));
      if (pair.bias_place >= 0) result.grad_bias(scores.bias_batch(), scores.bias_head(), 0, pair.bias_place) += ds;
    }
    if (key_place >= 0) {
      add_scaled(pair.slope * ds, q, d, &result.grad_key(batch, scores.key_head(), key_place, 0));
      add_scaled(pair.probability, grad_output, d_v, &result.grad_value(batch, scores.key_head(), key_place, 0));
    }
  }
}

Tensor<double> zeros(const TensorShape& shape) {
  Tensor<double> tensor(shape);
  std::fill(tensor.values().begin(), tensor.values().end(), 0.0);
  return tensor;
}

template <class T>
ReferenceResult compute(const ReferenceProblem<T>& problem, const std::optional<ReferenceSample>& given_sample) {
  detail::validate(problem);
  const TensorShape query = problem.query.shape();
  const TensorShape value = problem.value.shape();
  const ReferenceSample sample =
      given_sample ? *given_sample : ReferenceSample{all_tokens(query.tokens), all_tokens(value.tokens)};
  detail::validate_tokens(sample.query_tokens, "query_tokens", query.tokens);
  detail::validate_tokens(sample.key_tokens, "key_tokens", value.tokens);
  const bool gradients = is_given(problem.grad_output);
  const auto queries = static_cast<std::int64_t>(sample.query_tokens.size());
  const auto keys = static_cast<std::int64_t>(sample.key_tokens.size());

  ReferenceResult result;
  result.output = zeros({query.batch, query.heads, queries, value.features});
  result.lse = zeros({query.batch, query.heads, queries, 1});
  if (gradients) {
    result.grad_query = zeros({query.batch, query.heads, queries, query.features});
    result.grad_key = zeros({query.batch, value.heads, keys, query.features});
    result.grad_value = zeros({query.batch, value.heads, keys, value.features});
    if (is_given(problem.terms.bias.values)) result.grad_bias = zeros(problem.terms.bias.values.shape());
    if (!problem.terms.sinks.empty() && !given_sample) result.grad_sinks = zeros({1, query.heads, 1, 1});
  }

  const std::vector<std::int64_t> query_places = places_of(sample.query_tokens, query.tokens);
  const std::vector<std::int64_t> key_places = places_of(sample.key_tokens, value.tokens);
  std::vector<std::vector<std::int64_t>> rows_of_pattern;
  for (const Pattern& pattern : problem.patterns.patterns()) {
    rows_of_pattern.push_back(given_sample ? needed_rows(pattern, sample, gradients) : sample.query_tokens);
  }

  for (std::int64_t batch = 0; batch < query.batch; ++batch) {
    for (std::int64_t head = 0; head < query.heads; ++head) {
      const Scores<T> scores(problem, batch, head);
      for (const std::int64_t token : rows_of_pattern[static_cast<std::size_t>(problem.patterns.index(batch, head))]) {
        const RowResult<T> row = forward_row(problem, scores, batch, token);
        const std::int64_t place = query_places[static_cast<std::size_t>(token)];
        if (place >= 0) {
          std::copy(row.output.begin(), row.output.end(), &result.output(batch, head, place, 0));
          result.lse(batch, head, place, 0) = row.lse;
        }
        if (gradients) backward_row(problem, scores, batch, head, token, row, {place, key_places}, result);
      }
    }
  }
  return result;
}

}  // namespace

ReferenceResult reference_attention(const ReferenceProblem<float>& problem,
                                    const std::optional<ReferenceSample>& sample) {
  return compute(problem, sample);
}

ReferenceResult reference_attention(const ReferenceProblem<double>& problem,
                                    const std::optional<ReferenceSample>& sample) {
  return compute(problem, sample);
}

ReferenceResult reference_attention(const ReferenceProblem<bfloat16>& problem,
                                    const std::optional<ReferenceSample>& sample) {
  return compute(problem, sample);
}

ReferenceResult reference_attention(const ReferenceProblem<float16>& problem,
                                    const std::optional<ReferenceSample>& sample) {
  return compute(problem, sample);
}

}  // namespace cobble
