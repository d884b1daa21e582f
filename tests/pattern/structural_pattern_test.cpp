#include "cobble/structural_pattern.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cobble/convert.hpp"
#include "cobble/files.hpp"
#include "cobble/pattern_grid.hpp"
#include "support/error_of.hpp"
#include "support/random.hpp"
#include "support/sparse.hpp"

namespace cobble {
namespace {

using test::error_of;
using test::Random;

bool share_a_column(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return std::any_of(a.begin(), a.end(), [b](std::int32_t column) { return std::ranges::find(b, column) != b.end(); });
}

/// By asking every pair of tokens.
CsrPattern brute_force(const CsrPatternView& query, const CsrPatternView& key, const Pattern& mask) {
  CsrPattern result;
  result.rows = query.rows;
  result.columns = key.rows;
  for (std::int64_t i = 0; i < query.rows; ++i) {
    for (std::int64_t j = 0; j < key.rows; ++j) {
      if (mask.contains(i, j) && share_a_column(query.row(i), key.row(j))) {
        result.column_indices.push_back(static_cast<std::int32_t>(j));
      }
    }
    result.row_offsets.push_back(static_cast<std::int64_t>(result.column_indices.size()));
  }
  return result;
}

template <class Matrix>
void check_against_brute_force(const Matrix& query, const Matrix& key, const CsrPattern& query_rows,
                               const CsrPattern& key_rows) {
  const Pattern all = full(query.rows, key.rows);
  const CsrPattern expected = brute_force(query_rows, key_rows, all);
  CHECK(structural_pattern(query, key).to_csr() == expected);
  CHECK(structural_pairs(query, key) == expected.view().entries());

  const Pattern mask = window(query.rows, key.rows, 5, 3);
  const CsrPattern masked = brute_force(query_rows, key_rows, mask);
  CHECK(structural_pattern(query, key, mask).to_csr() == masked);
  CHECK(structural_pairs(query, key, mask) == masked.view().entries());
}

TEST_CASE("pairs that share a feature: a case to check by hand") {
  const CsrPattern query{3, 4, {0, 2, 2, 3}, {0, 3, 1}};
  const CsrPattern key{3, 4, {0, 1, 2, 4}, {3, 2, 0, 1}};
  CHECK(structural_pattern(query, key).to_csr() == CsrPattern{3, 3, {0, 2, 2, 3}, {0, 2, 2}});
  CHECK(structural_pairs(query, key, causal(3)) == 2);
}

TEST_CASE("random CSR inputs, empty ones among them, agree with brute force") {
  Random random(11);
  struct Sizes {
    std::int64_t n_q, n_k, features;
  };
  for (const Sizes& sizes : {Sizes{40, 30, 64}, {1, 17, 3}, {65, 65, 16}, {5, 5, 0}, {0, 4, 3}, {4, 0, 3}}) {
    for (const double density : {0.0, 0.05, 0.3, 1.0}) {
      const CsrPattern query = test::random_csr<float>(random, sizes.n_q, sizes.features, density, 1);
      const CsrPattern key = test::random_csr<float>(random, sizes.n_k, sizes.features, density);
      check_against_brute_force(query, key, query, key);
    }
  }
}

TEST_CASE("random BSR inputs agree with brute force, cut alike or not, ragged or not") {
  Random random(12);
  struct Cut {
    std::int32_t query_rows, query_columns, key_rows, key_columns;
  };
  for (const Cut& cut : {Cut{8, 4, 8, 4}, {3, 5, 4, 5}, {4, 4, 4, 8}, {1, 16, 2, 16}}) {
    // Blocks of any pair: made whole by dropping the bits.
    BsrPattern query = to_bsr(test::random_csr<float>(random, 37, 30, 0.03), cut.query_rows, cut.query_columns);
    BsrPattern key = to_bsr(test::random_csr<float>(random, 41, 30, 0.03), cut.key_rows, cut.key_columns);
    check_against_brute_force(query, key, to_csr(query), to_csr(key));  // with bits
    query.bits.clear();
    key.bits.clear();
    check_against_brute_force(query, key, to_csr(query), to_csr(key));
  }
}

TEST_CASE("many pairs come panel by panel") {
  // 2100 x 2100 pairs are more than a panel holds.
  const CsrPattern dense = full(2100, 2).to_csr();
  CHECK(structural_pairs(dense, dense) == 4410000);
  CHECK(structural_pairs(dense, dense, causal(2100)) == 2100 * 2101 / 2);
  const Pattern pattern = structural_pattern(dense, dense);
  CHECK(pattern.pairs() == 4410000);
  CHECK(pattern.pairs(2099, 2100) == 2100);
}

TEST_CASE("pattern files read as Q and K agree with brute force") {
  const std::filesystem::path folder = std::filesystem::path(COBBLE_SOURCE_DIR) / "data";
  for (const char* name : {"graph.mtx", "random.smtx", "packed_documents.npz", "empty_rows.npy"}) {
    CAPTURE(name);
    // The first rows do: brute force asks for every pair.
    CsrPattern matrix = read_pattern(folder / name).to_csr();
    matrix.rows = 100;
    matrix.row_offsets.resize(101);
    matrix.column_indices.resize(static_cast<std::size_t>(matrix.row_offsets.back()));
    const CsrPattern expected = brute_force(matrix, matrix, full(100));
    CHECK(structural_pattern(matrix, matrix).to_csr() == expected);
    CHECK(structural_pairs(matrix, matrix) == expected.view().entries());
  }
}

TEST_CASE("sample files beside the source tree read as Q and K agree with brute force, where they are") {
  const char* shared = std::getenv("COBBLE_SHARED");
  const std::filesystem::path folder =
      std::filesystem::path(shared != nullptr ? shared : COBBLE_SOURCE_DIR "/../shared") / "patterns" / "valid";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: no sample files at " << folder.string() << " (COBBLE_SHARED names another place)");
    return;
  }
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    CAPTURE(file.path().string());
    CsrPattern matrix = read_pattern(file.path()).to_csr();
    matrix.rows = std::min<std::int64_t>(matrix.rows, 100);
    matrix.row_offsets.resize(static_cast<std::size_t>(matrix.rows) + 1);
    matrix.column_indices.resize(static_cast<std::size_t>(matrix.row_offsets.back()));
    check_against_brute_force(matrix, matrix, matrix, matrix);
  }
}

