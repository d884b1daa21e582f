#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "cobble/aligned_buffer.hpp"

namespace cobble::detail {

/// The whole content of a file, read at once. Not mapped: a mapped file that another process shortens would end this
/// one with SIGBUS, and pipes cannot be mapped.
class FileBytes {
 public:
  /// Throws FileError{file_not_found} when the file cannot be opened or read.
  explicit FileBytes(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const noexcept { return {buffer_.data(), static_cast<std::size_t>(size_)}; }

 private:
  AlignedBuffer<std::byte> buffer_;
  std::int64_t size_ = 0;
};

}  // namespace cobble::detail
