#pragma once

#include <algorithm>

#include "attention/executor.hpp"
#include "attention/finite_inputs.hpp"
#include "cobble/compressed_attention.hpp"

// From the arguments of a pass to what the executor takes.

namespace cobble::detail {

template <class T>
TensorView<const T> dense_tensor(const FeaturesView<T>& input) {
  return input.storage() == FeatureStorage::dense ? input.dense() : TensorView<const T>();
}

/// Of how many features a token may store one for products of dense tiles to take the stored entries, or blocks, rather
/// than a panel in full. Measured with 64, 128 and 256 features on windows, both passes, one thread, AVX-512: at these
/// shares entries take 0.5 to 0.97 of the time, beyond them more than 1 in some case. The output's product gains least.
template <class T>
std::int64_t features_per_entry(const FeaturesView<T>& input, bool is_value) {
  if (input.storage() == FeatureStorage::csr || input.shape().batch * input.shape().heads == 0) return is_value ? 3 : 2;
  const BsrView<T>& matrix = input.bsr().at(0, 0);
  if (!multiplies_blocks(matrix)) return 7;  // the entries of a panel are copied first
  return std::min(matrix.block_rows, matrix.block_columns) >= 4 ? 2 : 5;
}

template <class T>
bool has_few_entries(const FeaturesView<T>& input, bool is_value) {
  if (input.storage() == FeatureStorage::dense) return false;
  return input.nnz() <= input.shape().size() / features_per_entry(input, is_value);
}

/// The same of products of lists of pairs, one entry after another, which take them in place.
template <class T>
bool has_few_listed_entries(const FeaturesView<T>& input) {
  if (input.storage() == FeatureStorage::dense || input.shape().size() == 0) return false;
  const double share = static_cast<double>(input.nnz()) / static_cast<double>(input.shape().size());
  return lists_take_entries(share, input.storage() == FeatureStorage::bsr);
}

/// Only then it matters whether inputs are finite.
template <class T>
bool may_take_entries(const PlanData& plan, const FeaturesView<T>& key, const FeaturesView<T>& value) {
  if (plan.whole_panels) return false;
  return has_few_entries(key, false) || has_few_entries(value, true) || has_few_listed_entries(key) ||
         has_few_listed_entries(value);
}

/// `takes_entries`: products may, by the plan and since inputs hold neither NaN nor infinity, so that the zeros that
/// are not stored matter to none.
template <class T>
CompressedOperand<T> compressed_operand(const FeaturesView<T>& input, bool takes_entries, bool is_value = false) {
  if (input.storage() == FeatureStorage::dense) return {};
  return {.input = &input,
          .sparse_products = takes_entries && has_few_entries(input, is_value),
          .listed_products = takes_entries && has_few_listed_entries(input)};
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
