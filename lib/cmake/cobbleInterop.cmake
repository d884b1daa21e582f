# The targets behind the interop headers, in this tree and in the installed package:
#   cobble::eigen        cobble/interop/eigen.hpp
#   cobble::suitesparse  cobble/interop/suitesparse.hpp
# Without its packages a target does not exist and cobble_<name>_FOUND is false. Needs CMAKE_MODULE_PATH to hold this
# directory.
macro(cobble_add_interop name)
  if("${name}" STREQUAL "eigen")
    find_package(Eigen3 3.4 ${ARGN} NO_MODULE)
    set(cobble_interop_packages Eigen3::Eigen)
  elseif("${name}" STREQUAL "suitesparse")
    find_package(CHOLMOD ${ARGN})
    find_package(GraphBLAS ${ARGN})
    set(cobble_interop_packages SuiteSparse::CHOLMOD GraphBLAS::GraphBLAS)
  else()
    set(cobble_interop_packages cobble::no_such_component)
  endif()

  set(cobble_${name}_FOUND TRUE)
  foreach(cobble_interop_package IN LISTS cobble_interop_packages)
    if(NOT TARGET ${cobble_interop_package})
      set(cobble_${name}_FOUND FALSE)
    endif()
  endforeach()
  if(cobble_${name}_FOUND AND NOT TARGET cobble::${name})
    add_library(cobble::${name} INTERFACE IMPORTED GLOBAL)
    target_link_libraries(cobble::${name} INTERFACE cobble::cobble ${cobble_interop_packages})
  endif()
endmacro()
