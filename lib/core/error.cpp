#include "cobble/error.hpp"

namespace cobble {
namespace {

std::string located(const std::string& path, std::int64_t line, std::int64_t column, const std::string& message) {
  std::string text = path;
  if (line > 0) text += ":" + std::to_string(line);
  if (line > 0 && column > 0) text += ":" + std::to_string(column);
  return text + ": " + message;
}

}  // namespace

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::shape_mismatch: return "shape_mismatch";
    case ErrorCode::invalid_structure: return "invalid_structure";
    case ErrorCode::overflow: return "overflow";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::file_not_found: return "file_not_found";
    case ErrorCode::file_format: return "file_format";
    case ErrorCode::file_write: return "file_write";
    case ErrorCode::infeasible: return "infeasible";
    case ErrorCode::model_violation: return "model_violation";
  }
  return "unknown";
}

FileError::FileError(ErrorCode code, const std::string& path, std::int64_t line, std::int64_t column,
                     const std::string& message)
    : Error(code, located(path, line, column, message)), path_(path), line_(line), column_(column) {}

}  // namespace cobble
