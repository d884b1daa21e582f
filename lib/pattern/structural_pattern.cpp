#include "cobble/structural_pattern.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cobble/convert.hpp"
#include "cobble/error.hpp"
#include "pattern/any_pair_product.hpp"
#include "pattern/stored_patterns.hpp"

namespace cobble {
namespace {

using detail::ProductRows;
using detail::ProductWanted;

template <class View>
void require_fit(const View& query, const View& key, const Pattern* mask) {
  validate(query);
  validate(key);
  if (query.columns != key.columns) {
    throw Error(ErrorCode::shape_mismatch, "key has " + std::to_string(key.columns) +
                                               " features, expected as many as query, " +
                                               std::to_string(query.columns));
  }
  if (mask != nullptr && (mask->rows() != query.rows || mask->columns() != key.rows)) {
    throw Error(ErrorCode::shape_mismatch, "mask is " + std::to_string(mask->rows()) + " x " +
                                               std::to_string(mask->columns()) + ", expected queries x keys, " +
                                               std::to_string(query.rows) + " x " + std::to_string(key.rows));
  }
}

CsrPattern product(const CsrPatternView& query, const CsrPatternView& key, const Pattern* mask) {
  CsrPattern result;
  result.rows = query.rows;
  result.columns = key.rows;
  detail::any_pair_product(query, key, mask, ProductWanted::pairs, [&result](const ProductRows& rows) {
    const std::int64_t base = std::ssize(result.column_indices);
    for (const std::uint64_t column : rows.columns) {
      result.column_indices.push_back(static_cast<std::int32_t>(column));
    }
    for (std::size_t row = 1; row < rows.row_offsets.size(); ++row) {
      result.row_offsets.push_back(base + static_cast<std::int64_t>(rows.row_offsets[row]));
    }
  });
  return result;
}

Pattern csr_product(const CsrPatternView& query, const CsrPatternView& key, const Pattern* mask) {
  require_fit(query, key, mask);
  return detail::csr_pattern(product(query, key, mask));
}

std::int64_t count_csr(const CsrPatternView& query, const CsrPatternView& key, const Pattern* mask) {
  require_fit(query, key, mask);
  std::int64_t pairs = 0;
  detail::any_pair_product(query, key, mask, ProductWanted::count,
                           [&pairs](const ProductRows& rows) { pairs += rows.pairs; });
  return pairs;
}

/// Whether a product of the blocks says all about that of their entries.
bool blocks_suffice(const BsrPatternView& query, const BsrPatternView& key) {
  return query.block_columns == key.block_columns && query.bits.empty() && key.bits.empty();
}

CsrPatternView blocks_of(const BsrPatternView& matrix) {
  return {matrix.row_panels(), matrix.column_panels(), matrix.block_row_offsets, matrix.block_column_indices};
}

Pattern block_product(const BsrPatternView& query, const BsrPatternView& key) {
  CsrPattern blocks = product(blocks_of(query), blocks_of(key), nullptr);
  return detail::bsr_pattern({query.rows,
                              key.rows,
                              query.block_rows,
                              key.block_rows,
                              std::move(blocks.row_offsets),
                              std::move(blocks.column_indices),
                              {}});
}

}  // namespace

Pattern structural_pattern(const CsrPatternView& query, const CsrPatternView& key) {
  return csr_product(query, key, nullptr);
}
Pattern structural_pattern(const CsrPatternView& query, const CsrPatternView& key, const Pattern& mask) {
  return csr_product(query, key, &mask);
}

std::int64_t structural_pairs(const CsrPatternView& query, const CsrPatternView& key) {
  return count_csr(query, key, nullptr);
}
std::int64_t structural_pairs(const CsrPatternView& query, const CsrPatternView& key, const Pattern& mask) {
  return count_csr(query, key, &mask);
}

Pattern structural_pattern(const BsrPatternView& query, const BsrPatternView& key) {
  require_fit(query, key, nullptr);
  return blocks_suffice(query, key) ? block_product(query, key) : csr_product(to_csr(query), to_csr(key), nullptr);
}
Pattern structural_pattern(const BsrPatternView& query, const BsrPatternView& key, const Pattern& mask) {
  require_fit(query, key, &mask);
  return blocks_suffice(query, key) ? block_product(query, key) & mask : csr_product(to_csr(query), to_csr(key), &mask);
}

std::int64_t structural_pairs(const BsrPatternView& query, const BsrPatternView& key) {
  require_fit(query, key, nullptr);
  return blocks_suffice(query, key) ? block_product(query, key).pairs()
                                    : count_csr(to_csr(query), to_csr(key), nullptr);
}
std::int64_t structural_pairs(const BsrPatternView& query, const BsrPatternView& key, const Pattern& mask) {
  require_fit(query, key, &mask);
  return blocks_suffice(query, key) ? (block_product(query, key) & mask).pairs()
                                    : count_csr(to_csr(query), to_csr(key), &mask);
}

namespace {

template <class T>
Pattern pattern_of_head(const FeaturesView<T>& query, const FeaturesView<T>& key, std::int64_t batch,
                        std::int64_t query_head, std::int64_t key_head, const Pattern* mask) {
  const auto csr_of = [batch](const FeaturesView<T>& features, std::int64_t head) {
    if (features.storage() == FeatureStorage::bsr) return to_csr(BsrPatternView(features.bsr().at(batch, head)));
    const CsrPatternView& matrix = features.csr().at(batch, head);
    return CsrPattern{matrix.rows,
                      matrix.columns,
                      {matrix.row_offsets.begin(), matrix.row_offsets.end()},
                      {matrix.column_indices.begin(), matrix.column_indices.end()}};
  };
  if (query.storage() == FeatureStorage::bsr && key.storage() == FeatureStorage::bsr) {
    const BsrPatternView& query_blocks = query.bsr().at(batch, query_head);
    const BsrPatternView& key_blocks = key.bsr().at(batch, key_head);
    return mask != nullptr ? structural_pattern(query_blocks, key_blocks, *mask)
                           : structural_pattern(query_blocks, key_blocks);
  }
  return csr_product(csr_of(query, query_head), csr_of(key, key_head), mask);
}

}  // namespace

template <class T>
PatternGrid structural_patterns(const FeaturesView<T>& query, const FeaturesView<T>& key, const Pattern* mask) {
  const TensorShape& of_query = query.shape();
  const TensorShape& of_key = key.shape();
  if (query.storage() == FeatureStorage::dense || key.storage() == FeatureStorage::dense) {
    throw Error(ErrorCode::unsupported, std::string(query.storage() == FeatureStorage::dense ? "query" : "key") +
                                            " is dense, expected CSR or BSR: all pairs share its features");
  }
  if (of_query.batch != of_key.batch || of_key.heads == 0 || of_query.heads % of_key.heads != 0) {
    throw Error(ErrorCode::shape_mismatch, "key has " + std::to_string(of_key.batch) + " batch entries and " +
                                               std::to_string(of_key.heads) + " heads, expected " +
                                               std::to_string(of_query.batch) + " and a divisor of the query's " +
                                               std::to_string(of_query.heads));
  }
  std::vector<Pattern> patterns;
  for (std::int64_t batch = 0; batch < of_query.batch; ++batch) {
    for (std::int64_t head = 0; head < of_query.heads; ++head) {
      const std::int64_t key_head = head / (of_query.heads / of_key.heads);
      patterns.push_back(pattern_of_head(query, key, batch, head, key_head, mask));
    }
  }
  return {std::move(patterns), of_query.batch, of_query.heads};
}

template PatternGrid structural_patterns(const FeaturesView<float>&, const FeaturesView<float>&, const Pattern*);
template PatternGrid structural_patterns(const FeaturesView<double>&, const FeaturesView<double>&, const Pattern*);

}  // namespace cobble
