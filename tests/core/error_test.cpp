#include "cobble/error.hpp"

#include <doctest/doctest.h>

#include <array>
#include <set>
#include <string>

using namespace cobble;

TEST_CASE("every error code has a name of its own") {
  constexpr std::array kCodes{ErrorCode::invalid_argument, ErrorCode::shape_mismatch, ErrorCode::invalid_structure,
                              ErrorCode::overflow,         ErrorCode::unsupported,    ErrorCode::file_not_found,
                              ErrorCode::file_format,      ErrorCode::file_write,     ErrorCode::infeasible,
                              ErrorCode::model_violation};
  std::set<std::string> names;
  for (const ErrorCode code : kCodes) names.emplace(to_string(code));
  CHECK(names.size() == kCodes.size());
  CHECK(names.count("unknown") == 0);
  CHECK(to_string(ErrorCode::shape_mismatch) == "shape_mismatch");
}

TEST_CASE("an error keeps its code and message and is a std::runtime_error") {
  const Error error(ErrorCode::overflow, "rows = 3000000000 does not fit");
  CHECK(error.code() == ErrorCode::overflow);
  CHECK(std::string(static_cast<const std::runtime_error&>(error).what()) == "rows = 3000000000 does not fit");
}

TEST_CASE("a file error says path, line and column as far as they are known") {
  const FileError located(ErrorCode::file_format, "mask.mtx", 3, 7, "expected a row");
  CHECK(std::string(located.what()) == "mask.mtx:3:7: expected a row");
  CHECK(located.code() == ErrorCode::file_format);
  CHECK(located.path() == "mask.mtx");
  CHECK(located.line() == 3);
  CHECK(located.column() == 7);
  CHECK(std::string(FileError(ErrorCode::file_format, "mask.mtx", 3, 0, "x").what()) == "mask.mtx:3: x");
  CHECK(std::string(FileError(ErrorCode::file_not_found, "mask.npz", 0, 0, "x").what()) == "mask.npz: x");
}
