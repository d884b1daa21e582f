# Finds SuiteSparse's COLAMD where it comes without CMake files of its own (Debian 12).
#
# Defines the imported target SuiteSparse::COLAMD and COLAMD_FOUND.

find_path(COLAMD_INCLUDE_DIR colamd.h PATH_SUFFIXES suitesparse)
find_library(COLAMD_LIBRARY colamd)
mark_as_advanced(COLAMD_INCLUDE_DIR COLAMD_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(COLAMD REQUIRED_VARS COLAMD_LIBRARY COLAMD_INCLUDE_DIR)

if(COLAMD_FOUND AND NOT TARGET SuiteSparse::COLAMD)
  add_library(SuiteSparse::COLAMD UNKNOWN IMPORTED)
  set_target_properties(SuiteSparse::COLAMD PROPERTIES
    IMPORTED_LOCATION "${COLAMD_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${COLAMD_INCLUDE_DIR}")
endif()
