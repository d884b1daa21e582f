#include "attention/validate.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/checked.hpp"
#include "pattern/score_term_checks.hpp"
#include "plan/plan_data.hpp"

namespace cobble::detail {
namespace {

std::string to_text(const TensorShape& shape) {
  return std::to_string(shape.batch) + " x " + std::to_string(shape.heads) + " x " + std::to_string(shape.tokens) +
         " x " + std::to_string(shape.features);
}

struct Axis {
  std::int64_t extent;
  std::int64_t stride;
};

template <class T>
std::array<Axis, 4> axes(const TensorView<T>& tensor) {
  const TensorShape& shape = tensor.shape();
  const TensorStrides& strides = tensor.strides();
  return {Axis{shape.batch, strides.batch}, Axis{shape.heads, strides.heads}, Axis{shape.tokens, strides.tokens},
          Axis{shape.features, strides.features}};
}

/// The first and the last element's offsets from the data pointer, in elements.
template <class T>
std::pair<std::int64_t, std::int64_t> reach(const TensorView<T>& tensor, const char* name) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (const Axis& axis : axes(tensor)) {
    std::int64_t last = 0;
    std::int64_t& side = axis.stride < 0 ? low : high;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(axis.extent - 1, axis.stride, &last) || __builtin_add_overflow(side, last, &side) ||
        __builtin_mul_overflow(side, std::int64_t{sizeof(T)}, &bytes)) {
      throw Error(ErrorCode::overflow, std::string(name) + " reaches over more bytes than 64 bits can count");
    }
  }
  return {low, high};
}

[[noreturn]] void throw_shape_mismatch(const TensorShape& found, const TensorShape& expected, const char* name,
                                       const char* axes_names) {
  throw Error(ErrorCode::shape_mismatch, std::string(name) + " is " + to_text(found) + ", expected " +
                                             to_text(expected) + " (" + axes_names + ")");
}

template <class T>
void require_shape(const TensorView<T>& tensor, const TensorShape& expected, const char* name, const char* axes_names) {
  if (tensor.shape() != expected) throw_shape_mismatch(tensor.shape(), expected, name, axes_names);
  if (expected.size() == 0) return;
  if (tensor.data() == nullptr) {
    throw Error(ErrorCode::invalid_argument, std::string(name) + " has no data");
  }
  static_cast<void>(reach(tensor, name));
}

/// Two elements of an output must not share memory. Sufficient: each axis steps over all that lies within it.
template <class T>
void require_distinct_elements(const TensorView<T>& tensor, const char* name) {
  if (tensor.shape().size() == 0) return;
  std::array<Axis, 4> sorted = axes(tensor);
  for (Axis& axis : sorted) axis.stride = std::abs(axis.stride);
  std::sort(sorted.begin(), sorted.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  std::int64_t within = 0;
  for (const Axis& axis : sorted) {
    if (axis.extent <= 1) continue;
    if (axis.stride <= within) {
      throw Error(ErrorCode::invalid_argument,
                  std::string(name) + " overlaps itself: a stride of " + std::to_string(axis.stride) +
                      " along an axis of " + std::to_string(axis.extent) + " must exceed " + std::to_string(within));
    }
    within += axis.stride * (axis.extent - 1);
  }
}

struct Memory {
  const char* name;
  const void* begin;
  const void* end;
  const void* origin;
  bool without_gaps;
};

template <class T>
Memory memory_of(const TensorView<T>& tensor, const char* name) {
  const std::int64_t size = tensor.shape().size();
  if (size == 0) return {name, nullptr, nullptr, nullptr, false};
  const auto [low, high] = reach(tensor, name);
  return {name, tensor.data() + low, tensor.data() + high + 1, tensor.data(), high - low + 1 == size};
}

/// Interleaved tensors (a packed gradient of query, key and value) share a stretch of memory and no element, so a
/// shared stretch alone is no fault; one start, or a stretch without gaps, is.
void require_apart(const Memory& a, const Memory& b) {
  if (a.begin == nullptr || b.begin == nullptr) return;
  const std::less<const void*> before;
  const bool share = before(a.begin, b.end) && before(b.begin, a.end);
  if (share && (a.origin == b.origin || a.without_gaps || b.without_gaps)) {
    throw Error(ErrorCode::invalid_argument, std::string(a.name) + " shares memory with " + b.name);
  }
}

void require_outputs_apart(const std::vector<Memory>& outputs, const std::vector<Memory>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (const Memory& input : inputs) require_apart(outputs[i], input);
    for (std::size_t j = i + 1; j < outputs.size(); ++j) require_apart(outputs[i], outputs[j]);
  }
}

