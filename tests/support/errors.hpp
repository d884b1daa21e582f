#pragma once

#include <string>

#include "cobble/error.hpp"

namespace cobble::test {

/// What the call throws as an Error, as "code: message"; "no error" when it returns.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.what();
  }
  return "no error";
}

}  // namespace cobble::test
