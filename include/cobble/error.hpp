#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cobble {

/// What kind of fault an Error reports. The message says the rest.
enum class ErrorCode {
  invalid_argument,   ///< an argument has a value that is not allowed
  shape_mismatch,     ///< two arguments do not fit each other
  invalid_structure,  ///< compressed storage breaks an invariant
  overflow,           ///< a size or index does not fit its type
  unsupported,        ///< valid, but not something this library does
  file_not_found,     ///< a file cannot be opened
  file_format,        ///< a file is malformed
  file_write,         ///< a file cannot be written
  infeasible,         ///< no schedule fits the given fast memory
  model_violation,    ///< a walk breaks the rules of the I/O model
};

/// The short name of a code, e.g. "shape_mismatch".
std::string_view to_string(ErrorCode code) noexcept;

/// The one exception type of the library. The message is a single line that names the argument,
/// what was found and what was expected.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// An Error about a file's content: path, line and column (1-based; 0 where a binary format has none).
class FileError : public Error {
 public:
  FileError(ErrorCode code, const std::string& path, std::int64_t line, std::int64_t column,
            const std::string& message);

  const std::string& path() const noexcept { return path_; }
  std::int64_t line() const noexcept { return line_; }
  std::int64_t column() const noexcept { return column_; }

 private:
  std::string path_;
  std::int64_t line_;
  std::int64_t column_;
};

}  // namespace cobble
