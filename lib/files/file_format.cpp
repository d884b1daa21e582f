#include "files/file_format.hpp"

#include <optional>
#include <string_view>

#include "cobble/error.hpp"
#include "files/matrix_market_header.hpp"
#include "files/npy.hpp"
#include "files/text_cursor.hpp"

namespace cobble {

std::string_view to_string(FileFormat format) noexcept {
  switch (format) {
    case FileFormat::matrix_market: return "matrix_market";
    case FileFormat::smtx: return "smtx";
    case FileFormat::npz: return "npz";
    case FileFormat::npy: return "npy";
  }
  return "unknown";
}

namespace detail {
namespace {

std::optional<FileFormat> format_of_name(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (ending == ".mtx") return FileFormat::matrix_market;
  if (ending == ".smtx") return FileFormat::smtx;
  if (ending == ".npz") return FileFormat::npz;
  if (ending == ".npy") return FileFormat::npy;
  return std::nullopt;
}

}  // namespace

FileFormat detect_format(std::span<const std::byte> bytes, const std::string& name) {
  if (looks_like_matrix_market(as_text(bytes))) return FileFormat::matrix_market;
  if (as_text(bytes).starts_with("PK\x03\x04")) return FileFormat::npz;
  if (looks_like_npy(bytes)) return FileFormat::npy;
  if (const std::optional<FileFormat> format = format_of_name(name)) return *format;
  throw FileError(ErrorCode::file_format, name, 0, 0,
                  "neither content nor name is of a known format: Matrix Market (.mtx), SMTX (.smtx), SciPy and NumPy"
                  " (.npz, .npy)");
}

FileFormat format_to_write(const std::filesystem::path& path) {
  if (const std::optional<FileFormat> format = format_of_name(path)) return *format;
  throw Error(ErrorCode::invalid_argument,
              path.string() + ": the name tells no format to write, expected .mtx, .smtx, .npz or .npy");
}

}  // namespace detail
}  // namespace cobble
