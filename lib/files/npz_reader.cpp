#include <zip.h>

#include <algorithm>
#include <utility>

#include "cobble/error.hpp"
#include "files/npz_archive.hpp"

namespace cobble::detail {
namespace {

/// Deflate turns at most 1032 bytes into one (RFC 1951: 258 bytes from two one-bit codes).
constexpr zip_uint64_t kLargestDeflateRatio = 1032;

struct CloseMember {
  void operator()(zip_file_t* member) const noexcept { zip_fclose(member); }
};

}  // namespace

void NpzReader::Close::operator()(zip* archive) const noexcept { zip_discard(archive); }

void NpzReader::fail(const std::string& message) const {
  throw FileError(ErrorCode::file_format, path_, 0, 0, message);
}

NpzReader::NpzReader(std::span<const std::byte> bytes, const std::string& path)
    : path_(path), archive_bytes_(bytes.size()) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source != nullptr) archive_.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (archive_ == nullptr) {
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    zip_source_free(source);
    fail("is no readable ZIP archive: " + reason);
  }
  zip_error_fini(&error);
}

bool NpzReader::has(const std::string& name) const {
  return zip_name_locate(archive_.get(), (name + ".npy").c_str(), 0) >= 0;
}

NpzMember NpzReader::read(const std::string& name) const {
  const std::string file_name = name + ".npy";
  const zip_int64_t index = zip_name_locate(archive_.get(), file_name.c_str(), 0);
  if (index < 0) fail("has no member '" + file_name + "'");
  zip_stat_t status;
  zip_stat_init(&status);
  constexpr zip_uint64_t needed =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (zip_stat_index(archive_.get(), static_cast<zip_uint64_t>(index), 0, &status) != 0 ||
      (status.valid & needed) != needed) {
    fail("member '" + file_name + "' has no complete description");
  }
  const bool stored = status.comp_method == ZIP_CM_STORE;
  if ((!stored && status.comp_method != ZIP_CM_DEFLATE) || status.encryption_method != ZIP_EM_NONE) {
    fail("member '" + file_name + "' is encrypted or packed in another way, expected stored or deflated");
  }
  // Nothing is allocated for a size that the archive cannot hold.
  if (status.comp_size > archive_bytes_ ||
      status.size > (stored ? status.comp_size : status.comp_size * kLargestDeflateRatio)) {
    fail("member '" + file_name + "' claims " + std::to_string(status.size) + " bytes, which " +
         std::to_string(std::min<zip_uint64_t>(status.comp_size, archive_bytes_)) + " packed ones cannot hold");
  }
  const std::unique_ptr<zip_file_t, CloseMember> member(
      zip_fopen_index(archive_.get(), static_cast<zip_uint64_t>(index), 0));
  if (member == nullptr) fail("member '" + file_name + "' cannot be unpacked: " + zip_strerror(archive_.get()));

  NpzMember result;
  const auto size = static_cast<std::int64_t>(status.size);
  // One byte more than it claims shows a member that goes on, and makes libzip check the sum at the end.
  result.bytes = AlignedBuffer<std::byte>(size + 1);
  std::int64_t done = 0;
  while (done <= size) {
    const zip_int64_t count =
        zip_fread(member.get(), result.bytes.data() + done, static_cast<zip_uint64_t>(size + 1 - done));
    if (count < 0) {
      fail("member '" + file_name + "' cannot be unpacked: " + zip_error_strerror(zip_file_get_error(member.get())));
    }
    if (count == 0) break;
    done += count;
  }
  if (done != size) {
    fail("member '" + file_name + "' holds " + (done < size ? std::to_string(done) + " bytes" : "more bytes") +
         ", expected " + std::to_string(size));
  }
  result.array = parse_npy({result.bytes.data(), static_cast<std::size_t>(size)}, {path_, file_name});
  return result;
}

}  // namespace cobble::detail
