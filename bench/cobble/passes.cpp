#include "passes.hpp"

#include <oneapi/tbb/task_arena.h>

#include <utility>

#include "reordering.hpp"

namespace cobble::program {
namespace {

template <class T>
ProblemTensors<T> tensors_of(const Pattern& pattern, const BenchCase& measured, std::uint64_t seed) {
  ProblemArguments arguments;
  arguments.batch = measured.batch;
  arguments.heads = measured.heads;
  arguments.head_dim = measured.head_dim;
  if (measured.value_dim != 0) arguments.value_dim = measured.value_dim;
  arguments.features = measured.features;
  arguments.seed = seed;
  return make_problem_tensors<T>(pattern, arguments);
}

}  // namespace

template <class T>
Passes<T>::Passes(const Pattern& pattern, const BenchCase& measured, std::uint64_t seed)
    : Passes(pattern, tensors_of<T>(pattern, measured, seed), reorder_method(measured.reorder)) {}

template <class T>
Passes<T>::Passes(const Pattern& pattern, ProblemTensors<T> tensors, ReorderMethod reorder)
    : pattern_(pattern),
      tensors_(std::move(tensors)),
      reorder_(reorder),
      plan_(make_plan(plan_options())),
      result_{Tensor<T>(tensors_.grad_output.shape),
              Tensor<ComputeType<T>>({tensors_.problem.batch, tensors_.problem.query_heads, pattern.rows(), 1})},
      gradients_{Tensor<T>(tensors_.query.shape), Tensor<T>(tensors_.key.shape), Tensor<T>(tensors_.value.shape)} {
  if (tensors_.compressed()) compressed_.emplace(tensors_, gradients_);
}

template <class T>
Plan Passes<T>::make_plan(PlanOptions options) const {
  options.element_bytes = sizeof(ComputeType<T>);  // of what tiles hold
  options.threads = tbb::this_task_arena::max_concurrency();
  return cobble::make_plan(pattern_, tensors_.problem, options);
}

template <class T>
void Passes<T>::forward(const Plan& plan) {
  if (compressed_) return compressed_->forward(plan, result_.view(), workspace_, {});
  cobble::forward(plan, tensors_.query.view(), tensors_.key.view(), tensors_.value.view(), result_.view(), workspace_);
}

template <class T>
void Passes<T>::backward(const Plan& plan) {
  if (compressed_) return compressed_->backward(plan, result_, workspace_, {});
  cobble::backward(plan, tensors_.query.view(), tensors_.key.view(), tensors_.value.view(), result_,
                   tensors_.grad_output.view(), gradients_.view(), workspace_);
}

template <class T>
std::int64_t Passes<T>::tensor_bytes() const {
  // Queries, keys, values and outputs each come twice: as such and as a gradient.
  const auto bytes_of = [](const auto& shape, std::size_t element) {
    return shape.size() * static_cast<std::int64_t>(element);
  };
  return 2 * (storage_bytes(tensors_.query_input()) + storage_bytes(tensors_.key_input()) +
              storage_bytes(tensors_.value_input())) +
         2 * bytes_of(tensors_.grad_output.shape, sizeof(T)) + bytes_of(result_.lse.shape(), sizeof(ComputeType<T>));
}

template <class T>
CheckResult Passes<T>::check(std::uint64_t seed, std::int64_t full_check_tokens) const {
  if (compressed_) return compressed_->check(plan_, pattern_, result_, {}, seed, full_check_tokens);
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
template class Passes<bfloat16>;
template class Passes<float16>;

}  // namespace cobble::program