constexpr const char* kQueryAxes = "batch x query heads x query tokens x head_dim";
constexpr const char* kKeyAxes = "batch x key/value heads x key tokens x head_dim";
constexpr const char* kValueAxes = "batch x key/value heads x key tokens x value_dim";
constexpr const char* kOutputAxes = "batch x query heads x query tokens x value_dim";
constexpr const char* kBiasAxes = "that of terms.bias.values";
constexpr const char* kLseAxes = "batch x query heads x query tokens x 1";
constexpr const char* kValueInputAxes = "batch x key/value heads x key tokens x head_dim";
constexpr const char* kScoreWeightAxes = "batch x query heads x head_dim x head_dim";
constexpr const char* kValueWeightAxes = "batch x key/value heads x head_dim x value_dim";

/// A plan's backward is made for the gradients of Q, K and V or for those of the weights.
void require_purpose(const Plan& plan, bool parameter_gradients) {
  if (plan.data().parameter_gradients == parameter_gradients) return;
  throw Error(ErrorCode::invalid_argument,
              parameter_gradients ? "the plan was not made with PlanOptions::parameter_gradients"
                                  : "the plan was made for parameter gradients; use parameter_gradients()");
}

template <class T>
void require_inputs(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value) {
  require_shape(query, query_shape(plan), "query", kQueryAxes);
  require_shape(key, key_shape(plan), "key", kKeyAxes);
  require_shape(value, value_shape(plan), "value", kValueAxes);
}

/// Bias values are as many as the structure says; two axes may be 1.
template <class T>
void require_terms(const Plan& plan, const ScoreTerms<T>& terms) {
  validate(terms,
           {plan.problem().batch, plan.problem().query_heads, plan.patterns().rows(), plan.patterns().columns()});
  if (has_bias(terms) && terms.bias.values.shape().size() > 0)
    static_cast<void>(reach(terms.bias.values, "bias.values"));
}

/// `gradients` has members bias and sinks.
template <class T, class Gradients>
void require_term_gradients(const Plan& plan, const ScoreTerms<T>& terms, const Gradients& gradients) {
  if (gradients.bias.data() != nullptr) {
    if (!has_bias(terms)) {
      throw Error(ErrorCode::invalid_argument, "gradients.bias is given, but terms has no bias");
    }
    require_shape(gradients.bias, terms.bias.values.shape(), "gradients.bias", kBiasAxes);
    require_distinct_elements(gradients.bias, "gradients.bias");
    if (gradients.bias.strides().features != 1 && gradients.bias.shape().features > 1) {
      throw Error(ErrorCode::invalid_argument, "gradients.bias has a stride of " +
                                                   std::to_string(gradients.bias.strides().features) +
                                                   " between the values of a matrix, expected 1");
    }
  }
  if (gradients.sinks.empty()) return;
  if (terms.sinks.empty()) throw Error(ErrorCode::invalid_argument, "gradients.sinks is given, but terms has no sinks");
  if (static_cast<std::int64_t>(gradients.sinks.size()) != plan.problem().query_heads) {
    throw Error(ErrorCode::shape_mismatch, "gradients.sinks has " + std::to_string(gradients.sinks.size()) +
                                               " entries, expected one for each of " +
                                               std::to_string(plan.problem().query_heads) + " query heads");
  }
}

constexpr Memory kNoMemory{"", nullptr, nullptr, nullptr, false};

template <class T>
Memory memory_if_given(const TensorView<T>& tensor, const char* name) {
  return tensor.data() != nullptr ? memory_of(tensor, name) : kNoMemory;
}

template <class T>
Memory memory_of(std::span<T> values, const char* name) {
  return memory_of(TensorView<T>(values, 1, static_cast<std::int64_t>(values.size())), name);
}

template <class T>
void require_shape(const FeaturesView<T>& input, const TensorShape& expected, const char* name,
                   const char* axes_names) {
  if (input.storage() == FeatureStorage::dense) return require_shape(input.dense(), expected, name, axes_names);
  if (input.shape() != expected) throw_shape_mismatch(input.shape(), expected, name, axes_names);
}

template <class T>
void require_inputs(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                    const FeaturesView<T>& value) {
  require_shape(query, query_shape(plan), "query", kQueryAxes);
  require_shape(key, key_shape(plan), "key", kKeyAxes);
  require_shape(value, value_shape(plan), "value", kValueAxes);
}

