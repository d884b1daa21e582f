#pragma once

#include "cobble/interop/suitesparse.hpp"

namespace cobble::test {

/// GraphBLAS can be started once in a process.
inline void start_graphblas() {
  struct Graphblas {
    Graphblas() { GrB_init(GrB_NONBLOCKING); }
    ~Graphblas() { GrB_finalize(); }
  };
  static const Graphblas started;
}

}  // namespace cobble::test
