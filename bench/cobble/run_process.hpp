#pragma once

#include <string>
#include <vector>

namespace cobble::program {

struct ProcessResult {
  int status = 0;  ///< exit status; 127 when it could not be started, 128 + signal when it was killed
  std::string output;
  std::string errors;
};

/// Runs a program, found on PATH unless its name holds a '/', with nothing on stdin, and waits for it. Throws
/// std::runtime_error when the system cannot start processes.
ProcessResult run_process(const std::vector<std::string>& command);

}  // namespace cobble::program