/// Calls visit(values of one matrix) for a compressed input, batch entry by batch entry and head by head.
template <class T, class Visit>
void for_each_matrix(const FeaturesView<T>& input, Visit visit) {
  if (input.storage() == FeatureStorage::csr) {
    for (const CsrView<T>& matrix : input.csr().matrices()) visit(matrix.values);
  } else if (input.storage() == FeatureStorage::bsr) {
    for (const BsrView<T>& matrix : input.bsr().matrices()) visit(matrix.values);
  }
}

template <class T>
void add_memory(const FeaturesView<T>& input, const char* name, std::vector<Memory>& to) {
  if (input.storage() == FeatureStorage::dense) return to.push_back(memory_of(input.dense(), name));
  for_each_matrix(input, [&](std::span<const T> values) { to.push_back(memory_of(values, name)); });
}

template <class T>
void add_memory(const FeatureGradientView<T>& gradient, const char* name, std::vector<Memory>& to) {
  if (const auto* tensor = std::get_if<TensorView<T>>(&gradient)) return to.push_back(memory_of(*tensor, name));
  for (const std::span<T>& values : std::get<1>(gradient)) to.push_back(memory_of(values, name));
}

/// One value for each of the input's, or a dense tensor.
template <class T>
void require_gradient(const FeatureGradientView<T>& gradient, const FeaturesView<T>& input, const TensorShape& shape,
                      const char* name, const char* axes_names) {
  if (const auto* tensor = std::get_if<TensorView<T>>(&gradient)) {
    require_shape(*tensor, shape, name, axes_names);
    return require_distinct_elements(*tensor, name);
  }
  const auto& spans = std::get<1>(gradient);
  if (input.storage() == FeatureStorage::dense) {
    throw Error(ErrorCode::invalid_argument, std::string(name) + " has values of a compressed input, which is dense");
  }
  if (static_cast<std::int64_t>(spans.size()) != shape.batch * shape.heads) {
    throw Error(ErrorCode::shape_mismatch, std::string(name) + " has values of " + std::to_string(spans.size()) +
                                               " matrices, expected " + std::to_string(shape.batch * shape.heads));
  }
  std::size_t index = 0;
  for_each_matrix(input, [&](std::span<const T> values) {
    const std::size_t found = spans[index++].size();
    if (found == values.size()) return;
    throw Error(ErrorCode::shape_mismatch, std::string(name) + " has " + std::to_string(found) + " values of matrix " +
                                               std::to_string(index - 1) + ", expected " +
                                               std::to_string(values.size()));
  });
}

}  // namespace

TensorShape query_shape(const Plan& plan) {
  const Problem& problem = plan.problem();
  return {problem.batch, problem.query_heads, plan.patterns().rows(), problem.head_dim};
}
TensorShape key_shape(const Plan& plan) {
  const Problem& problem = plan.problem();
  return {problem.batch, problem.key_value_heads, plan.patterns().columns(), problem.head_dim};
}
TensorShape value_shape(const Plan& plan) {
  const Problem& problem = plan.problem();
  return {problem.batch, problem.key_value_heads, plan.patterns().columns(), problem.value_dim};
}
TensorShape output_shape(const Plan& plan) {
  const Problem& problem = plan.problem();
  return {problem.batch, problem.query_heads, plan.patterns().rows(), problem.value_dim};
}
TensorShape lse_shape(const Plan& plan) {
  const Problem& problem = plan.problem();
  return {problem.batch, problem.query_heads, plan.patterns().rows(), 1};
}

template <class T>
void validate_forward(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                      const AttentionView<T>& result, const ScoreTerms<T>& terms) {
  require_inputs(plan, query, key, value);
  require_terms(plan, terms);
  require_shape(result.output, output_shape(plan), "result.output", kOutputAxes);
  require_shape(result.lse, lse_shape(plan), "result.lse", kLseAxes);
  require_distinct_elements(result.output, "result.output");
  require_distinct_elements(result.lse, "result.lse");
  require_outputs_apart({memory_of(result.output, "result.output"), memory_of(result.lse, "result.lse")},
                        {memory_of(query, "query"), memory_of(key, "key"), memory_of(value, "value"),
                         memory_if_given(terms.bias.values, "bias.values"),
                         memory_of(terms.alibi_slopes, "alibi_slopes"), memory_of(terms.sinks, "sinks")});
}

