#include "reference/problem_checks.hpp"

#include <cmath>
#include <string>

#include "core/checked.hpp"
#include "pattern/score_term_checks.hpp"

namespace cobble::detail {
namespace {

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

}  // namespace

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
  validate(problem.terms, {query.batch, query.heads, grid.rows(), grid.columns()});
}

template void validate(const ReferenceProblem<float>&);
template void validate(const ReferenceProblem<double>&);
template void validate(const ReferenceProblem<bfloat16>&);
template void validate(const ReferenceProblem<float16>&);

void validate_tokens(const std::vector<std::int64_t>& tokens, const char* name, std::int64_t size) {
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

}  // namespace cobble::detail
