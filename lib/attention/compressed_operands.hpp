#pragma once

#include "attention/executor.hpp"
#include "attention/finite_inputs.hpp"
#include "cobble/compressed_attention.hpp"

// From the arguments of a pass to what the executor takes.

namespace cobble::detail {

/// Products take stored entries one by one where a token stores fewer than one of so many features; a panel in full
/// costs less otherwise. Measured with 256 features; of BSR the entries of a panel are copied first.
inline constexpr std::int64_t kFeaturesPerEntry = 3;
inline constexpr std::int64_t kFeaturesPerBlockEntry = 6;

template <class T>
TensorView<const T> dense_tensor(const FeaturesView<T>& input) {
  return input.storage() == FeatureStorage::dense ? input.dense() : TensorView<const T>();
}

template <class T>
bool has_few_entries(const FeaturesView<T>& input) {
  if (input.storage() == FeatureStorage::dense) return false;
  const bool blocks = input.storage() == FeatureStorage::bsr;
  return input.nnz() < input.shape().size() / (blocks ? kFeaturesPerBlockEntry : kFeaturesPerEntry);
}

/// `all_finite`: inputs hold neither NaN nor infinity, so that the zeros that are not stored matter to no product.
template <class T>
CompressedOperand<T> compressed_operand(const FeaturesView<T>& input, bool all_finite) {
  if (input.storage() == FeatureStorage::dense) return {};
  return {.input = &input, .sparse_products = all_finite && has_few_entries(input)};
}

/// The tensor that a gradient goes to, if it does.
template <class T>
TensorView<T> dense_gradient(const FeatureGradientView<T>& gradient) {
  const auto* tensor = std::get_if<TensorView<T>>(&gradient);
  return tensor != nullptr ? *tensor : TensorView<T>();
}

template <class T>
std::span<const std::span<T>> gradient_values(const FeatureGradientView<T>& gradient) {
  const auto* values = std::get_if<std::vector<std::span<T>>>(&gradient);
  return values != nullptr ? std::span<const std::span<T>>(*values) : std::span<const std::span<T>>();
}

}  // namespace cobble::detail
