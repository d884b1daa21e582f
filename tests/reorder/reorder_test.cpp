#include "cobble/reorder.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "cobble/plan.hpp"
#include "support/error_of.hpp"
#include "support/sample_patterns.hpp"
#include "support/shuffled.hpp"

namespace cobble {
namespace {

using test::error_of;

constexpr std::array kAllMethods{ReorderMethod::automatic, ReorderMethod::identity,          ReorderMethod::amd,
                                 ReorderMethod::colamd,    ReorderMethod::nested_dissection, ReorderMethod::similarity};

TEST_CASE("permuting moves each pair to the place of its query and key") {
  const Pattern pattern = from_csr({3, 4, {0, 2, 2, 4}, {0, 3, 1, 2}});
  const Pattern permuted = permute(pattern, {ReorderMethod::identity, {2, 0, 1}, {3, 1, 0, 2}});
  CHECK(permuted.to_csr() == CsrPattern{3, 4, {0, 2, 4, 4}, {1, 3, 0, 2}});
}

TEST_CASE("every method gives permutations of every kind of pattern, and the inverse leads back") {
  for (const auto& [n_q, n_k] : {std::pair{40, 40}, {33, 17}, {0, 5}, {1, 1}}) {
    for (const test::SamplePattern& sample : test::named_sample_patterns(n_q, n_k)) {
      for (const ReorderMethod method : kAllMethods) {
        CAPTURE(sample.name);
        CAPTURE(to_string(method));
        const Reordering reordering = reorder(sample.pattern, method);
        validate(reordering, n_q, n_k);
        if (method != ReorderMethod::automatic) CHECK(reordering.method == method);
        const Pattern permuted = permute(sample.pattern, reordering);
        CHECK(permuted.pairs() == sample.pattern.pairs());
        const Reordering back{ReorderMethod::identity, inverse_permutation(reordering.queries),
                              inverse_permutation(reordering.keys)};
        CHECK(permute(permuted, back).to_csr() == sample.pattern.to_csr());
      }
    }
  }
}

TEST_CASE("the same pattern gets the same order again") {
  test::Random random(1);
  const Pattern pattern = test::shuffled(power_law_graph(300, 6, 2), random);
  for (const ReorderMethod method : kAllMethods) {
    CAPTURE(to_string(method));
    CHECK(reorder(pattern, method) == reorder(pattern, method));
  }
}

TEST_CASE("similarity finds shuffled blocks again, with pairs missing too") {
  for (const double kept : {1.0, 0.95, 0.8}) {
    CAPTURE(kept);
    test::Random random(7);
    const Pattern pattern = test::shuffled(random_blocks(1024, 64, 2, 1), random, kept);
    const double before = tile_fill(pattern, 64);
    CHECK(before < 0.14);
    const Reordering reordering = reorder(pattern, ReorderMethod::similarity);
    CHECK(tile_fill(permute(pattern, reordering), 64) > before + 0.5 * (kept - before));
  }
}

TEST_CASE("reordered blocks move at most half of the words") {
  test::Random random(8);
  const Pattern pattern = test::shuffled(random_blocks(1024, 64, 2, 1), random);
  const Pattern reordered = permute(pattern, reorder(pattern));
  const auto words_of = [](const Pattern& of) {
    const Plan plan = make_plan(of, {.head_dim = 64}, {.schedule = Schedule::recompute, .fast_memory_bytes = 1 << 16});
    for (const PlanCandidate& candidate : plan.candidates()) {
      if (candidate.chosen) return candidate.forward_words + candidate.backward_words;
    }
    return std::int64_t{0};
  };
  CHECK(words_of(reordered) > 0);
  CHECK(2 * words_of(reordered) < words_of(pattern));
}

TEST_CASE("a shuffled window gets most of its tiles back") {
  test::Random random(9);
  const std::vector<std::int32_t> permutation = test::random_permutation(1000, random);
  const Pattern pattern = permute(window(1000, 40, 40), {ReorderMethod::identity, permutation, permutation});
  for (const ReorderMethod method : {ReorderMethod::amd, ReorderMethod::similarity, ReorderMethod::automatic}) {
    CAPTURE(to_string(method));
    CHECK(tile_fill(permute(pattern, reorder(pattern, method)), 16) > 4 * tile_fill(pattern, 16));
  }
}

TEST_CASE("automatic is as good as the best method that it tries") {
  test::Random random(10);
  for (const Pattern& pattern : {test::shuffled(power_law_graph(400, 8, 3), random), causal(300),
                                 test::shuffled(documents(std::vector<std::int64_t>{50, 130, 20}), random)}) {
    const double chosen = tile_fill(permute(pattern, reorder(pattern)), kReorderTile);
    if (chosen >= 0.9) continue;  // full enough, and it may stop there
    for (const ReorderMethod method : kAllMethods) {
      if (method == ReorderMethod::colamd) continue;  // too slow for automatic
      CAPTURE(to_string(method));
      CHECK(chosen >= tile_fill(permute(pattern, reorder(pattern, method)), kReorderTile));
    }
  }
  CHECK(reorder(full(500)).method == ReorderMethod::identity);
  CHECK(reorder(full(1 << 16)).method == ReorderMethod::identity);  // whose pairs would not fit in memory
}

TEST_CASE("a symmetric pattern gets one order for both axes, another two") {
  const Reordering symmetric = reorder(power_law_graph(100, 6, 1), ReorderMethod::amd);
  CHECK(symmetric.queries == symmetric.keys);
  const Reordering rectangular = reorder(random_pairs(60, 90, 4, 1), ReorderMethod::amd);
  CHECK(rectangular.queries.size() == 60);
  CHECK(rectangular.keys.size() == 90);
}

TEST_CASE("the fill of tiles counts ragged ones by what lies inside") {
  CHECK(tile_fill(full(100, 70), 64) == 1);
  CHECK(tile_fill(full(100, 70), std::int64_t{1} << 62) == 1);
  CHECK(tile_fill(from_csr({5, 5, {0, 1, 1, 1, 1, 2}, {0, 4}}), 4) == doctest::Approx(2.0 / 17));
  CHECK(tile_fill(full(0), 4) == 0);
  CHECK(error_of([] { tile_fill(full(4), 0); }) == "invalid_argument: tile = 0, expected at least 1");
}

TEST_CASE("what is no permutation is refused with its first fault") {
  const Pattern pattern = full(3, 2);
  CHECK(error_of([&] {
          permute(pattern, {ReorderMethod::identity, {0, 1}, {0, 1}});
        }) == "shape_mismatch: queries of the reordering has 2 entries, expected as many as rows, 3");
  CHECK(error_of([&] {
          permute(pattern, {ReorderMethod::identity, {0, 1, 2}, {0}});
        }) == "shape_mismatch: keys of the reordering has 1 entries, expected as many as columns, 2");
  CHECK(error_of([&] {
          permute(pattern, {ReorderMethod::identity, {0, 2, 2}, {0, 1}});
        }) == "invalid_structure: queries[2] = 2 stands twice in the permutation");
  CHECK(error_of([&] {
          permute(pattern, {ReorderMethod::identity, {0, 1, 2}, {0, -1}});
        }) == "invalid_structure: keys[1] = -1 is outside [0, 2) of the permutation");
  CHECK(error_of([] {
          inverse_permutation(std::vector<std::int32_t>{1, 2});
        }) == "invalid_structure: permutation[1] = 2 is outside [0, 2) of the permutation");
}

TEST_CASE("methods have names") {
  for (const ReorderMethod method : kAllMethods) CHECK(parse_reorder_method(to_string(method)) == method);
  CHECK(error_of([] { parse_reorder_method("rcm"); }) ==
        "invalid_argument: reorder method 'rcm', expected one of automatic, identity, amd, colamd, nested_dissection, "
        "similarity");
}

}  // namespace
}  // namespace cobble
