#include "files/numpy_array.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/error_of.hpp"
#include "support/memory_files.hpp"

using cobble::NumpyArray;
using cobble::Tensor;
using cobble::detail::read_npy_from_memory;
using cobble::test::bytes_of;
using cobble::test::error_of;
using cobble::test::npy;
using cobble::test::npy_with_header;
using cobble::test::raw;

namespace {

template <class T>
std::vector<T> values_of(const std::string& file) {
  const NumpyArray<T> array = read_npy_from_memory<T>(bytes_of(file), "a.npy");
  return {array.values.begin(), array.values.end()};
}

std::string reversed_bytes(std::string data, std::size_t element_bytes) {
  for (std::size_t i = 0; i < data.size(); i += element_bytes) {
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(i),
                 data.begin() + static_cast<std::ptrdiff_t>(i + element_bytes));
  }
  return data;
}

}  // namespace

TEST_CASE_TEMPLATE("arrays of every real type are converted, in either byte order", T, float, double) {
  CHECK(values_of<T>(npy("|b1", {3}, std::string("\0\1\2", 3))) == std::vector<T>{0, 1, 1});
  CHECK(values_of<T>(npy("|i1", {2}, raw(std::vector<std::int8_t>{-128, 127}))) == std::vector<T>{-128, 127});
  CHECK(values_of<T>(npy("<u2", {1}, raw(std::vector<std::uint16_t>{65535}))) == std::vector<T>{65535});
  CHECK(values_of<T>(npy(">i4", {1}, reversed_bytes(raw(std::vector<std::int32_t>{-70000}), 4))) ==
        std::vector<T>{-70000});
  CHECK(values_of<T>(npy("<u8", {1}, raw(std::vector<std::uint64_t>{~std::uint64_t{0}}))) ==
        std::vector<T>{static_cast<T>(18446744073709551616.0)});
  CHECK(values_of<T>(npy(">f4", {2}, reversed_bytes(raw(std::vector<float>{1.5F, -2}), 4))) == std::vector<T>{1.5, -2});
  CHECK(values_of<T>(npy(">f8", {1}, reversed_bytes(raw(std::vector<double>{0.1}), 8))) ==
        std::vector<T>{static_cast<T>(0.1)});
}

TEST_CASE("every float16 has its value") {
  const auto half = [](std::uint16_t bits) {
    return values_of<double>(npy("<f2", {1}, raw(std::vector<std::uint16_t>{bits}))).front();
  };
  CHECK(half(0x3C00) == 1);
  CHECK(half(0xC000) == -2);
  CHECK(half(0x3555) == 0.333251953125);
  CHECK(half(0x7BFF) == 65504);
  CHECK(half(0x0001) == std::ldexp(1.0, -24));
  CHECK(half(0x0400) == std::ldexp(1.0, -14));
  CHECK(half(0x7C00) == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(half(0x7E00)));
  CHECK(std::signbit(half(0x8000)));
}

TEST_CASE_TEMPLATE("every real type can be read as halves, rounded once", T, cobble::float16, cobble::bfloat16) {
  const double tie = 1 + static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  CHECK(values_of<T>(npy("<f8", {2}, raw(std::vector<double>{tie, tie + 0x1p-40}))) ==
        std::vector<T>{T(1), T(2 * tie - 1)});
  CHECK(values_of<T>(npy("<f4", {1}, raw(std::vector<float>{-2.5F}))) == std::vector<T>{T(-2.5)});
  CHECK(values_of<T>(npy("<f2", {2}, raw(std::vector<std::uint16_t>{0x3C00, 0x0001}))) ==
        std::vector<T>{T(1), T(0x1p-24)});
  CHECK(values_of<T>(npy("<i8", {1}, raw(std::vector<std::int64_t>{-256}))) == std::vector<T>{T(-256)});
  CHECK(values_of<T>(npy("|b1", {2}, std::string("\0\1", 2))) == std::vector<T>{T(0), T(1)});
}

TEST_CASE("Fortran order comes out in C order, for any number of axes") {
  const std::string header = "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 2), }";
  std::vector<std::int32_t> stored;  // a[i, j, k] = 100 i + 10 j + k, first axis fastest
  for (int k = 0; k < 2; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) stored.push_back(100 * i + 10 * j + k);
    }
  }
  CHECK(values_of<double>(npy_with_header(header, raw(stored))) ==
        std::vector<double>{0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121});
  const std::string empty = "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 0), }";
  CHECK(values_of<double>(npy_with_header(empty, "")).empty());
}

TEST_CASE("tensors have two or four axes") {
  const cobble::test::TemporaryDirectory directory;
  cobble::test::write_text(directory / "2.npy", npy("<f4", {2, 3}, raw(std::vector<float>{1, 2, 3, 4, 5, 6})));
  const Tensor<double> matrix = cobble::read_tensor<double>(directory / "2.npy");
  CHECK(matrix.shape() == cobble::TensorShape{1, 1, 2, 3});
  CHECK(matrix(0, 0, 1, 2) == 6);
  cobble::test::write_text(directory / "4.npy", npy("<f8", {2, 1, 1, 2}, raw(std::vector<double>{1, 2, 3, 4})));
  const Tensor<float> tensor = cobble::read_tensor<float>(directory / "4.npy");
  CHECK(tensor.shape() == cobble::TensorShape{2, 1, 1, 2});
  CHECK(tensor(1, 0, 0, 0) == 3);
  cobble::test::write_text(directory / "3.npy", npy("<f8", {1, 1, 1}, raw(std::vector<double>{1})));
  CHECK(error_of([&] { cobble::read_tensor<float>(directory / "3.npy"); }) ==
        "file_format: " + (directory / "3.npy").string() +
            ": found an array of shape (1, 1, 1), expected tokens x features or batch x heads x tokens x features");
}
