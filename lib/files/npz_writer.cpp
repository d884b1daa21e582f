#include <zip.h>

#include <memory>

#include "cobble/error.hpp"
#include "files/npz_archive.hpp"

namespace cobble::detail {
namespace {

constexpr zip_uint16_t kFirstDosDate = (1U << 5U) | 1U;  // 1980-01-01, as NumPy writes

struct Discard {
  void operator()(zip_t* archive) const noexcept { zip_discard(archive); }
};

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& reason) {
  throw FileError(ErrorCode::file_write, path.string(), 0, 0, "cannot be written: " + reason);
}

}  // namespace

void write_npz_archive(const std::filesystem::path& path, std::span<const NpzEntry> entries, Compression compression) {
  int code = 0;
  // libzip writes beside the target and renames on closing.
  std::unique_ptr<zip_t, Discard> archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    fail(path, reason);
  }
  std::vector<std::string> preambles;  // must live until the archive is closed
  preambles.reserve(entries.size());
  for (const NpzEntry& entry : entries) {
    preambles.push_back(npy_preamble(entry.type, entry.shape));
    zip_buffer_fragment_t parts[2] = {};
    parts[0].data = reinterpret_cast<zip_uint8_t*>(preambles.back().data());
    parts[0].length = preambles.back().size();
    // libzip takes pointers to mutable bytes, but does not change them when it is told not to free them.
    parts[1].data = reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(entry.data.data()));
    parts[1].length = entry.data.size();
    zip_source_t* source = zip_source_buffer_fragment(archive.get(), parts, entry.data.empty() ? 1 : 2, 0);
    if (source == nullptr) fail(path, zip_strerror(archive.get()));
    const zip_int64_t index = zip_file_add(archive.get(), (entry.name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      const std::string reason = zip_strerror(archive.get());
      zip_source_free(source);
      fail(path, reason);
    }
    const auto position = static_cast<zip_uint64_t>(index);
    const zip_int32_t method = compression == Compression::deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    if (zip_set_file_compression(archive.get(), position, method, 0) != 0 ||
        zip_file_set_dostime(archive.get(), position, 0, kFirstDosDate, 0) != 0) {
      fail(path, zip_strerror(archive.get()));
    }
  }
  if (zip_close(archive.get()) != 0) fail(path, zip_strerror(archive.get()));
  static_cast<void>(archive.release());
}

}  // namespace cobble::detail
