# Warnings and sanitizers of Cobble's own targets.

function(cobble_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # False alarms on every "literal" + std::string at -O2 (GCC bug 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(COBBLE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

set(cobble_sanitizers "${COBBLE_SANITIZE}")
if(COBBLE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "COBBLE_FUZZ needs clang (libFuzzer), not ${CMAKE_CXX_COMPILER_ID}")
  endif()
  # Coverage in all code; the targets themselves link libFuzzer's main.
  string(APPEND cobble_sanitizers ",fuzzer-no-link")
endif()
string(REGEX REPLACE "^," "" cobble_sanitizers "${cobble_sanitizers}")

if(cobble_sanitizers)
  add_compile_options(-fsanitize=${cobble_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${cobble_sanitizers})
endif()
if(COBBLE_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # oneTBB is not instrumented, so its header half must not be either.
  add_compile_options("-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/tests/tsan_ignorelist.txt")
endif()
