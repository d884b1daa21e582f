#include <type_traits>

#include "attention/executor.hpp"
#include "kernels/amx.hpp"
#include "kernels/bf16_product.hpp"

// Products of dense tiles from bfloat16 as it is stored, by AMX or by AVX-512 BF16. Other tiles are computed in float.

namespace cobble::detail {

template <class Storage>
bool Executor<Storage>::multiply_pairs_in_bf16(T alpha, Panel<Storage>& rows, Panel<Storage>& columns, Range features,
                                               T* tile) {
  if constexpr (!std::is_same_v<Storage, bfloat16>) {
    return false;
  } else {
    const bool whole = features == rows.features() && features == columns.features();
    if (!map_.is_dense() || !whole) return false;
    if (uses_avx512_bf16_) {
      const kernels::FeatureRows<const Storage> keys = columns.halves();
      const kernels::FeatureRows<const std::uint32_t> queries = rows.paired();
      kernels::Bf16PairProduct product = pair_product<Storage, std::uint32_t>(alpha, keys, queries, features, tile);
      product.a_inner_stride = 2;
      kernels::multiply_bf16_pairs(product);
      return true;
    }
    const bool fits = features.begin == 0 && features.size() >= kernels::kLeastAmxFeatures &&
                      features.size() <= kernels::kMostAmxFeatures;
    const kernels::FeatureRows<const Storage> keys = columns.stored();
    if (!uses_amx_ || !fits || keys.data == nullptr) return false;
    const kernels::FeatureRows<const std::uint32_t> queries = rows.paired();
    kernels::multiply_bf16({.rows = map_.keys(),
                            .columns = map_.stride(),
                            .inner = features.size(),
                            .alpha = alpha,
                            .a = keys.data,
                            .a_stride = keys.stride,
                            .b = queries.data,
                            .b_stride = queries.stride,
                            .c = tile,
                            .c_stride = map_.stride(),
                            .columns_of_row = map_.queries_of_key()});
    return true;
  }
}

template <class Storage>
bool Executor<Storage>::add_to_rows_in_bf16(T alpha, const T* tile, Panel<Storage>& columns, Range features,
                                            kernels::FeatureRows<T> to, bool add) {
  if constexpr (!std::is_same_v<Storage, bfloat16>) {
    return false;
  } else {
    if (!uses_avx512_bf16_) return false;
    const std::int64_t stride = map_.stride();
    kernels::round_key_pairs(map_.keys(), stride, tile, scratch_.rounded);
    const kernels::FeatureRows<const std::uint32_t> keys = columns.row_pairs(features);
    kernels::Bf16PairProduct product = row_product<Storage, std::uint32_t>(
        alpha, reinterpret_cast<const bfloat16*>(scratch_.rounded), keys, features, to, add);
    product.a_stride = 2;
    product.a_inner_stride = 2 * stride;
    kernels::multiply_bf16_pairs(product);
    return true;
  }
}

template <class Storage>
bool Executor<Storage>::multiply_columns_in_bf16(T alpha, const T* tile, Panel<Storage>& rows, Range features,
                                                 kernels::FeatureRows<T> to, bool add) {
  if constexpr (!std::is_same_v<Storage, bfloat16>) {
    return false;
  } else {
    if (!uses_avx512_bf16_) return false;
    const std::int64_t stride = map_.stride();
    auto* const rounded = reinterpret_cast<bfloat16*>(scratch_.rounded);
    kernels::round_query_pairs(map_.keys(), map_.rows(), stride, tile, rounded);
    const kernels::FeatureRows<const std::uint32_t> queries = rows.row_pairs(features);
    kernels::Bf16PairProduct product =
        column_product<Storage, std::uint32_t>(alpha, rounded, queries, features, to, add);
    product.a_inner_stride = 2;
    kernels::multiply_bf16_pairs(product);
    return true;
  }
}

template class Executor<float>;
template class Executor<double>;
template class Executor<bfloat16>;
template class Executor<float16>;

}  // namespace cobble::detail
