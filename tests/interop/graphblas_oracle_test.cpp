#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cobble/compressed_attention.hpp"
#include "cobble/interop/suitesparse.hpp"
#include "support/attention_inputs.hpp"
#include "support/graphblas.hpp"
#include "support/sample_patterns.hpp"
#include "support/sparse.hpp"

// Attention over CSR queries and keys against GraphBLAS's masked products. The values are the identity, so the output
// is P, and log p_ij + lse_i is the score. What outputs cannot show, gradients do: dP is dO, dQ and dK are products of
// dS on the entries that Q and K store.

using namespace cobble;
using namespace cobble::test;

namespace {

struct GraphblasProduct {
  const CsrMatrix<double>& a;
  const CsrMatrix<double>& b;
  GrB_Descriptor descriptor;  ///< which of both is transposed; the mask counts by its structure
  std::int64_t rows;
  std::int64_t columns;
};

/// The product where `mask` has an entry; an entry that no pair of factors meets is not stored.
CsrMatrix<double> masked_product(const GraphblasProduct& product, const CsrPattern& mask) {
  const GraphblasMatrix a = to_graphblas(product.a);
  const GraphblasMatrix b = to_graphblas(product.b);
  const GraphblasMatrix where = to_graphblas(mask);
  GrB_Matrix result = nullptr;
  REQUIRE(GrB_Matrix_new(&result, GrB_FP64, static_cast<GrB_Index>(product.rows),
                         static_cast<GrB_Index>(product.columns)) == GrB_SUCCESS);
  const GraphblasMatrix owner(result);
  REQUIRE(GrB_mxm(result, where.get(), nullptr, GrB_PLUS_TIMES_SEMIRING_FP64, a.get(), b.get(), product.descriptor) ==
          GrB_SUCCESS);
  return csr_from_graphblas(result);
}

/// Normal values, so that scores of both signs cancel.
template <class T>
CsrMatrix<T> random_features(Random& random, std::int64_t tokens, std::int64_t features, double density) {
  CsrMatrix<T> matrix = random_csr<T>(random, tokens, features, density);
  for (T& value : matrix.values) value = static_cast<T>(random.normal());
  return matrix;
}

template <class T>
CsrMatrix<T> identity(std::int64_t size) {
  CsrMatrix<T> matrix;
  matrix.rows = matrix.columns = size;
  for (std::int64_t i = 0; i < size; ++i) {
    matrix.row_offsets.push_back(i + 1);
    matrix.column_indices.push_back(static_cast<std::int32_t>(i));
    matrix.values.push_back(1);
  }
  return matrix;
}

template <class T>
CsrMatrix<double> widened(const CsrMatrix<T>& matrix) {
  return {static_cast<const CsrPattern&>(matrix), {matrix.values.begin(), matrix.values.end()}};
}

/// P and the gradients of what Q, K and V (the identity) store, from products by GraphBLAS.
struct Oracle {
  std::vector<double> scores;  ///< row by row, like all that follows; 0 outside the pattern
  std::vector<double> probabilities;
  std::vector<double> grad_query;
  std::vector<double> grad_key;
  std::vector<double> grad_value;  ///< the diagonal
};

Oracle oracle_of(const CsrMatrix<double>& query, const CsrMatrix<double>& key, const CsrPattern& pattern, double scale,
                 const Tensor<double>& grad_output) {
  const std::int64_t n_q = query.rows;
  const std::int64_t n_k = key.rows;
  Oracle oracle;
  oracle.scores = dense_of(masked_product({query, key, GrB_DESC_ST1, n_q, n_k}, pattern));
  for (double& score : oracle.scores) score *= scale;
  oracle.probabilities.resize(oracle.scores.size());
  oracle.grad_value.resize(static_cast<std::size_t>(n_k));
  CsrMatrix<double> grad_scores{pattern, {}};
  for (std::int64_t i = 0; i < n_q; ++i) {
    const auto row = pattern.view().row(i);
    const auto place = [&](std::int32_t j) { return static_cast<std::size_t>(i * n_k + j); };
    double sum = 0;
    for (const std::int32_t j : row) sum += std::exp(oracle.scores[place(j)]);
    double delta = 0;
    for (const std::int32_t j : row) {
      const double p = oracle.probabilities[place(j)] = std::exp(oracle.scores[place(j)]) / sum;
      delta += p * grad_output(0, 0, i, j);
      oracle.grad_value[static_cast<std::size_t>(j)] += p * grad_output(0, 0, i, j);
    }
    for (const std::int32_t j : row) {
      grad_scores.values.push_back(scale * oracle.probabilities[place(j)] * (grad_output(0, 0, i, j) - delta));
    }
  }
  oracle.grad_query = dense_of(masked_product({grad_scores, key, GrB_DESC_S, n_q, query.columns}, query));
  oracle.grad_key = dense_of(masked_product({grad_scores, query, GrB_DESC_ST0, n_k, key.columns}, key));
  return oracle;
}

/// Relative to the largest entry of `expected`, or to 1 where all of them cancel. Both are finite.
template <class Actual>
double error_of_values(const Actual& actual, const std::vector<double>& expected) {
  if (actual.size() != expected.size()) return std::numeric_limits<double>::infinity();
  constexpr double kCancelled = 1e-2;
  double largest = 0;
  double difference = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    largest = std::max(largest, std::abs(expected[k]));
    // Not std::max, which would pass over NaN.
    const double d = std::abs(static_cast<double>(actual[k]) - expected[k]);
    if (!(d <= difference)) difference = d;
  }
  return difference / (largest < kCancelled ? 1 : largest);
}

