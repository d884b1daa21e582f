#include "attention/term_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/parallel_for.hpp"

namespace cobble::detail {
namespace {

/// delta of a row, in which an output that is 0 throughout counts as constant: a row without pairs has no use for
/// grad_output, whatever it holds.
template <class Storage>
double row_delta(const PassTensors<Storage>& tensors, std::int64_t batch, std::int64_t head, std::int64_t row) {
  const auto delta = *tensors.delta.row(batch, head, row);
  if (!std::isnan(delta)) return static_cast<double>(delta);
  for (std::int64_t f = 0; f < tensors.result_output.shape().features; ++f) {
    if (static_cast<double>(tensors.result_output(batch, head, row, f)) != 0) return static_cast<double>(delta);
  }
  return tensors.grad_lse.data() == nullptr ? 0 : -static_cast<double>(*tensors.grad_lse.row(batch, head, row));
}

/// The rows [begin, end) of a head.
template <class Storage>
double sink_gradient(const PassTensors<Storage>& tensors, std::int64_t batch, std::int64_t head, Range rows) {
  const auto sink = static_cast<double>(tensors.terms.given.sinks[static_cast<std::size_t>(head)]);
  double gradient = 0;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const double p = std::exp(sink - static_cast<double>(*tensors.result_lse.row(batch, head, row)));
    // A sink of -infinity in a row without pairs: exp(-inf - -inf) is no number.
    if (sink != -std::numeric_limits<double>::infinity()) gradient -= p * row_delta(tensors, batch, head, row);
  }
  return gradient;
}

}  // namespace

template <class T>
bool takes_bias_gradient_along(const PlanData& plan, const TensorView<T>& grad_bias) {
  const TensorShape& shape = grad_bias.shape();
  const bool own = shape.batch == plan.problem.batch && shape.heads == plan.problem.query_heads;
  return grad_bias.data() != nullptr && (own || plan.schedule == Schedule::materialize);
}

template <class T>
void set_zero_bias_gradient(const TensorView<T>& grad_bias) {
  if (grad_bias.data() == nullptr) return;
  const TensorShape& shape = grad_bias.shape();
  parallel_for(shape.batch * shape.heads, [&](std::int64_t matrix) {
    std::fill_n(grad_bias.row(matrix / shape.heads, matrix % shape.heads, 0), shape.features, T{0});
  });
}

template <class Storage>
void sink_gradients(const PassTensors<Storage>& tensors, std::span<Storage> grad_sinks) {
  constexpr std::int64_t kRows = 4096;  // of a part of the sum, whatever the threads
  const TensorShape& shape = tensors.result_lse.shape();
  const std::int64_t parts = shape.batch * divide_up(shape.tokens, kRows);
  const auto heads = static_cast<std::int64_t>(grad_sinks.size());
  std::vector<double> sums(static_cast<std::size_t>(heads * parts));
  parallel_for(heads * parts, [&](std::int64_t index) {
    const std::int64_t part = index % parts;
    const std::int64_t first = part / shape.batch * kRows;
    sums[static_cast<std::size_t>(index)] =
        sink_gradient(tensors, part % shape.batch, index / parts, {first, std::min(first + kRows, shape.tokens)});
  });
  for (std::int64_t head = 0; head < heads; ++head) {
    double sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums[static_cast<std::size_t>(head * parts + part)];
    grad_sinks[static_cast<std::size_t>(head)] = static_cast<Storage>(sum);
  }
}

template bool takes_bias_gradient_along(const PlanData&, const TensorView<float>&);
template bool takes_bias_gradient_along(const PlanData&, const TensorView<double>&);
template void set_zero_bias_gradient(const TensorView<float>&);
template void set_zero_bias_gradient(const TensorView<double>&);
template void sink_gradients(const PassTensors<float>&, std::span<float>);
template void sink_gradients(const PassTensors<double>&, std::span<double>);
template void sink_gradients(const PassTensors<bfloat16>&, std::span<bfloat16>);
template void sink_gradients(const PassTensors<float16>&, std::span<float16>);

}  // namespace cobble::detail
