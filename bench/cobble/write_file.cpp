#include "write_file.hpp"

#include <fstream>

#include "cobble/error.hpp"

namespace cobble::program {

void write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) throw Error(ErrorCode::file_write, "cannot write \"" + path + "\"");
}

}  // namespace cobble::program
