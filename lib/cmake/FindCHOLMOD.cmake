# Finds SuiteSparse's CHOLMOD where it comes without CMake files of its own (Debian 12).
#
# Defines the imported target SuiteSparse::CHOLMOD, CHOLMOD_FOUND and CHOLMOD_VERSION.

find_path(CHOLMOD_INCLUDE_DIR cholmod.h PATH_SUFFIXES suitesparse)
find_library(CHOLMOD_LIBRARY cholmod)
find_library(CHOLMOD_CONFIG_LIBRARY suitesparseconfig)
mark_as_advanced(CHOLMOD_INCLUDE_DIR CHOLMOD_LIBRARY CHOLMOD_CONFIG_LIBRARY)

if(CHOLMOD_INCLUDE_DIR)
  # The version stands in cholmod_core.h up to SuiteSparse 5, in cholmod.h from 6 on.
  set(CHOLMOD_VERSION_HEADER "${CHOLMOD_INCLUDE_DIR}/cholmod.h")
  if(EXISTS "${CHOLMOD_INCLUDE_DIR}/cholmod_core.h")
    set(CHOLMOD_VERSION_HEADER "${CHOLMOD_INCLUDE_DIR}/cholmod_core.h")
  endif()
  set(CHOLMOD_VERSION "")
  foreach(part MAIN SUB SUBSUB)
    file(STRINGS "${CHOLMOD_VERSION_HEADER}" line LIMIT_COUNT 1 REGEX "^#define CHOLMOD_${part}_VERSION[ \t]+[0-9]+")
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND CHOLMOD_VERSION "${number}")
  endforeach()
  list(JOIN CHOLMOD_VERSION "." CHOLMOD_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CHOLMOD
  REQUIRED_VARS CHOLMOD_LIBRARY CHOLMOD_INCLUDE_DIR
  VERSION_VAR CHOLMOD_VERSION)

if(CHOLMOD_FOUND AND NOT TARGET SuiteSparse::CHOLMOD)
  add_library(SuiteSparse::CHOLMOD UNKNOWN IMPORTED)
  set_target_properties(SuiteSparse::CHOLMOD PROPERTIES
    IMPORTED_LOCATION "${CHOLMOD_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CHOLMOD_INCLUDE_DIR}")
  if(CHOLMOD_CONFIG_LIBRARY)
    set_target_properties(SuiteSparse::CHOLMOD PROPERTIES INTERFACE_LINK_LIBRARIES "${CHOLMOD_CONFIG_LIBRARY}")
  endif()
endif()
