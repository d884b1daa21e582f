#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace cobble::detail {

/// Writes to a temporary file beside the target; commit() renames it to the target. Without commit(), or when anything
/// fails, the target stays as it was and the temporary file is removed.
class AtomicFile {
 public:
  /// Throws FileError{file_write}.
  explicit AtomicFile(const std::filesystem::path& target);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Appends, buffered. Throws FileError{file_write}.
  void write(std::string_view bytes);
  /// Throws FileError{file_write}.
  void commit();

 private:
  [[noreturn]] void fail(int error) const;
  void write_through(std::string_view bytes);
  void flush();

  std::string shown_path_;
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  std::string buffer_;
  int descriptor_ = -1;
};

}  // namespace cobble::detail
