# libzip's own CMake package refuses to load where its command line tools are not installed, which Debian keeps in
# packages of their own. Makes libzip::zip.
find_path(libzip_INCLUDE_DIR zip.h)
find_library(libzip_LIBRARY zip)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(libzip REQUIRED_VARS libzip_LIBRARY libzip_INCLUDE_DIR)
mark_as_advanced(libzip_INCLUDE_DIR libzip_LIBRARY)

if(libzip_FOUND AND NOT TARGET libzip::zip)
  add_library(libzip::zip UNKNOWN IMPORTED)
  set_target_properties(libzip::zip PROPERTIES
    IMPORTED_LOCATION "${libzip_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${libzip_INCLUDE_DIR}")
endif()
