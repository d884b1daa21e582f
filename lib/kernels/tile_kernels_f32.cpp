#include "kernels/isa_tables.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tile_kernels_f32.cpp"
#include <hwy/foreach_target.h>

#include "kernels/tile_kernels_table-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
const TileKernels<float>* kernels_f32() { return table<float>(); }
}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cobble::kernels {
namespace {
HWY_EXPORT(kernels_f32);
}

template <>
const TileKernels<float>& tile_kernels<float>() {
  return *HWY_DISPATCH_TABLE(kernels_f32)[chosen_target().GetIndex()]();
}

}  // namespace cobble::kernels
#endif
