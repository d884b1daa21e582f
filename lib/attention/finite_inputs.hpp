#pragma once

#include <atomic>
#include <cstdint>

#include "attention/conversions.hpp"
#include "attention/token_loop.hpp"
#include "cobble/compressed.hpp"
#include "cobble/tensor.hpp"
#include "core/parallel_for.hpp"
#include "kernels/tile_kernels.hpp"

namespace cobble::detail {

template <class T>
bool all_finite(std::int64_t count, const T* x) {
  if constexpr (kIsHalf<T>) {
    return kernels::half_kernels<T>().all_finite(count, x);
  } else {
    return kernels::tile_kernels<T>().all_finite(count, x);
  }
}

/// Whether a tensor holds neither NaN nor infinity. One pass over it, cheap beside any product; false without a look
/// when its features do not lie side by side.
template <class T>
bool is_finite(const TensorView<const T>& tensor) {
  constexpr std::int64_t kTokens = 1024;
  const TensorShape& shape = tensor.shape();
  if (tensor.data() == nullptr || tensor.strides().features != 1) return false;
  std::atomic<bool> finite = true;
  for_each_token(shape, kTokens, [&](std::int64_t batch, std::int64_t head, std::int64_t token) {
    if (!finite.load(std::memory_order_relaxed)) return;
    if (!all_finite(shape.features, tensor.row(batch, head, token))) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

/// The same of any storage; padding of ragged blocks counts.
template <class T>
bool is_finite(const FeaturesView<T>& input) {
  const auto all_finite = [](const auto& matrices) {
    std::atomic<bool> finite = true;
    parallel_for(static_cast<std::int64_t>(matrices.size()), [&](std::int64_t task) {
      const std::span<const T> values = matrices[static_cast<std::size_t>(task)].values;
      if (!kernels::tile_kernels<T>().all_finite(static_cast<std::int64_t>(values.size()), values.data())) {
        finite.store(false, std::memory_order_relaxed);
      }
    });
    return finite.load();
  };
  switch (input.storage()) {
    case FeatureStorage::dense: return is_finite(input.dense());
    case FeatureStorage::csr: return all_finite(input.csr().matrices());
    case FeatureStorage::bsr: return all_finite(input.bsr().matrices());
  }
  return false;
}

}  // namespace cobble::detail