TEST_CASE("heads of compressed tensors have patterns of their own, CSR and BSR mixed, grouped heads too") {
  Random random(13);
  const auto matrix = [&random] { return test::random_csr<float>(random, 20, 12, 0.1); };
  const CsrTensor<float> query({matrix(), matrix(), matrix(), matrix(), matrix(), matrix(), matrix(), matrix()}, 2, 4);
  const CsrTensor<float> key({matrix(), matrix(), matrix(), matrix()}, 2, 2);
  std::vector<BsrMatrix<float>> blocks;
  for (const CsrMatrix<float>& of_head : key.matrices()) blocks.push_back(to_bsr(of_head, 3, 4));
  const BsrTensor<float> block_key(blocks, 2, 2);
  const Pattern mask = causal(20);
  const PatternGrid csr = structural_patterns<float>(query, key);
  const PatternGrid masked = structural_patterns<float>(query, key, &mask);
  const PatternGrid mixed = structural_patterns<float>(query, block_key);
  const PatternGrid of_blocks = structural_patterns<float>(block_key, block_key, &mask);
  CHECK(csr.batch() == 2);
  CHECK(csr.heads() == 4);
  for (std::int64_t batch = 0; batch < 2; ++batch) {
    for (std::int64_t head = 0; head < 4; ++head) {
      const CsrPattern& of_query = query.at(batch, head);
      const CsrPattern& of_key = key.at(batch, head / 2);
      CHECK(csr.at(batch, head).to_csr() == brute_force(of_query, of_key, full(20)));
      CHECK(masked.at(batch, head).to_csr() == brute_force(of_query, of_key, mask));
      const CsrPattern block_rows = to_csr(BsrPatternView(block_key.at(batch, head / 2).view()));
      CHECK(mixed.at(batch, head).to_csr() == brute_force(of_query, block_rows, full(20)));
      CHECK(of_blocks.at(batch, head / 2).to_csr() == brute_force(block_rows, block_rows, mask));
    }
  }
  const Tensor<float> dense({2, 2, 20, 12});
  CHECK(error_of([&] { structural_patterns<float>(query, dense); }) ==
        "unsupported: key is dense, expected CSR or BSR: all pairs share its features");
  CHECK(error_of([&] { structural_patterns<float>(key, query); }) ==
        "shape_mismatch: key has 2 batch entries and 4 heads, expected 2 and a divisor of the query's 2");
}

