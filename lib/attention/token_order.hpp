#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "attention/parallel_for.hpp"
#include "cobble/tensor.hpp"

namespace cobble::detail {

/// Calls copy(from row, to row) for each token of each head, in parallel; `from_token` and `to_token` say which rows.
template <class T, class FromToken, class ToToken>
void copy_tokens(const TensorView<const T>& from, const TensorView<T>& to, FromToken from_token, ToToken to_token) {
  constexpr std::int64_t kTokens = 512;
  const TensorShape& shape = to.shape();
  const std::int64_t parts = (shape.tokens + kTokens - 1) / kTokens;
  const std::int64_t from_distance = from.strides().features;
  const std::int64_t to_distance = to.strides().features;
  parallel_for(shape.batch * shape.heads * parts, [&](std::int64_t task) {
    const std::int64_t head = task / parts % shape.heads;
    const std::int64_t batch = task / parts / shape.heads;
    const std::int64_t end = std::min(task % parts * kTokens + kTokens, shape.tokens);
    for (std::int64_t token = task % parts * kTokens; token < end; ++token) {
      const T* const source = from.row(batch, head, from_token(token));
      T* const target = to.row(batch, head, to_token(token));
      if (from_distance == 1 && to_distance == 1) {
        std::copy_n(source, shape.features, target);
        continue;
      }
      for (std::int64_t f = 0; f < shape.features; ++f) target[f * to_distance] = source[f * from_distance];
    }
  });
}

/// Token i of `to` is token order[i] of `from`.
template <class T>
void gather_tokens(const TensorView<const T>& from, std::span<const std::int32_t> order, const TensorView<T>& to) {
  copy_tokens<T>(
      from, to, [order](std::int64_t token) { return order[static_cast<std::size_t>(token)]; },
      [](std::int64_t token) { return token; });
}

/// Token order[i] of `to` is token i of `from`.
template <class T>
void scatter_tokens(const TensorView<const T>& from, std::span<const std::int32_t> order, const TensorView<T>& to) {
  copy_tokens<T>(
      from, to, [](std::int64_t token) { return token; },
      [order](std::int64_t token) { return order[static_cast<std::size_t>(token)]; });
}

}  // namespace cobble::detail
