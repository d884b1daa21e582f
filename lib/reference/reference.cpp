#include "cobble/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "core/checked.hpp"

namespace cobble {
namespace {

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
// Validation

template <class T>
bool is_given(const TensorView<const T>& tensor) {
  return tensor.data() != nullptr || tensor.shape() != TensorShape{};
}

std::string to_string(const TensorShape& shape) {
  return std::to_string(shape.batch) + " x " + std::to_string(shape.heads) + " x " + std::to_string(shape.tokens) +
         " x " + std::to_string(shape.features);
}

template <class T>
void require_shape(const TensorView<const T>& tensor, const char* name, const TensorShape& expected) {
  if (tensor.shape() != expected) {
    throw Error(ErrorCode::shape_mismatch,
                std::string(name) + " is " + to_string(tensor.shape()) + ", expected " + to_string(expected));
  }
  if (expected.size() > 0 && tensor.data() == nullptr) {
    throw Error(ErrorCode::invalid_argument, std::string(name) + " has no data, expected " + to_string(expected));
  }
}

template <class T>
void validate(const ReferenceProblem<T>& problem) {
  const TensorShape query = problem.query.shape();
  const TensorShape key = problem.key.shape();
  const TensorShape value = problem.value.shape();
  const PatternGrid& grid = problem.patterns;
  if (query.features < 1 || value.features < 1) {
    throw Error(ErrorCode::invalid_argument, "query has " + std::to_string(query.features) + " and value has " +
                                                 std::to_string(value.features) + " features, expected at least 1");
  }
  if (query.heads < 0 || key.heads < 0 || (key.heads == 0 ? query.heads != 0 : query.heads % key.heads != 0)) {
    throw Error(ErrorCode::shape_mismatch, "query has " + std::to_string(query.heads) +
                                               " heads, expected a multiple of " + "key's " +
                                               std::to_string(key.heads));
  }
  require_shape(problem.query, "query", {query.batch, query.heads, grid.rows(), query.features});
  require_shape(problem.key, "key", {query.batch, key.heads, grid.columns(), query.features});
  require_shape(problem.value, "value", {query.batch, key.heads, grid.columns(), value.features});
  if (is_given(problem.grad_output)) {
    require_shape(problem.grad_output, "grad_output", {query.batch, query.heads, grid.rows(), value.features});
  }
  if (is_given(problem.grad_lse)) {
    require_shape(problem.grad_lse, "grad_lse", {query.batch, query.heads, grid.rows(), 1});
    if (!is_given(problem.grad_output)) {
      throw Error(ErrorCode::invalid_argument, "grad_lse is given without grad_output");
    }
  }
  if ((grid.batch() != 1 && grid.batch() != query.batch) || (grid.heads() != 1 && grid.heads() != query.heads)) {
    throw Error(ErrorCode::shape_mismatch, "patterns is a grid of " + std::to_string(grid.batch()) + " x " +
                                               std::to_string(grid.heads()) + ", expected 1 or " +
                                               std::to_string(query.batch) + " x 1 or " + std::to_string(query.heads));
  }
  if (problem.scale && !std::isfinite(*problem.scale)) {
    throw Error(ErrorCode::invalid_argument,
                "scale = " + std::to_string(*problem.scale) + ", expected a finite number");
  }
}

void validate(const std::vector<std::int64_t>& tokens, const char* name, std::int64_t size) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= size) {
      throw Error(ErrorCode::invalid_argument, std::string(name) + "[" + std::to_string(i) +
                                                   "] = " + std::to_string(tokens[i]) + " is not in [0, " +
                                                   std::to_string(size) + ")");
    }
    if (i > 0 && tokens[i] <= tokens[i - 1]) {
      throw Error(ErrorCode::invalid_argument, std::string(name) + "[" + std::to_string(i) +
                                                   "] = " + std::to_string(tokens[i]) + " is not above " + name + "[" +
                                                   std::to_string(i - 1) + "] = " + std::to_string(tokens[i - 1]));
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Which tokens

std::vector<std::int64_t> all_tokens(std::int64_t size) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

/// For each token its place in the sample, -1 for tokens outside.
std::vector<std::int64_t> places(const std::vector<std::int64_t>& sampled, std::int64_t size) {
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
// One row

/// Row `query` of head `head`: its keys with their probabilities, its output and its lse.
struct RowResult {
  std::vector<std::int64_t> keys;
  std::vector<double> probabilities;
  std::vector<double> output;
  double lse = -kInfinity;
};

template <class T>
RowResult forward_row(const ReferenceProblem<T>& problem, double scale, std::int64_t batch, std::int64_t head,
                      std::int64_t query) {
  const std::int64_t d = problem.query.shape().features;
  const std::int64_t d_v = problem.value.shape().features;
  const std::int64_t key_head = head / (problem.query.shape().heads / problem.key.shape().heads);
  RowResult row;
  row.output.assign(static_cast<std::size_t>(d_v), 0.0);

  std::vector<ColumnRun> runs;
  problem.patterns.at(batch, head).append_runs(query, 0, problem.patterns.columns(), runs);
  for (const ColumnRun& run : runs) {
    for (std::int64_t key = run.begin; key < run.end; ++key) row.keys.push_back(key);
  }

  std::vector<double> scores;
  const TokenRow q(problem.query, batch, head, query);
  for (const std::int64_t key : row.keys) {
    scores.push_back(scale * dot(q, TokenRow(problem.key, batch, key_head, key), d));
  }
  if (std::all_of(scores.begin(), scores.end(), [](double score) { return score == -kInfinity; })) {
    row.keys.clear();
    return row;
  }

  const double maximum = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - maximum);
  row.lse = maximum + std::log(sum);
  for (std::size_t pair = 0; pair < scores.size(); ++pair) {
    row.probabilities.push_back(std::exp(scores[pair] - maximum) / sum);
    add_scaled(row.probabilities[pair], TokenRow(problem.value, batch, key_head, row.keys[pair]), d_v,
               row.output.data());
  }
  return row;
}

/// Adds the row's share to its gradients. Tokens outside the sample have place -1.
template <class T>
void backward_row(const ReferenceProblem<T>& problem, double scale, std::int64_t batch, std::int64_t head,
                  std::int64_t query, const RowResult& row, std::int64_t query_place,
                  const std::vector<std::int64_t>& key_places, ReferenceResult& result) {
  if (row.keys.empty()) return;  // its grad_output may hold anything
  const std::int64_t d = problem.query.shape().features;
  const std::int64_t d_v = problem.value.shape().features;
  const std::int64_t key_head = head / (problem.query.shape().heads / problem.key.shape().heads);
  const TokenRow q(problem.query, batch, head, query);
  const TokenRow grad_output(problem.grad_output, batch, head, query);

  double delta = dot(grad_output, row.output.data(), d_v);
  if (is_given(problem.grad_lse)) delta -= static_cast<double>(problem.grad_lse(batch, head, query, 0));
  for (std::size_t pair = 0; pair < row.keys.size(); ++pair) {
    const std::int64_t key = row.keys[pair];
    const std::int64_t key_place = key_places[static_cast<std::size_t>(key)];
    if (query_place < 0 && key_place < 0) continue;
    const double p = row.probabilities[pair];
    const double dp = dot(grad_output, TokenRow(problem.value, batch, key_head, key), d_v);
    const double ds = p * (dp - delta);
    if (query_place >= 0) {
      add_scaled(scale * ds, TokenRow(problem.key, batch, key_head, key), d,
                 &result.grad_query(batch, head, query_place, 0));
    }
    if (key_place >= 0) {
      add_scaled(scale * ds, q, d, &result.grad_key(batch, key_head, key_place, 0));
      add_scaled(p, grad_output, d_v, &result.grad_value(batch, key_head, key_place, 0));
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
  validate(problem);
  const TensorShape query = problem.query.shape();
  const TensorShape value = problem.value.shape();
  const ReferenceSample sample =
      given_sample ? *given_sample : ReferenceSample{all_tokens(query.tokens), all_tokens(value.tokens)};
  validate(sample.query_tokens, "query_tokens", query.tokens);
  validate(sample.key_tokens, "key_tokens", value.tokens);
  const bool gradients = is_given(problem.grad_output);
  const double scale = problem.scale.value_or(1.0 / std::sqrt(static_cast<double>(query.features)));
  const auto queries = static_cast<std::int64_t>(sample.query_tokens.size());
  const auto keys = static_cast<std::int64_t>(sample.key_tokens.size());

  ReferenceResult result;
  result.output = zeros({query.batch, query.heads, queries, value.features});
  result.lse = zeros({query.batch, query.heads, queries, 1});
  if (gradients) {
    result.grad_query = zeros({query.batch, query.heads, queries, query.features});
    result.grad_key = zeros({query.batch, value.heads, keys, query.features});
    result.grad_value = zeros({query.batch, value.heads, keys, value.features});
  }

  const std::vector<std::int64_t> query_places = places(sample.query_tokens, query.tokens);
  const std::vector<std::int64_t> key_places = places(sample.key_tokens, value.tokens);
  std::vector<std::vector<std::int64_t>> rows_of_pattern;
  for (const Pattern& pattern : problem.patterns.patterns()) {
    rows_of_pattern.push_back(given_sample ? needed_rows(pattern, sample, gradients) : sample.query_tokens);
  }

  for (std::int64_t batch = 0; batch < query.batch; ++batch) {
    for (std::int64_t head = 0; head < query.heads; ++head) {
      for (const std::int64_t token : rows_of_pattern[static_cast<std::size_t>(problem.patterns.index(batch, head))]) {
        const RowResult row = forward_row(problem, scale, batch, head, token);
        const std::int64_t place = query_places[static_cast<std::size_t>(token)];
        if (place >= 0) {
          std::copy(row.output.begin(), row.output.end(), &result.output(batch, head, place, 0));
          result.lse(batch, head, place, 0) = row.lse;
        }
        if (gradients) backward_row(problem, scale, batch, head, token, row, place, key_places, result);
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

}  // namespace cobble
