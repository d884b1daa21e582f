#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "cobble/error.hpp"
#include "cobble/half.hpp"
#include "files/npy.hpp"

namespace cobble::detail {
namespace {

using Kind = NpyType::Kind;

template <class T>
T load(const std::byte* from, bool swapped) {
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if (swapped) std::reverse(bytes, bytes + sizeof(T));
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

/// Calls `visit(i, element)` for each element, as the type that it has in the file.
template <class T, class Visit>
void for_each_element(const NpyArray& array, Visit visit) {
  const bool swapped = array.header.type.swapped;
  for (std::int64_t i = 0; i < array.size; ++i) {
    visit(i, load<T>(array.data.data() + i * static_cast<std::int64_t>(sizeof(T)), swapped));
  }
}

/// Dispatches on integer types. Returns whether the array has one.
template <class Visit>
bool for_each_integer(const NpyArray& array, Visit visit) {
  const bool is_signed = array.header.type.kind == Kind::signed_integer;
  if (!is_signed && array.header.type.kind != Kind::unsigned_integer) return false;
  switch (array.header.type.bytes) {
    case 1:
      is_signed ? for_each_element<std::int8_t>(array, visit) : for_each_element<std::uint8_t>(array, visit);
      break;
    case 2:
      is_signed ? for_each_element<std::int16_t>(array, visit) : for_each_element<std::uint16_t>(array, visit);
      break;
    case 4:
      is_signed ? for_each_element<std::int32_t>(array, visit) : for_each_element<std::uint32_t>(array, visit);
      break;
    default:
      is_signed ? for_each_element<std::int64_t>(array, visit) : for_each_element<std::uint64_t>(array, visit);
      break;
  }
  return true;
}

}  // namespace

std::vector<std::int64_t> to_integers(const NpyArray& array) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(array.size));
  const bool is_integer = for_each_integer(array, [&](std::int64_t i, auto value) {
    if constexpr (std::is_same_v<decltype(value), std::uint64_t>) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        array.fail("element " + std::to_string(i) + " is " + std::to_string(value) +
                   ", which does not fit a signed 64-bit integer");
      }
    }
    result[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(value);
  });
  if (!is_integer) {
    array.fail("found elements of type '" + array.header.type.description + "', expected integers");
  }
  return result;
}

template <class T>
void to_reals(const NpyArray& array, T* to) {
  const auto store = [to](std::int64_t i, auto value) { to[i] = T(value); };
  if (for_each_integer(array, store)) return;
  const NpyType& type = array.header.type;
  if (type.kind == Kind::boolean) {
    for_each_element<std::uint8_t>(array, [to](std::int64_t i, std::uint8_t value) { to[i] = T(value != 0 ? 1 : 0); });
  } else if (type.kind == Kind::real && type.bytes == 2) {
    for_each_element<float16>(array, [&](std::int64_t i, float16 value) { store(i, static_cast<float>(value)); });
  } else if (type.kind == Kind::real && type.bytes == 4) {
    for_each_element<float>(array, store);
  } else if (type.kind == Kind::real) {
    for_each_element<double>(array, store);
  } else {
    array.fail("found elements of type '" + type.description + "', expected real numbers");
  }
}

template void to_reals<float>(const NpyArray& array, float* to);
template void to_reals<double>(const NpyArray& array, double* to);
template void to_reals<float16>(const NpyArray& array, float16* to);
template void to_reals<bfloat16>(const NpyArray& array, bfloat16* to);

std::vector<std::uint8_t> to_nonzeros(const NpyArray& array) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(array.size));
  const auto mark = [&](std::int64_t i, auto value) { result[static_cast<std::size_t>(i)] = value != 0 ? 1 : 0; };
  if (for_each_integer(array, mark)) return result;
  const NpyType& type = array.header.type;
  if (type.kind == Kind::boolean) {
    for_each_element<std::uint8_t>(array, mark);
  } else if (type.kind == Kind::real && type.bytes == 2) {
    for_each_element<float16>(array, [&](std::int64_t i, float16 value) { mark(i, value.bits & 0x7FFF); });
  } else if (type.kind == Kind::real && type.bytes == 4) {
    for_each_element<float>(array, mark);
  } else if (type.kind == Kind::real) {
    for_each_element<double>(array, mark);
  } else if (type.kind == Kind::complex && type.bytes == 8) {
    struct Complex {
      float parts[2];
    };
    // Swapping the whole swaps the parts, too, which does not matter to a zero.
    for_each_element<Complex>(array, [&](std::int64_t i, Complex z) { mark(i, z.parts[0] != 0 || z.parts[1] != 0); });
  } else if (type.kind == Kind::complex) {
    struct Complex {
      double parts[2];
    };
    for_each_element<Complex>(array, [&](std::int64_t i, Complex z) { mark(i, z.parts[0] != 0 || z.parts[1] != 0); });
  } else {
    array.fail("found elements of type '" + type.description + "', expected numbers");
  }
  return result;
}

std::string to_string_value(const NpyArray& array) {
  const NpyType& type = array.header.type;
  if (array.size != 1 || (type.kind != Kind::bytes && type.kind != Kind::text)) {
    array.fail("found elements of type '" + type.description + "' and shape " + shape_text(array.header.shape) +
               ", expected one string");
  }
  std::string value;
  if (type.kind == Kind::bytes) {
    for (const std::byte b : array.data) value += static_cast<char>(b);
  } else {
    for (std::int64_t i = 0; i < type.bytes; i += 4) {
      const auto character = load<std::uint32_t>(array.data.data() + i, type.swapped);
      value += character < 128 ? static_cast<char>(character) : '?';
    }
  }
  value.erase(value.find_last_not_of('\0') + 1);  // NumPy pads with zeros
  return value;
}

std::vector<std::int64_t> npy_strides(const NpyHeader& header) {
  const std::size_t axes = header.shape.size();
  std::vector<std::int64_t> strides(axes);
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < axes; ++i) {
    const std::size_t axis = header.fortran_order ? i : axes - 1 - i;
    strides[axis] = stride;
    // An empty array has no neighbours; the product of its other axes may not fit.
    if (__builtin_mul_overflow(stride, header.shape[axis], &stride)) return std::vector<std::int64_t>(axes, 0);
  }
  return strides;
}

}  // namespace cobble::detail
