#include "kernels/half_kernels.hpp"

#include "kernels/isa_tables.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/half_kernels.cpp"
#include <hwy/foreach_target.h>

#include "kernels/half_kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {
const HalfKernels<bfloat16>* kernels_bf16() { return half_table<bfloat16>(); }
const HalfKernels<float16>* kernels_f16() { return half_table<float16>(); }
}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cobble::kernels {
namespace {
HWY_EXPORT(kernels_bf16);
HWY_EXPORT(kernels_f16);
}  // namespace

template <>
const HalfKernels<bfloat16>& half_kernels<bfloat16>() {
  return *HWY_DISPATCH_TABLE(kernels_bf16)[chosen_target().GetIndex()]();
}
template <>
const HalfKernels<float16>& half_kernels<float16>() {
  return *HWY_DISPATCH_TABLE(kernels_f16)[chosen_target().GetIndex()]();
}

}  // namespace cobble::kernels
#endif
