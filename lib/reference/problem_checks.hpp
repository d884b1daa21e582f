#pragma once

#include <cstdint>
#include <vector>

#include "cobble/reference.hpp"

// What must hold before the reference computes anything.

namespace cobble::detail {

template <class T>
bool is_given(const TensorView<const T>& tensor) {
  return tensor.data() != nullptr || tensor.shape() != TensorShape{};
}

/// Throws Error{shape_mismatch, invalid_argument} that names the argument.
template <class T>
void validate(const ReferenceProblem<T>& problem);

/// Throws Error{invalid_argument} unless the tokens of a sample increase within [0, size).
void validate_tokens(const std::vector<std::int64_t>& tokens, const char* name, std::int64_t size);

}  // namespace cobble::detail
