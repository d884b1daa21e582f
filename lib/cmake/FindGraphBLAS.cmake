# SuiteSparse:GraphBLAS, of which older releases and Debian have no CMake package. Makes GraphBLAS::GraphBLAS.
find_path(GraphBLAS_INCLUDE_DIR GraphBLAS.h PATH_SUFFIXES suitesparse)
find_library(GraphBLAS_LIBRARY graphblas)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GraphBLAS REQUIRED_VARS GraphBLAS_LIBRARY GraphBLAS_INCLUDE_DIR)
mark_as_advanced(GraphBLAS_INCLUDE_DIR GraphBLAS_LIBRARY)

if(GraphBLAS_FOUND AND NOT TARGET GraphBLAS::GraphBLAS)
  add_library(GraphBLAS::GraphBLAS UNKNOWN IMPORTED)
  set_target_properties(GraphBLAS::GraphBLAS PROPERTIES
    IMPORTED_LOCATION "${GraphBLAS_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${GraphBLAS_INCLUDE_DIR}")
endif()
