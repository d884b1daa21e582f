# Finds hwloc, with hints from pkg-config where that is installed.
#
# Defines the imported target hwloc::hwloc, hwloc_FOUND and hwloc_VERSION.

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_hwloc QUIET hwloc)
endif()

find_path(hwloc_INCLUDE_DIR hwloc.h HINTS ${PC_hwloc_INCLUDE_DIRS})
find_library(hwloc_LIBRARY hwloc HINTS ${PC_hwloc_LIBRARY_DIRS})
mark_as_advanced(hwloc_INCLUDE_DIR hwloc_LIBRARY)

# The header states the version of the interface only; pkg-config has that of the library.
set(hwloc_VERSION "${PC_hwloc_VERSION}")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(hwloc
  REQUIRED_VARS hwloc_LIBRARY hwloc_INCLUDE_DIR
  VERSION_VAR hwloc_VERSION)

if(hwloc_FOUND AND NOT TARGET hwloc::hwloc)
  add_library(hwloc::hwloc UNKNOWN IMPORTED)
  set_target_properties(hwloc::hwloc PROPERTIES
    IMPORTED_LOCATION "${hwloc_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${hwloc_INCLUDE_DIR}")
endif()