template <class T>
const CsrMatrix<T>& csr_of_one(const Features<T>& features) {
  return std::get<CsrTensor<T>>(features).at(0, 0);
}

template <class T>
void check_against_graphblas(const Plan& plan, const CsrMatrix<T>& query, const CsrMatrix<T>& key, Random& random) {
  const std::int64_t n_q = query.rows;
  const std::int64_t n_k = key.rows;
  const CsrMatrix<T> value = identity<T>(n_k);
  const auto grad_output = normal_tensor<T>({1, 1, n_q, n_k}, random);
  const CsrPattern pattern = plan.patterns().patterns().front().to_csr();
  const Oracle oracle =
      oracle_of(widened(query), widened(key), pattern, *plan.problem().scale, converted<double>(grad_output.view()));

  const Attention<T> attention = forward<T>(plan, query.view(), key.view(), value.view());
  CHECK(error_of_values(attention.output.values(), oracle.probabilities) < kTolerance<T>);
  std::vector<double> scores(oracle.scores.size());
  for (std::int64_t i = 0; i < n_q; ++i) {
    for (const std::int32_t j : pattern.view().row(i)) {
      scores[static_cast<std::size_t>(i * n_k + j)] =
          std::log(static_cast<double>(attention.output(0, 0, i, j))) + static_cast<double>(attention.lse(0, 0, i, 0));
    }
  }
  CHECK(error_of_values(scores, oracle.scores) < kTolerance<T>);

  const FeatureGradients<T> gradients =
      backward<T>(plan, query.view(), key.view(), value.view(), attention, grad_output);
  CHECK(error_of_values(dense_of(csr_of_one(gradients.query)), oracle.grad_query) < kTolerance<T>);
  CHECK(error_of_values(dense_of(csr_of_one(gradients.key)), oracle.grad_key) < kTolerance<T>);
  CHECK(error_of_values(csr_of_one(gradients.value).values, oracle.grad_value) < kTolerance<T>);
}

}  // namespace

TEST_CASE_TEMPLATE("scores and gradients of CSR queries and keys are GraphBLAS's masked products", T, float, double) {
  start_graphblas();
  Random random(41);
  for (const Size size : {Size{70, 70}, {33, 81}}) {
    CAPTURE(to_string(size));
    for (const SamplePattern& sample : named_sample_patterns(size.rows, size.columns)) {
      CAPTURE(sample.name);
      for (const Schedule schedule : {Schedule::recompute, Schedule::materialize}) {
        CAPTURE(static_cast<int>(schedule));
        const Plan plan = make_plan(sample.pattern, {.head_dim = 48, .value_dim = size.columns},
                                    {.schedule = schedule, .element_bytes = sizeof(T)});
        for (const double density : {0.0, 0.1, 0.6}) {
          CAPTURE(density);
          const CsrMatrix<T> query = random_features<T>(random, size.rows, 48, density);
          const CsrMatrix<T> key = random_features<T>(random, size.columns, 48, density);
          check_against_graphblas(plan, query, key, random);
        }
      }
    }
  }
}

TEST_CASE("long rows of sparse patterns, in lists of pairs and gathered tiles, have GraphBLAS's scores") {
  start_graphblas();
  Random random(42);
  const std::int64_t n = 700;
  for (const Pattern& pattern : {random_pairs(n, n, 8, 1), random_pairs(n, n, 40, 2), power_law_graph(n, 12, 3)}) {
    CAPTURE(pattern.describe());
    const Problem problem{.head_dim = 64, .value_dim = n};
    const CsrMatrix<float> query = random_features<float>(random, n, 64, 0.1);
    const CsrMatrix<float> key = random_features<float>(random, n, 64, 0.1);
    for (std::int64_t index = 0; index < std::ssize(make_plan(pattern, problem).candidates()); ++index) {
      const Plan plan = make_plan(pattern, problem, {.candidate = index});
      CAPTURE(plan.candidates()[static_cast<std::size_t>(index)].name);
      check_against_graphblas(plan, query, key, random);
    }
  }
}
