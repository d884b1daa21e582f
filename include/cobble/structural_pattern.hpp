#pragma once

#include <cstdint>

#include "cobble/bsr.hpp"
#include "cobble/compressed.hpp"
#include "cobble/csr.hpp"
#include "cobble/pattern.hpp"
#include "cobble/pattern_grid.hpp"

// The pairs of tokens whose scores compressed Q and K can make other than 0: those that share a feature. With
// compressed inputs their number is the paper's Z_QK (arXiv 2410.09397, section 4).
//
// To attend by this pattern is a choice of the model, and not what attention over the same Q and K does: a pair that
// shares no feature has the score 0, which takes part in the softmax with the weight exp(0), whereas a pair outside the
// pattern counts as minus infinity and takes no part. forward() never leaves a pair of its pattern out because of a
// missing product.
//
// A stored entry is a feature whatever its value. The products are computed by SuiteSparse:GraphBLAS (any-pair
// semiring) on the calling thread, a panel of rows at a time. GraphBLAS is initialised on the first call unless the
// program has done so, and never finalised: a program that calls GrB_init itself should do it before, one that calls
// GrB_finalize after the last call of these functions.

namespace cobble {

/// `query` is n_q tokens x features, `key` n_k tokens x features; the result is n_q x n_k, CSR-backed, of the pairs
/// that share a feature and, if a mask is given, are in the mask (n_q x n_k). O(pairs) memory. Throws what validate()
/// throws, Error{shape_mismatch} when features or the mask's sizes differ, Error{overflow} when memory is out.
Pattern structural_pattern(const CsrPatternView& query, const CsrPatternView& key);
Pattern structural_pattern(const CsrPatternView& query, const CsrPatternView& key, const Pattern& mask);

/// The number of those pairs. No more of them are stored at once than those of a panel of rows.
std::int64_t structural_pairs(const CsrPatternView& query, const CsrPatternView& key);
std::int64_t structural_pairs(const CsrPatternView& query, const CsrPatternView& key, const Pattern& mask);

/// The same for blocks over tokens x features, all of whose pairs inside the matrix are stored entries (unless bits say
/// otherwise). Where both sides cut the features alike and have no bits, the product is one of blocks and its result
/// BSR-backed; a mask is then intersected with it.
Pattern structural_pattern(const BsrPatternView& query, const BsrPatternView& key);
Pattern structural_pattern(const BsrPatternView& query, const BsrPatternView& key, const Pattern& mask);
std::int64_t structural_pairs(const BsrPatternView& query, const BsrPatternView& key);
std::int64_t structural_pairs(const BsrPatternView& query, const BsrPatternView& key, const Pattern& mask);

/// The pattern of every batch entry and query head, for make_plan(): query head h shares features with key head
/// h / (H_q / H_kv). `mask`, where given, holds for all. Throws what the functions above throw, Error{shape_mismatch}
/// when batch entries differ or H_kv does not divide H_q, Error{unsupported} for dense features, which all share.
template <class T>
PatternGrid structural_patterns(const FeaturesView<T>& query, const FeaturesView<T>& key,
                                const Pattern* mask = nullptr);

}  // namespace cobble
