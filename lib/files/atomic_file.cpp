#include "files/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "cobble/error.hpp"

namespace cobble::detail {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

/// What a rename would have to replace: the file itself, not a symbolic link to it.
std::filesystem::path link_target(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, error);
  return error ? path : resolved;
}

std::filesystem::path temporary_name(const std::filesystem::path& target) {
  static std::atomic<unsigned> counter{0};  // two threads of one process never share a name
  std::filesystem::path name = target;
  name += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
  return name;
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& target)
    : shown_path_(target.string()), target_(link_target(target)) {
  struct stat existing {};
  const bool replaces = ::stat(target_.c_str(), &existing) == 0;
  if (replaces && S_ISDIR(existing.st_mode)) fail(EISDIR);
  buffer_.reserve(kBufferBytes);
  do {
    temporary_ = temporary_name(target_);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) fail(errno);
  if (replaces) static_cast<void>(::fchmod(descriptor_, existing.st_mode & 07777U));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(int error) const {
  throw FileError(ErrorCode::file_write, shown_path_, 0, 0,
                  "cannot be written: " + std::generic_category().message(error));
}

void AtomicFile::write_through(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      fail(errno);
    }
  }
}

void AtomicFile::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void AtomicFile::write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes) {
    write_through(bytes);
  } else {
    buffer_.append(bytes);
  }
}

void AtomicFile::commit() {
  flush();
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) fail(errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

}  // namespace cobble::detail