TEST_CASE("several threads may ask at once, the first time too") {
  const CsrPattern matrix = random_pairs(200, 50, 4, 1).to_csr();
  std::vector<std::int64_t> counts(4);
  std::vector<std::thread> threads;
  for (std::int64_t& count : counts) {
    threads.emplace_back([&count, &matrix] { count = structural_pairs(matrix, matrix); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(counts == std::vector<std::int64_t>(4, brute_force(matrix, matrix, full(200)).view().entries()));
}

TEST_CASE("inputs that do not fit or are malformed are refused") {
  const CsrPattern query{2, 3, {0, 1, 2}, {0, 2}};
  const CsrPattern key{1, 4, {0, 1}, {3}};
  CHECK(error_of([&] { structural_pattern(query, key); }) ==
        "shape_mismatch: key has 4 features, expected as many as query, 3");
  CHECK(error_of([&] { structural_pairs(query, query, full(2, 3)); }) ==
        "shape_mismatch: mask is 2 x 3, expected queries x keys, 2 x 2");
  const CsrPattern unsorted{1, 3, {0, 2}, {2, 0}};
  CHECK(error_of([&] { structural_pattern(unsorted, query); }) ==
        "invalid_structure: column_indices[1] = 0 in row 0 comes after column_indices[0] = 2; columns must increase "
        "within a row");
  const CsrPattern outside{1, 3, {0, 1}, {3}};
  CHECK(error_of([&] { structural_pairs(query, outside); }) ==
        "invalid_structure: column_indices[0] = 3 in row 0 is outside [0, 3)");
  const CsrPattern twice{1, 3, {0, 2}, {1, 1}};
  CHECK(error_of([&] { structural_pattern(query, twice, full(2, 1)); }) ==
        "invalid_structure: column_indices[1] = 1 in row 0 repeats column_indices[0] = 1; columns must increase within "
        "a row");
  const CsrPattern short_offsets{2, 3, {0, 1}, {1}};
  CHECK(error_of([&] { structural_pattern(short_offsets, query); }) ==
        "invalid_structure: row_offsets has 2 entries, expected rows + 1 = 3");
}

TEST_CASE("malformed blocks are refused") {
  const BsrPattern good{2, 4, 1, 2, {0, 1, 2}, {0, 1}, {}};
  const auto error_with = [&](auto change) {
    BsrPattern bad = good;
    change(bad);
    const std::string error = error_of([&] { structural_pattern(bad, good); });
    CHECK(error_of([&] { structural_pairs(bad, good); }) == error);
    CHECK(error_of([&] { structural_pattern(bad, good, full(2)); }) == error);
    CHECK(error_of([&] { structural_pairs(bad, good, full(2)); }) == error);
    CHECK(error_of([&] { structural_pattern(good, bad); }) == error);
    return error;
  };
  CHECK(error_with([](BsrPattern& m) { m.block_column_indices[1] = 2; }) ==
        "invalid_structure: block_column_indices[1] = 2 in block row 1 is outside [0, 2)");
  CHECK(error_with([](BsrPattern& m) {
          m.block_row_offsets = {0, 2, 2}, m.block_column_indices = {1, 1};
        }) ==
        "invalid_structure: block_column_indices[1] = 1 in block row 0 repeats block_column_indices[0] = 1; columns "
        "must increase within a row");
  CHECK(error_with([](BsrPattern& m) {
          m.block_row_offsets = {0, 2, 2}, m.block_column_indices = {1, 0};
        }) ==
        "invalid_structure: block_column_indices[1] = 0 in block row 0 comes after block_column_indices[0] = 1; "
        "columns must increase within a row");
  CHECK(error_with([](BsrPattern& m) { m.block_row_offsets[1] = 3; }) ==
        "invalid_structure: block_row_offsets[2] = 2 is less than block_row_offsets[1] = 3");
  const BsrPattern wider{2, 6, 1, 2, {0, 1, 2}, {0, 1}, {}};
  CHECK(error_of([&] { structural_pattern(good, wider); }) ==
        "shape_mismatch: key has 6 features, expected as many as query, 4");
}

}  // namespace
}  // namespace cobble
