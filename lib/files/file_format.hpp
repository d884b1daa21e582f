#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "cobble/files.hpp"

namespace cobble::detail {

/// By content, then by the ending of the name. Throws FileError{file_format} that lists the known formats.
FileFormat detect_format(std::span<const std::byte> bytes, const std::string& name);

/// By the ending of the name alone. Throws Error{invalid_argument} that lists the known endings.
FileFormat format_to_write(const std::filesystem::path& path);

}  // namespace cobble::detail
