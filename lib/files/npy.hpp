#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// NumPy's array format (NEP 1, versions 1.0 to 3.0): a magic string, a header that is a Python dict literal, elements.

namespace cobble::detail {

/// The element type of an array, e.g. '<f4'.
struct NpyType {
  enum class Kind { boolean, signed_integer, unsigned_integer, real, complex, bytes, text };

  Kind kind = Kind::boolean;
  std::int64_t bytes = 1;   ///< of one element
  bool swapped = false;     ///< not in this machine's byte order
  std::string description;  ///< as in the file, for messages
};

struct NpyHeader {
  NpyType type;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Where an array comes from, for messages.
struct NpySource {
  std::string path;
  std::string member;  ///< of an archive; else empty

  /// Throws FileError{file_format}.
  [[noreturn]] void fail(const std::string& message) const;
};

/// An array in memory. Does not own its elements.
struct NpyArray {
  NpyHeader header;
  std::int64_t size = 1;  ///< elements
  std::span<const std::byte> data;
  NpySource source;

  [[noreturn]] void fail(const std::string& message) const { source.fail(message); }
};

/// Parses the dict literal. Throws FileError{file_format}.
NpyHeader parse_npy_header(std::string_view text, const NpySource& source);
/// "(3, 4)"
std::string shape_text(std::span<const std::int64_t> shape);

bool looks_like_npy(std::span<const std::byte> bytes) noexcept;
/// The elements are exactly the bytes behind the header. Throws FileError{file_format}, also for object arrays and
/// structured types.
NpyArray parse_npy(std::span<const std::byte> bytes, const NpySource& source);

/// The elements in the order in which they are stored, converted. Throw FileError{file_format} when the type has no
/// such meaning or an integer does not fit.
std::vector<std::int64_t> to_integers(const NpyArray& array);
/// `to` has room for array.size. T is float, double, float16 or bfloat16. Complex values are an error.
template <class T>
void to_reals(const NpyArray& array, T* to);
/// 1 where an element is not 0.
std::vector<std::uint8_t> to_nonzeros(const NpyArray& array);
/// A 0-d array of bytes or ASCII text.
std::string to_string_value(const NpyArray& array);

/// Elements between neighbours along each axis, as stored.
std::vector<std::int64_t> npy_strides(const NpyHeader& header);

/// Magic, version 1.0 and a header such that the elements begin at a multiple of 64 bytes. `description` is e.g.
/// "<f4".
std::string npy_preamble(std::string_view description, std::span<const std::int64_t> shape);

}  // namespace cobble::detail