template <class T>
void validate_backward(const Plan& plan, TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                       const AttentionView<const T>& result, TensorView<const T> grad_output,
                       const BackwardOptions<T>& options, const GradientsView<T>& gradients) {
  require_purpose(plan, false);
  require_inputs(plan, query, key, value);
  require_shape(result.output, output_shape(plan), "result.output", kOutputAxes);
  require_shape(result.lse, lse_shape(plan), "result.lse", kLseAxes);
  require_shape(grad_output, output_shape(plan), "grad_output", kOutputAxes);
  if (options.grad_lse.data() != nullptr) require_shape(options.grad_lse, lse_shape(plan), "grad_lse", kLseAxes);
  require_shape(gradients.query, query_shape(plan), "gradients.query", kQueryAxes);
  require_shape(gradients.key, key_shape(plan), "gradients.key", kKeyAxes);
  require_shape(gradients.value, value_shape(plan), "gradients.value", kValueAxes);
  require_distinct_elements(gradients.query, "gradients.query");
  require_distinct_elements(gradients.key, "gradients.key");
  require_distinct_elements(gradients.value, "gradients.value");
  require_terms(plan, options.terms);
  require_term_gradients(plan, options.terms, gradients);
  require_outputs_apart(
      {memory_of(gradients.query, "gradients.query"), memory_of(gradients.key, "gradients.key"),
       memory_of(gradients.value, "gradients.value"), memory_if_given(gradients.bias, "gradients.bias"),
       memory_of(gradients.sinks, "gradients.sinks")},
      {memory_of(query, "query"), memory_of(key, "key"), memory_of(value, "value"),
       memory_of(result.output, "result.output"), memory_of(result.lse, "result.lse"),
       memory_of(grad_output, "grad_output"), memory_if_given(options.grad_lse, "grad_lse"),
       memory_if_given(options.terms.bias.values, "bias.values"), memory_of(options.terms.alibi_slopes, "alibi_slopes"),
       memory_of(options.terms.sinks, "sinks")});
}

template <class T>
void validate_forward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                      const FeaturesView<T>& value, const AttentionView<T>& result, const ScoreTerms<T>& terms) {
  require_inputs(plan, query, key, value);
  require_terms(plan, terms);
  require_shape(result.output, output_shape(plan), "result.output", kOutputAxes);
  require_shape(result.lse, lse_shape(plan), "result.lse", kLseAxes);
  require_distinct_elements(result.output, "result.output");
  require_distinct_elements(result.lse, "result.lse");
  std::vector<Memory> inputs = {memory_if_given(terms.bias.values, "bias.values"),
                                memory_of(terms.alibi_slopes, "alibi_slopes"), memory_of(terms.sinks, "sinks")};
  add_memory(query, "query", inputs);
  add_memory(key, "key", inputs);
  add_memory(value, "value", inputs);
  require_outputs_apart({memory_of(result.output, "result.output"), memory_of(result.lse, "result.lse")}, inputs);
}

template <class T>
void validate_backward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                       const FeaturesView<T>& value, const AttentionView<const T>& result,
                       TensorView<const T> grad_output, const BackwardOptions<T>& options,
                       const FeatureGradientsView<T>& gradients) {
  require_purpose(plan, false);
  require_inputs(plan, query, key, value);
  require_shape(result.output, output_shape(plan), "result.output", kOutputAxes);
  require_shape(result.lse, lse_shape(plan), "result.lse", kLseAxes);
  require_shape(grad_output, output_shape(plan), "grad_output", kOutputAxes);
  if (options.grad_lse.data() != nullptr) require_shape(options.grad_lse, lse_shape(plan), "grad_lse", kLseAxes);
  require_gradient(gradients.query, query, query_shape(plan), "gradients.query", kQueryAxes);
  require_gradient(gradients.key, key, key_shape(plan), "gradients.key", kKeyAxes);
  require_gradient(gradients.value, value, value_shape(plan), "gradients.value", kValueAxes);
  require_terms(plan, options.terms);
  require_term_gradients(plan, options.terms, gradients);
  std::vector<Memory> outputs = {memory_if_given(gradients.bias, "gradients.bias"),
                                 memory_of(gradients.sinks, "gradients.sinks")};
  add_memory(gradients.query, "gradients.query", outputs);
  add_memory(gradients.key, "gradients.key", outputs);
  add_memory(gradients.value, "gradients.value", outputs);
  std::vector<Memory> inputs = {memory_of(result.output, "result.output"),
                                memory_of(result.lse, "result.lse"),
                                memory_of(grad_output, "grad_output"),
                                memory_if_given(options.grad_lse, "grad_lse"),
                                memory_if_given(options.terms.bias.values, "bias.values"),
                                memory_of(options.terms.alibi_slopes, "alibi_slopes"),
                                memory_of(options.terms.sinks, "sinks")};
  add_memory(query, "query", inputs);
  add_memory(key, "key", inputs);
  add_memory(value, "value", inputs);
  require_outputs_apart(outputs, inputs);
}

