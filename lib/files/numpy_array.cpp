#include "files/numpy_array.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cobble/error.hpp"
#include "files/file_bytes.hpp"
#include "files/npy.hpp"

namespace cobble {
namespace {

/// Copies elements that lie at `strides` into C order.
template <class T>
AlignedBuffer<T> in_c_order(const AlignedBuffer<T>& from, const std::vector<std::int64_t>& shape,
                            const std::vector<std::int64_t>& strides) {
  AlignedBuffer<T> to(from.size());
  std::vector<std::int64_t> position(shape.size());
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < to.size(); ++i) {
    to[i] = from[at];
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      at += strides[axis];
      if (++position[axis] < shape[axis]) break;
      at -= strides[axis] * shape[axis];
      position[axis] = 0;
    }
  }
  return to;
}

}  // namespace

template <class T>
NumpyArray<T> detail::read_npy_from_memory(std::span<const std::byte> bytes, const std::string& name) {
  const NpyArray array = parse_npy(bytes, {name, {}});
  NumpyArray<T> result;
  result.shape = array.header.shape;
  result.values = AlignedBuffer<T>(array.size);
  to_reals(array, result.values.data());
  if (array.header.fortran_order && result.shape.size() > 1) {
    result.values = in_c_order(result.values, result.shape, npy_strides(array.header));
  }
  return result;
}

template <class T>
NumpyArray<T> read_npy(const std::filesystem::path& path) {
  const detail::FileBytes file(path);
  return detail::read_npy_from_memory<T>(file.bytes(), path.string());
}

template <class T>
Tensor<T> detail::read_tensor_from_memory(std::span<const std::byte> bytes, const std::string& name) {
  const NumpyArray<T> array = read_npy_from_memory<T>(bytes, name);
  const std::vector<std::int64_t>& shape = array.shape;
  if (shape.size() != 2 && shape.size() != 4) {
    throw FileError(ErrorCode::file_format, name, 0, 0,
                    "found an array of shape " + detail::shape_text(shape) +
                        ", expected tokens x features or batch x heads x tokens x features");
  }
  Tensor<T> tensor(shape.size() == 2 ? TensorShape{1, 1, shape[0], shape[1]}
                                     : TensorShape{shape[0], shape[1], shape[2], shape[3]});
  std::copy(array.values.begin(), array.values.end(), tensor.data());
  return tensor;
}

template <class T>
Tensor<T> read_tensor(const std::filesystem::path& path) {
  const detail::FileBytes file(path);
  return detail::read_tensor_from_memory<T>(file.bytes(), path.string());
}

template NumpyArray<float> detail::read_npy_from_memory<float>(std::span<const std::byte>, const std::string&);
template NumpyArray<double> detail::read_npy_from_memory<double>(std::span<const std::byte>, const std::string&);
template NumpyArray<float16> detail::read_npy_from_memory<float16>(std::span<const std::byte>, const std::string&);
template NumpyArray<bfloat16> detail::read_npy_from_memory<bfloat16>(std::span<const std::byte>, const std::string&);
template NumpyArray<float> read_npy<float>(const std::filesystem::path&);
template NumpyArray<double> read_npy<double>(const std::filesystem::path&);
template Tensor<float> detail::read_tensor_from_memory<float>(std::span<const std::byte>, const std::string&);
template Tensor<double> detail::read_tensor_from_memory<double>(std::span<const std::byte>, const std::string&);
template Tensor<float16> detail::read_tensor_from_memory<float16>(std::span<const std::byte>, const std::string&);
template Tensor<bfloat16> detail::read_tensor_from_memory<bfloat16>(std::span<const std::byte>, const std::string&);
template NumpyArray<float16> read_npy<float16>(const std::filesystem::path&);
template NumpyArray<bfloat16> read_npy<bfloat16>(const std::filesystem::path&);
template Tensor<float> read_tensor<float>(const std::filesystem::path&);
template Tensor<double> read_tensor<double>(const std::filesystem::path&);
template Tensor<float16> read_tensor<float16>(const std::filesystem::path&);
template Tensor<bfloat16> read_tensor<bfloat16>(const std::filesystem::path&);

}  // namespace cobble
