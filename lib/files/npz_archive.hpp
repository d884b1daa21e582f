#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cobble/aligned_buffer.hpp"
#include "files/npy.hpp"

struct zip;

// NumPy's .npz: a ZIP archive of .npy members, stored or deflated. libzip reads and writes the container.

namespace cobble::detail {

/// An array that owns its bytes.
struct NpzMember {
  AlignedBuffer<std::byte> bytes;
  NpyArray array;
};

/// An archive in memory that stays where it is.
class NpzReader {
 public:
  /// Throws FileError{file_format}.
  NpzReader(std::span<const std::byte> bytes, const std::string& path);

  /// Whether there is a member `name`.npy.
  bool has(const std::string& name) const;
  /// Reads `name`.npy. Throws FileError{file_format} when it is not there, cannot be unpacked or is no array.
  NpzMember read(const std::string& name) const;

 private:
  [[noreturn]] void fail(const std::string& message) const;

  struct Close {
    void operator()(zip* archive) const noexcept;
  };
  std::string path_;
  std::size_t archive_bytes_;
  std::unique_ptr<zip, Close> archive_;
};

/// What is to be written as a member `name`.npy. Does not own.
struct NpzEntry {
  std::string name;
  std::string_view type;  ///< e.g. "<f4"
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

enum class Compression { store, deflate };

/// Writes to a temporary file and renames it. The same entries give the same bytes: members bear the date 1980-01-01.
/// Throws FileError{file_write}.
void write_npz_archive(const std::filesystem::path& path, std::span<const NpzEntry> entries, Compression compression);

}  // namespace cobble::detail
