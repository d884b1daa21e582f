// The table of kernels of one target. Included once for each.
#if defined(COBBLE_KERNELS_TILE_KERNELS_TABLE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef COBBLE_KERNELS_TILE_KERNELS_TABLE_INL
#undef COBBLE_KERNELS_TILE_KERNELS_TABLE_INL
#else
#define COBBLE_KERNELS_TILE_KERNELS_TABLE_INL
#endif

#include "kernels/pair_softmax-inl.hpp"
#include "kernels/pairs-inl.hpp"
#include "kernels/product-inl.hpp"
#include "kernels/softmax-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cobble::kernels::HWY_NAMESPACE {
namespace {

template <class T>
const TileKernels<T>* table() {
  static constexpr TileKernels<T> kTable = {.multiply = multiply<T>,
                                            .transpose = transpose<T>,
                                            .online_softmax = online_softmax<T>,
                                            .row_statistics = row_statistics<T>,
                                            .probabilities = probabilities<T>,
                                            .grad_scores = grad_scores<T>,
                                            .pair_products = pair_products<T>,
                                            .pairs_to_rows = pairs_to_rows<T>,
                                            .pairs_to_keys = pairs_to_keys<T>,
                                            .pair_online_softmax = pair_online_softmax<T>,
                                            .pair_row_statistics = pair_row_statistics<T>,
                                            .pair_probabilities = pair_probabilities<T>,
                                            .pair_grad_scores = pair_grad_scores<T>,
                                            .dot = dot<T>,
                                            .axpy = axpy<T>,
                                            .scale = scale<T>,
                                            .exp_shifted = exp_shifted<T>,
                                            .all_finite = all_finite<T>,
                                            .finish_rows = finish_rows<T>};
  return &kTable;
}

}  // namespace
}  // namespace cobble::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
