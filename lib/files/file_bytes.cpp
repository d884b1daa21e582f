#include "files/file_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "cobble/error.hpp"

namespace cobble::detail {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what, int error) {
  throw FileError(ErrorCode::file_not_found, path.string(), 0, 0,
                  std::string(what) + ": " + std::generic_category().message(error));
}

/// Closes on the way out.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const noexcept { return value_; }

 private:
  int value_;
};

constexpr std::int64_t kSmallestBuffer = std::int64_t{1} << 16;

}  // namespace

FileBytes::FileBytes(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path, "cannot be opened", errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, "cannot be read", errno);

  // One byte more than the file holds, so that the end of the file shows without growing the buffer.
  buffer_ = AlignedBuffer<std::byte>(S_ISREG(status.st_mode) ? std::int64_t{status.st_size} + 1 : kSmallestBuffer);
  while (true) {
    if (size_ == buffer_.size()) {
      AlignedBuffer<std::byte> larger(std::max(kSmallestBuffer, 2 * size_));
      std::copy_n(buffer_.data(), size_, larger.data());
      buffer_ = std::move(larger);
    }
    const ssize_t count = ::read(file.get(), buffer_.data() + size_, static_cast<std::size_t>(buffer_.size() - size_));
    if (count == 0) return;
    if (count > 0) {
      size_ += count;
    } else if (errno != EINTR) {
      fail(path, "cannot be read", errno);
    }
  }
}

}  // namespace cobble::detail
