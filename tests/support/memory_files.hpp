#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cobble/files.hpp"
#include "files/file_bytes.hpp"
#include "files/npy.hpp"
#include "files/npz_archive.hpp"

// Files that tests make up: texts, .npy arrays, .npz archives, and a place for those that must be on a disk.

namespace cobble::test {

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

inline CsrPattern read_pattern_text(std::string_view text, const std::string& name, const ReadOptions& options = {},
                                    ReadReport* report = nullptr) {
  return read_pattern_from_memory(bytes_of(text), name, options, report).to_csr();
}
inline CsrMatrix<double> read_csr_text(std::string_view text, const std::string& name, const ReadOptions& options = {},
                                       ReadReport* report = nullptr) {
  return read_csr_from_memory(bytes_of(text), name, options, report);
}

/// The bytes of some numbers as they lie in memory.
template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// A .npy file with any header, version 1.0.
inline std::string npy_with_header(const std::string& header, const std::string& data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFFU);
  file += static_cast<char>(header.size() >> 8U);
  return file + header + data;
}
inline std::string npy(std::string_view type, const std::vector<std::int64_t>& shape, const std::string& data) {
  return detail::npy_preamble(type, shape) + data;
}

/// A directory of its own, removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "cobble-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::filesystem::filesystem_error("mkdtemp", name, {});
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  const std::filesystem::path& path() const noexcept { return path_; }
  /// The names of the files in it.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}
inline std::string read_text(const std::filesystem::path& path) {
  const detail::FileBytes file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// A member of a .npz file to be made up: an array's type, shape and bytes.
struct Member {
  std::string name;
  std::string type;
  std::vector<std::int64_t> shape;
  std::string data;
};
inline std::string npz(const std::vector<Member>& members,
                       detail::Compression compression = detail::Compression::store) {
  const TemporaryDirectory directory;
  std::vector<detail::NpzEntry> entries;
  for (const Member& member : members)
    entries.push_back({member.name, member.type, member.shape, bytes_of(member.data)});
  detail::write_npz_archive(directory / "a.npz", entries, compression);
  return read_text(directory / "a.npz");
}

}  // namespace cobble::test
