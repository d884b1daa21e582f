#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cobble/files.hpp"

namespace cobble::detail {

/// read_npy from memory; `name` stands for the path in messages. T is float, double, float16 or bfloat16.
template <class T>
NumpyArray<T> read_npy_from_memory(std::span<const std::byte> bytes, const std::string& name);

/// read_tensor from memory.
template <class T>
Tensor<T> read_tensor_from_memory(std::span<const std::byte> bytes, const std::string& name);

}  // namespace cobble::detail
