#include "attention/listed_entries.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/compressed_operands.hpp"
#include "cobble/compressed.hpp"
#include "cobble/plan.hpp"

using namespace cobble;
using namespace cobble::detail;

namespace {

/// Two rows of three features, and keys 0 to 3, of which key 1 has no entry.
struct Example {
  std::vector<std::int32_t> row_offsets = {0, 3, 5};
  std::vector<std::int32_t> pair_keys = {0, 1, 3, 0, 2};
  std::vector<std::int64_t> entry_offsets = {0, 1, 1, 3, 6};
  std::vector<std::int32_t> features = {2, 0, 1, 0, 1, 2};
  std::vector<double> entries = {10, 1, 2, 3, 4, 5};
  std::vector<double> rows = {1, 2, 3, 4, 5, 6};
  std::vector<double> tile = {1, -1, 2, 3, -2};

  kernels::PairTile pairs() const { return {2, row_offsets.data(), pair_keys.data()}; }
  EntryRows<double> keys() const { return {entry_offsets.data(), features.data(), entries.data()}; }
};

TensorView<const float> view_of(const std::vector<float>& values, std::int64_t tokens) {
  return {values.data(), TensorShape{1, 1, tokens, std::ssize(values) / tokens}};
}

}  // namespace

TEST_CASE("products of a list of pairs with the entries of keys") {
  Example example;
  SUBCASE("scores") {
    std::vector<double> scores(5, 100);
    multiply_listed_entries<double>(example.pairs(), example.keys(), 2, {example.rows.data(), 3}, scores.data(), false);
    CHECK(scores == std::vector<double>{60, 0, 52, 120, 28});
    multiply_listed_entries<double>(example.pairs(), example.keys(), 1, {example.rows.data(), 3}, scores.data(), true);
    CHECK(scores == std::vector<double>{90, 0, 78, 180, 42});
  }
  SUBCASE("sums of rows") {
    add_listed_entries_to_rows<double>(example.pairs(), example.keys(), 2, example.tile.data(),
                                       {example.rows.data(), 3});
    CHECK(example.rows == std::vector<double>{13, 18, 43, 0, -3, 66});
  }
  SUBCASE("sums of entries") {
    std::vector<double> sums(6, 1);
    add_to_listed_entries<double>(example.pairs(), example.keys(), 2, example.tile.data(), {example.rows.data(), 3},
                                  sums.data());
    CHECK(sums == std::vector<double>{43, -15, -19, 5, 9, 13});
  }
}

TEST_CASE("lists of pairs take the entries of CSR where they are few, anything else in full") {
  std::vector<float> values(8 * 16, 0.0F);
  for (std::size_t token = 0; token < 8; ++token) values[token * 16 + token] = 1.0F;
  const CsrTensor<float> few = compress_threshold<float>(view_of(values, 8), 0.5F);
  const BsrTensor<float> blocks = compress_top_k_blocks<float>(view_of(values, 8), 1, 1, 1);
  for (float& value : values) value += 1.0F;
  const CsrTensor<float> many = compress_threshold<float>(view_of(values, 8), 0.5F);
  const auto takes = [](const FeaturesView<float>& input, bool takes_entries) {
    return compressed_operand(input, takes_entries).listed_products;
  };
  CHECK(takes(few, true));
  CHECK(!takes(few, false));
  CHECK(!takes(many, true));
  CHECK(!takes(blocks, true));
  CHECK(!takes(view_of(values, 8), true));
}
