#pragma once

#include <string>

namespace cobble::program {

/// Replaces the file's content. Throws Error{file_write}.
void write_file(const std::string& path, const std::string& content);

}  // namespace cobble::program
