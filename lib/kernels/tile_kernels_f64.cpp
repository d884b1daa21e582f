#include "kernels/isa_tables.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tile_kernels_f64.cpp"
#include <hwy/foreach_target.h>

#include "kernels/tile_kernels_table-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
const TileKernels<double>* kernels_f64() { return table<double>(); }
}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cobble::kernels {
namespace {
HWY_EXPORT(kernels_f64);
}

template <>
const TileKernels<double>& tile_kernels<double>() {
  return *HWY_DISPATCH_TABLE(kernels_f64)[chosen_target().GetIndex()]();
}

}  // namespace cobble::kernels
#endif
