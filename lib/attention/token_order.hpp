#pragma once

#include <cstdint>
#include <span>

#include "attention/conversions.hpp"
#include "attention/token_loop.hpp"
#include "cobble/tensor.hpp"

namespace cobble::detail {

/// Calls copy(from row, to row) for each token of each head, in parallel; `from_token` and `to_token` say which rows.
template <class T, class FromToken, class ToToken>
void copy_tokens(const TensorView<const T>& from, const TensorView<T>& to, FromToken from_token, ToToken to_token) {
  constexpr std::int64_t kTokens = 512;
  const std::int64_t from_distance = from.strides().features;
  const std::int64_t to_distance = to.strides().features;
  for_each_token(to.shape(), kTokens, [&](std::int64_t batch, std::int64_t head, std::int64_t token) {
    convert(to.shape().features, from.row(batch, head, from_token(token)), from_distance,
            to.row(batch, head, to_token(token)), to_distance);
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
