# Writes COMMIT_HEADER with the commit of SOURCE_DIR, when it is another than before. Run by every build, so that a
# measurement says what it measured.

execute_process(COMMAND git -C "${SOURCE_DIR}" describe --always --dirty --abbrev=40 --match=
  OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)  # empty outside a repository
set(content "#pragma once\n\nnamespace cobble::program {\n\ninline constexpr const char* kCommit = \"${commit}\";\n\n}\n")
if(EXISTS "${COMMIT_HEADER}")
  file(READ "${COMMIT_HEADER}" before)
endif()
if(NOT content STREQUAL before)
  file(WRITE "${COMMIT_HEADER}" "${content}")
endif()
