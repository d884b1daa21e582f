#include "files/atomic_file.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/error_of.hpp"
#include "support/memory_files.hpp"

using cobble::detail::AtomicFile;
using cobble::test::error_of;
using cobble::test::read_text;
using cobble::test::TemporaryDirectory;

TEST_CASE("a file appears with its whole content on commit, and not before") {
  const TemporaryDirectory directory;
  const std::string large(1000000, 'x');
  AtomicFile file(directory / "a");
  file.write("begin ");
  file.write(large);
  file.write(" end");
  CHECK_FALSE(std::filesystem::exists(directory / "a"));
  file.commit();
  CHECK(read_text(directory / "a") == "begin " + large + " end");
  CHECK(directory.names() == std::vector<std::string>{"a"});
}

TEST_CASE("without commit the old file stays and no other is left") {
  const TemporaryDirectory directory;
  cobble::test::write_text(directory / "a", "old");
  { AtomicFile(directory / "a").write(std::string(1000000, 'x')); }
  CHECK(read_text(directory / "a") == "old");
  CHECK(directory.names() == std::vector<std::string>{"a"});
}

TEST_CASE("a replaced file keeps its permissions, a link stays a link") {
  const TemporaryDirectory directory;
  cobble::test::write_text(directory / "a", "old");
  std::filesystem::permissions(directory / "a",
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::create_symlink("a", directory / "link");
  AtomicFile file(directory / "link");
  file.write("new");
  file.commit();
  CHECK(std::filesystem::is_symlink(directory / "link"));
  CHECK(read_text(directory / "a") == "new");
  CHECK(std::filesystem::status(directory / "a").permissions() ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
}

TEST_CASE("a place that cannot be written is an error that names the file") {
  const TemporaryDirectory directory;
  const std::string missing = (directory / "no" / "a").string();
  CHECK(error_of([&] { AtomicFile file(missing); }) ==
        "file_write: " + missing + ": cannot be written: No such file or directory");
  CHECK(error_of([&] { AtomicFile file(directory.path()); }) ==
        "file_write: " + directory.path().string() + ": cannot be written: Is a directory");
}
