#include <cobble/cobble.hpp>
#include <cstdint>
#include <cstdio>
#include <vector>

// A consumer of the library: attention forward and backward on a window with a leading token. With all queries and
// keys zero every probability of a row is one over its pairs, so the gradients of the values add up to the tokens.
int main() {
  using namespace cobble;
  constexpr std::int64_t kTokens = 100;
  constexpr std::int64_t kFeatures = 8;
  const Pattern pattern = window(kTokens, 7, 0) | leading_tokens(kTokens, 1);
  const Plan plan = make_plan(pattern, {.head_dim = kFeatures});

  const std::vector<float> zeros(kTokens * kFeatures, 0.0F);
  const std::vector<float> ones(kTokens * kFeatures, 1.0F);
  const TensorView<const float> query(zeros, kTokens, kFeatures);
  const TensorView<const float> value(ones, kTokens, kFeatures);
  const Attention<float> result = forward(plan, query, query, value);
  const Gradients<float> gradients = backward(plan, query, query, value, result, value);

  double sum = 0;
  for (const float entry : gradients.value.values()) sum += static_cast<double>(entry);
  const double error = sum / (kTokens * kFeatures) - 1;
  std::printf("%lld pairs, output %g, error of the gradients' sum %.1e\n", static_cast<long long>(pattern.pairs()),
              static_cast<double>(result.output(0, 0, 99, 0)), error);
  return error < 1e-5 && error > -1e-5 ? 0 : 1;
}
