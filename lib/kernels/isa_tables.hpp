#pragma once

#include <hwy/targets.h>

#include "kernels/tile_kernels.hpp"

namespace cobble::kernels {

/// Which column of Highway's dispatch tables is in use. Throws Error{invalid_argument} at the first call when
/// COBBLE_ISA names what is not available.
const hwy::ChosenTarget& chosen_target();

}  // namespace cobble::kernels
