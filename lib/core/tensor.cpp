#include "cobble/tensor.hpp"

#include <string>

#include "core/checked.hpp"

namespace cobble {
namespace {

void require_non_negative(std::int64_t size, const char* axis) {
  if (size < 0) {
    throw Error(ErrorCode::invalid_argument,
                std::string("tensor axis ") + axis + " = " + std::to_string(size) + " is negative");
  }
}

}  // namespace

std::int64_t TensorShape::size() const {
  require_non_negative(batch, "batch");
  require_non_negative(heads, "heads");
  require_non_negative(tokens, "tokens");
  require_non_negative(features, "features");
  return checked_product({batch, heads, tokens, features}, "tensor size");
}

TensorStrides contiguous_strides(const TensorShape& shape) {
  static_cast<void>(shape.size());  // the products below cannot overflow unless an axis is 0
  if (shape.batch == 0 || shape.heads == 0 || shape.tokens == 0 || shape.features == 0) return {0, 0, 0, 1};
  return {shape.heads * shape.tokens * shape.features, shape.tokens * shape.features, shape.features, 1};
}

void detail::require_span_size(std::size_t size, std::int64_t tokens, std::int64_t features) {
  const std::int64_t expected = TensorShape{1, 1, tokens, features}.size();
  if (static_cast<std::int64_t>(size) != expected) {
    throw Error(ErrorCode::shape_mismatch, "the array holds " + std::to_string(size) + " elements, expected " +
                                               std::to_string(tokens) + " x " + std::to_string(features) + " = " +
                                               std::to_string(expected));
  }
}

}  // namespace cobble