TensorShape score_weights_shape(const Plan& plan) {
  const Problem& problem = plan.problem();
  return {problem.batch, problem.query_heads, problem.head_dim, problem.head_dim};
}
TensorShape value_weights_shape(const Plan& plan) {
  const Problem& problem = plan.problem();
  return {problem.batch, problem.key_value_heads, problem.head_dim, problem.value_dim};
}

template <class T>
void validate_parameters(const Plan& plan, const ParameterInputs<T>& inputs, const TensorView<const T>* grad_output) {
  require_purpose(plan, true);
  require_shape(inputs.query_input, query_shape(plan), "query_input", kQueryAxes);
  require_shape(inputs.key, key_shape(plan), "key", kKeyAxes);
  require_shape(inputs.value_input, key_shape(plan), "value_input", kValueInputAxes);
  require_shape(inputs.score_weights, score_weights_shape(plan), "score_weights", kScoreWeightAxes);
  require_shape(inputs.value_weights, value_weights_shape(plan), "value_weights", kValueWeightAxes);
  if (grad_output != nullptr) require_shape(*grad_output, output_shape(plan), "grad_output", kOutputAxes);
}

template void validate_parameters(const Plan&, const ParameterInputs<float>&, const TensorView<const float>*);
template void validate_parameters(const Plan&, const ParameterInputs<double>&, const TensorView<const double>*);
template void validate_forward(const Plan&, TensorView<const float>, TensorView<const float>, TensorView<const float>,
                               const AttentionView<float>&, const ScoreTerms<float>&);
template void validate_backward(const Plan&, TensorView<const float>, TensorView<const float>, TensorView<const float>,
                                const AttentionView<const float>&, TensorView<const float>,
                                const BackwardOptions<float>&, const GradientsView<float>&);
template void validate_forward(const Plan&, TensorView<const double>, TensorView<const double>,
                               TensorView<const double>, const AttentionView<double>&, const ScoreTerms<double>&);
template void validate_backward(const Plan&, TensorView<const double>, TensorView<const double>,
                                TensorView<const double>, const AttentionView<const double>&, TensorView<const double>,
                                const BackwardOptions<double>&, const GradientsView<double>&);
template void validate_forward(const Plan&, TensorView<const bfloat16>, TensorView<const bfloat16>,
                               TensorView<const bfloat16>, const AttentionView<bfloat16>&, const ScoreTerms<bfloat16>&);
template void validate_backward(const Plan&, TensorView<const bfloat16>, TensorView<const bfloat16>,
                                TensorView<const bfloat16>, const AttentionView<const bfloat16>&,
                                TensorView<const bfloat16>, const BackwardOptions<bfloat16>&,
                                const GradientsView<bfloat16>&);
template void validate_forward(const Plan&, TensorView<const float16>, TensorView<const float16>,
                               TensorView<const float16>, const AttentionView<float16>&, const ScoreTerms<float16>&);
template void validate_backward(const Plan&, TensorView<const float16>, TensorView<const float16>,
                                TensorView<const float16>, const AttentionView<const float16>&,
                                TensorView<const float16>, const BackwardOptions<float16>&,
                                const GradientsView<float16>&);

#define COBBLE_INSTANTIATE(T)                                                                                          \
  template void validate_forward(const Plan&, const FeaturesView<T>&, const FeaturesView<T>&, const FeaturesView<T>&,  \
                                 const AttentionView<T>&, const ScoreTerms<T>&);                                       \
  template void validate_backward(const Plan&, const FeaturesView<T>&, const FeaturesView<T>&, const FeaturesView<T>&, \
                                  const AttentionView<const T>&, TensorView<const T>, const BackwardOptions<T>&,       \
                                  const FeatureGradientsView<T>&);
COBBLE_INSTANTIATE(float)
COBBLE_INSTANTIATE(double)
#undef COBBLE_INSTANTIATE

}  // namespace cobble::detail
