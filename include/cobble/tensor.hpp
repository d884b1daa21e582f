#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "cobble/aligned_buffer.hpp"

// Tensors of four axes: batch, heads, tokens, features.

namespace cobble {

/// The sizes of the four axes.
struct TensorShape {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t tokens = 0;
  std::int64_t features = 0;

  bool operator==(const TensorShape&) const = default;
  /// The number of elements. Throws Error{invalid_argument, overflow}.
  std::int64_t size() const;
};

/// Distances, in elements, between neighbours along each axis. Any value is allowed in an input, 0
/// (a broadcast axis) and negative ones included.
struct TensorStrides {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t tokens = 0;
  std::int64_t features = 1;

  bool operator==(const TensorStrides&) const = default;
};

/// The strides of a dense tensor in C order. Throws like TensorShape::size.
TensorStrides contiguous_strides(const TensorShape& shape);

/// Does not own: a pointer, a shape and strides.
template <class T>
class TensorView {
 public:
  using value_type = std::remove_const_t<T>;

  TensorView() = default;
  /// A dense tensor in C order at `data`.
  TensorView(T* data, const TensorShape& shape) : TensorView(data, shape, contiguous_strides(shape)) {}
  TensorView(T* data, const TensorShape& shape, const TensorStrides& strides)
      : data_(data), shape_(shape), strides_(strides) {}
  /// One batch, one head: tokens x features in C order. `data` must hold exactly that many elements, else
  /// Error{shape_mismatch}.
  TensorView(std::span<T> data, std::int64_t tokens, std::int64_t features);
  /// A view of mutable elements is a view of constant ones.
  template <class U>
  requires(std::is_same_v<const U, T> && !std::is_const_v<U>) TensorView(const TensorView<U>& other)
      : TensorView(other.data(), other.shape(), other.strides()) {}

  T* data() const noexcept { return data_; }
  const TensorShape& shape() const noexcept { return shape_; }
  const TensorStrides& strides() const noexcept { return strides_; }

  /// The first feature of a token; the next is strides().features further.
  T* row(std::int64_t batch, std::int64_t head, std::int64_t token) const noexcept {
    return data_ + batch * strides_.batch + head * strides_.heads + token * strides_.tokens;
  }
  T& operator()(std::int64_t batch, std::int64_t head, std::int64_t token, std::int64_t feature) const noexcept {
    return row(batch, head, token)[feature * strides_.features];
  }

 private:
  T* data_ = nullptr;
  TensorShape shape_{};
  TensorStrides strides_{};
};

namespace detail {
/// Throws Error{shape_mismatch} unless `size` elements make up tokens x features.
void require_span_size(std::size_t size, std::int64_t tokens, std::int64_t features);
}  // namespace detail

template <class T>
TensorView<T>::TensorView(std::span<T> data, std::int64_t tokens, std::int64_t features)
    : TensorView(data.data(), TensorShape{1, 1, tokens, features}) {
  detail::require_span_size(data.size(), tokens, features);
}

/// Owns a dense tensor in C order. The memory is not initialised.
template <class T>
class Tensor {
 public:
  using value_type = T;

  Tensor() = default;
  explicit Tensor(const TensorShape& shape) : buffer_(shape.size()), shape_(shape) {}

  const TensorShape& shape() const noexcept { return shape_; }
  T* data() noexcept { return buffer_.data(); }
  const T* data() const noexcept { return buffer_.data(); }
  std::span<T> values() noexcept { return {buffer_.data(), static_cast<std::size_t>(buffer_.size())}; }
  std::span<const T> values() const noexcept { return {buffer_.data(), static_cast<std::size_t>(buffer_.size())}; }

  TensorView<T> view() { return {buffer_.data(), shape_}; }
  TensorView<const T> view() const { return {buffer_.data(), shape_}; }
  operator TensorView<T>() { return view(); }
  operator TensorView<const T>() const { return view(); }

  T& operator()(std::int64_t batch, std::int64_t head, std::int64_t token, std::int64_t feature) noexcept {
    return buffer_[offset(batch, head, token, feature)];
  }
  const T& operator()(std::int64_t batch, std::int64_t head, std::int64_t token, std::int64_t feature) const noexcept {
    return buffer_[offset(batch, head, token, feature)];
  }

 private:
  std::int64_t offset(std::int64_t batch, std::int64_t head, std::int64_t token, std::int64_t feature) const noexcept {
    return ((batch * shape_.heads + head) * shape_.tokens + token) * shape_.features + feature;
  }

  AlignedBuffer<T> buffer_;
  TensorShape shape_{};
};

}  // namespace cobble
