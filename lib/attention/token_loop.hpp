#pragma once

#include <algorithm>
#include <cstdint>

#include "cobble/tensor.hpp"
#include "core/parallel_for.hpp"

namespace cobble::detail {

/// Calls body(batch, head, token) for each token of a tensor, in tasks of `tokens` neighbours.
template <class Body>
void for_each_token(const TensorShape& shape, std::int64_t tokens, const Body& body) {
  const std::int64_t parts = (shape.tokens + tokens - 1) / tokens;
  parallel_for(shape.batch * shape.heads * parts, [&](std::int64_t task) {
    const std::int64_t head = task / parts % shape.heads;
    const std::int64_t batch = task / parts / shape.heads;
    const std::int64_t begin = task % parts * tokens;
    const std::int64_t end = std::min(begin + tokens, shape.tokens);
    for (std::int64_t token = begin; token < end; ++token) body(batch, head, token);
  });
}

}  // namespace cobble::detail
