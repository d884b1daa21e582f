#include "run_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

extern char** environ;

namespace cobble::program {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, CloseFile>;

std::string content(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), file)) > 0;)
    text.append(part.data(), size);
  return text;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& command) {
  const TemporaryFile output(std::tmpfile());
  const TemporaryFile errors(std::tmpfile());
  if (!output || !errors)
    throw std::runtime_error(std::string("cannot make a temporary file: ") + std::strerror(errno));
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, fileno(output.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, fileno(errors.get()), STDERR_FILENO);
  pid_t process = 0;
  const int failure = posix_spawnp(&process, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failure != 0) return {127, "", std::strerror(failure)};

  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) throw std::runtime_error(std::string("waitpid: ") + std::strerror(errno));
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content(output.get()),
          content(errors.get())};
}

}  // namespace cobble::program
