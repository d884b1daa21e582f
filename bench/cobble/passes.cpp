#include "passes.hpp"

namespace cobble::program {
namespace {

template <class T>
ProblemTensors<T> tensors_of(const Pattern& pattern, const BenchCase& measured, std::uint64_t seed) {
  ProblemArguments arguments;
  arguments.batch = measured.batch;
  arguments.heads = measured.heads;
  arguments.head_dim = measured.head_dim;
  arguments.seed = seed;
  return make_problem_tensors<T>(pattern, arguments);
}

}  // namespace

template <class T>
Passes<T>::Passes(const Pattern& pattern, const BenchCase& measured, std::uint64_t seed)
    : pattern_(pattern),
      tensors_(tensors_of<T>(pattern, measured, seed)),
      plan_(make_plan()),
      result_{Tensor<T>(tensors_.grad_output.shape),
              Tensor<T>({tensors_.problem.batch, tensors_.problem.query_heads, pattern.rows(), 1})},
      gradients_{Tensor<T>(tensors_.query.shape), Tensor<T>(tensors_.key.shape), Tensor<T>(tensors_.value.shape)} {}

template <class T>
Plan Passes<T>::make_plan(PlanOptions options) const {
  options.element_bytes = sizeof(T);
  return cobble::make_plan(pattern_, tensors_.problem, options);
}

template <class T>
void Passes<T>::forward(const Plan& plan) {
  cobble::forward(plan, tensors_.query.view(), tensors_.key.view(), tensors_.value.view(), result_.view(), workspace_);
}

template <class T>
void Passes<T>::backward(const Plan& plan) {
  cobble::backward(plan, tensors_.query.view(), tensors_.key.view(), tensors_.value.view(), result_,
                   tensors_.grad_output.view(), gradients_.view(), workspace_);
}

template <class T>
std::int64_t Passes<T>::tensor_bytes() const {
  // Queries, keys, values and outputs each come twice: as such and as a gradient.
  const std::int64_t elements = 2 * (tensors_.query.shape.size() + tensors_.key.shape.size() +
                                     tensors_.value.shape.size() + tensors_.grad_output.shape.size()) +
                                result_.lse.shape().size();
  return elements * static_cast<std::int64_t>(sizeof(T));
}

template <class T>
CheckResult Passes<T>::check(std::uint64_t seed, std::int64_t full_check_tokens) const {
  return check_against_reference<T>({pattern_,
                                     tensors_.query.view(),
                                     tensors_.key.view(),
                                     tensors_.value.view(),
                                     tensors_.grad_output.view(),
                                     {},
                                     tensors_.problem.scale},
                                    result_, {gradients_.query.view(), gradients_.key.view(), gradients_.value.view()},
                                    seed, full_check_tokens);
}

template class Passes<float>;
template class Passes<double>;

}  // namespace cobble::program
