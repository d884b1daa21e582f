// A worked example of parameter gradients: attention with scores A1 X A2^T and values A3 Y is fitted to a target E by
// gradient descent on L(X, Y) = 1/2 |O - E|^2, whose gradient of O is O - E. Prints the loss as it falls, and fails
// when a step does not lower it.

#include <cobble/cobble.hpp>
#include <cstdint>
#include <iostream>

namespace {

using namespace cobble;

constexpr std::int64_t kTokens = 512;
constexpr std::int64_t kHeadDim = 32;

/// Numbers in [-1, 1) that are the same everywhere.
void fill(Tensor<float>& tensor, std::uint64_t seed) {
  for (float& element : tensor.values()) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    element = static_cast<float>(static_cast<double>(seed >> 11) * 0x1.0p-52 - 1);
  }
}

void step_down(Tensor<float>& weights, const Tensor<float>& gradient, float rate) {
  for (std::size_t i = 0; i < weights.values().size(); ++i) weights.values()[i] -= rate * gradient.values()[i];
}

}  // namespace

int main() {
  const Pattern pattern = window(kTokens, 32, 0) | leading_tokens(kTokens, 2);
  const Plan plan = make_plan(pattern, {.head_dim = kHeadDim}, {.parameter_gradients = true});

  const TensorShape tokens = {1, 1, kTokens, kHeadDim};
  const TensorShape weights = {1, 1, kHeadDim, kHeadDim};
  Tensor<float> a1(tokens), a2(tokens), a3(tokens), target(tokens), x(weights), y(weights);
  std::uint64_t seed = 1;
  for (Tensor<float>* tensor : {&a1, &a2, &a3, &target, &x, &y}) fill(*tensor, seed++);

  double before = 0;
  for (int step = 0; step <= 50; ++step) {
    const ParameterInputs<float> inputs = {a1, a2, a3, x, y};
    Attention<float> result = parameter_forward(plan, inputs);
    double loss = 0;
    for (std::size_t i = 0; i < target.values().size(); ++i) {
      float& residual = result.output.values()[i];
      residual -= target.values()[i];
      loss += 0.5 * static_cast<double>(residual) * static_cast<double>(residual);
    }
    if (step % 10 == 0) std::cout << "step " << step << ": loss " << loss << '\n';
    if (step > 0 && loss >= before) return 1;
    before = loss;
    const ParameterGradients<float> gradients = parameter_gradients(plan, inputs, result.output);
    step_down(x, gradients.score_weights, 1e-2F);
    step_down(y, gradients.value_weights, 1e-2F);
  }
}
