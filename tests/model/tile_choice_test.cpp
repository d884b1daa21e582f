#include "cobble/tile_choice.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cobble/traffic.hpp"
#include "support/error_of.hpp"

using namespace cobble;
using cobble::test::error_of;

namespace {

constexpr RecomputePass kPasses[] = {RecomputePass::forward, RecomputePass::backward_rows,
                                     RecomputePass::backward_columns, RecomputePass::backward_fused,
                                     RecomputePass::backward_values};

AttentionSize square(std::int64_t tokens, std::int64_t features, std::int64_t inverse_density) {
  return {tokens, tokens, tokens * tokens / inverse_density, features, features};
}

std::vector<std::int64_t> memories() {
  std::vector<std::int64_t> words;
  for (std::int64_t m = 64; m < 320; m += 5) words.push_back(m);
  for (std::int64_t m = 320; m < (std::int64_t{1} << 34); m = m * 5 / 3) words.push_back(m);
  return words;
}

std::vector<AttentionSize> sizes() {
  std::vector<AttentionSize> all;
  for (const std::int64_t d : {1, 3, 16, 64, 256}) {
    all.push_back({1, 1, 1, d, d});
    all.push_back({17, 63, 100, d, 5});
    all.push_back({63, 17, 0, 5, d});
    all.push_back({0, 0, 0, d, d});
    all.push_back({0, 9, 0, d, d});
    all.push_back({2000, 300, 2000 * 300 / 7, d, 2 * d});
    all.push_back({1000, 1000, 1000000, d, d});
    all.push_back({1048576, 1048576, std::int64_t{1048576} * 257, d, d});
  }
  return all;
}

void check_sane(const ScoreTile& tile, std::int64_t memory) {
  CHECK(std::min({tile.rows, tile.columns, tile.features, tile.streamed}) >= 1);
  CHECK(tile.pairs >= tile.rows);
  CHECK(tile.words_resident() <= memory);
}

void check_sane(const ValueTile& tile, std::int64_t memory) {
  CHECK(std::min({tile.rows, tile.features, tile.streamed}) >= 1);
  CHECK(tile.words_resident() <= memory);
}

}  // namespace

TEST_CASE("materialize fits any fast memory from 64 words up, chosen and rounded to the hardware") {
  for (const AttentionSize& size : sizes()) {
    const ProductSize rows{size.queries, size.keys, size.pairs, size.head_dim};
    const ProductSize columns{size.keys, size.queries, size.pairs, size.value_dim};
    for (const std::int64_t memory : memories()) {
      const MaterializeTiles tiles = choose_materialize(size, memory);
      check_sane(tiles.scores, memory);
      check_sane(tiles.grad_probabilities, memory);
      for (const ValueTile& tile : {tiles.output, tiles.grad_query, tiles.grad_key, tiles.grad_value}) {
        check_sane(tile, memory);
      }
      CHECK(tiles.output.statistics == 1);
      CHECK(tiles.grad_query.statistics == 0);
      check_sane(round_to_hardware(tiles.scores, rows, memory, 4), memory);
      check_sane(round_to_hardware(tiles.output, rows, memory, 8), memory);
      check_sane(round_to_hardware(tiles.grad_value, columns, memory, 4), memory);
    }
  }
}

TEST_CASE("recompute fits fast memory wherever it is feasible, chosen and rounded to the hardware") {
  for (const AttentionSize& size : sizes()) {
    for (const std::int64_t memory : memories()) {
      for (const RecomputePass pass : kPasses) {
        const auto tile = choose_panel(pass, size, memory);
        if (!tile) continue;
        CHECK(std::min({tile->rows, tile->columns, tile->features}) >= 1);
        CHECK(words_resident(pass, *tile, size) <= memory);
        const PanelTile rounded = round_to_hardware(pass, *tile, size, memory, 4);
        CHECK(std::min({rounded.rows, rounded.columns, rounded.features}) >= 1);
        CHECK(words_resident(pass, rounded, size) <= memory);
      }
    }
  }
}

TEST_CASE("recompute is infeasible exactly where one row with its features does not fit") {
  const AttentionSize size{1000, 1000, 1000000, 16, 24};
  const PanelTile smallest{1, 1, 1};
  for (const RecomputePass pass : kPasses) {
    const std::int64_t least = words_resident(pass, smallest, size);
    CHECK(choose_panel(pass, size, least).has_value());
    CHECK_FALSE(choose_panel(pass, size, least - 1).has_value());
    CHECK_FALSE(choose_panel(pass, size, 0).has_value());
    CHECK_FALSE(choose_panel(pass, size, -5).has_value());
  }
  CHECK(words_resident(RecomputePass::forward, smallest, size) == (16 + 24 + 2) + 1 + 1);
  CHECK(words_resident(RecomputePass::backward_rows, smallest, size) == (2 * 16 + 24 + 2) + 2 + 16 + 1);
  CHECK(words_resident(RecomputePass::backward_columns, smallest, size) == (2 * 16 + 2 * 24) + 2 + 16 + 1);
  CHECK_FALSE(choose_recompute_backward(size, 70).has_value());
  CHECK(choose_recompute_backward(size, 200).has_value());
}

TEST_CASE("words resident are counted as documented") {
  CHECK(ScoreTile{10, 50, 7, 3, 2}.words_resident() == 50 + (10 + 2) * 3);
  CHECK(ValueTile{10, 3, 1, 2}.words_resident() == 10 * 4 + 2 * 3 + 1);
  const AttentionSize size{100, 100, 100, 8, 6};
  CHECK(words_resident(RecomputePass::forward, {5, 4, 3}, size) == 5 * 16 + 5 * 4 + 4 * 3);
  CHECK(words_resident(RecomputePass::backward_rows, {5, 4, 3}, size) == 5 * 24 + 2 * 5 * 4 + 4 * 11);
  CHECK(words_resident(RecomputePass::backward_columns, {5, 4, 3}, size) == 4 * 28 + 2 * 5 * 4 + 5 * 11);
  CHECK(words_resident(RecomputePass::backward_values, {5, 4, 3}, size) == 4 * 14 + 5 * 4 + 5 * 3);
}

TEST_CASE("no tile that fits a tiny fast memory causes noticeably less traffic than the chosen one") {
  // Panels are chosen equal; on sparse patterns a smaller last one would save a little.
  for (const std::int64_t inverse_density : {1, 4, 16}) {
    const double slack = inverse_density == 1 ? 1e-12 : 0.04;
    const ProductSize product{96, 80, 96 * 80 / inverse_density, 12};
    for (const std::int64_t memory : {64, 100, 256, 1000, 5000}) {
      const double chosen_loads = score_operand_loads(product, choose_score_tile(product, memory));
      const double chosen_words = value_product_traffic(product, choose_value_tile(product, 1, memory)).words();
      for (std::int64_t rows = 1; rows <= 96; ++rows) {
        for (std::int64_t columns = 1; columns <= 80; ++columns) {
          const std::int64_t pairs = std::max(rows, (rows * columns + inverse_density - 1) / inverse_density);
          const ScoreTile tile{rows, pairs, columns, 1, 1};
          if (tile.words_resident() <= memory) CHECK(score_operand_loads(product, tile) >= chosen_loads * (1 - slack));
        }
        for (std::int64_t features = 1; features <= 12; ++features) {
          const ValueTile tile{rows, features, 1, 1};
          if (tile.words_resident() > memory) continue;
          CHECK(value_product_traffic(product, tile).words() >= chosen_words * (1 - slack));
        }
      }
    }
  }
}

TEST_CASE("the chunk of features follows min(d, d sqrt(M / M*)) and the panel M / c_f") {
  CHECK(feature_chunk_rule(64, 1024, 4096) == 32);
  CHECK(feature_chunk_rule(64, 4096, 4096) == 64);
  CHECK(feature_chunk_rule(64, 9999, 4096) == 64);
  for (const std::int64_t inverse_density : {1, 4, 16}) {
    const AttentionSize size = square(65536, 256, inverse_density);
    const double split = split_point(input_words(size), static_cast<double>(size.pairs));
    for (std::int64_t memory = 1024; memory < (1 << 22); memory *= 2) {
      const double rule = feature_chunk_rule(256, static_cast<double>(memory), split);
      const ValueTile tile = choose_materialize(size, memory).grad_query;
      // A whole number of chunks is a factor of at most 1.5 away once there are two, and 1 or 2 chunks are 2 apart.
      CHECK(static_cast<double>(tile.features) >= rule / 2.0);
      CHECK(static_cast<double>(tile.features) <= rule * 2.0);
      CHECK(static_cast<double>(tile.rows * tile.features) >=
            0.75 * static_cast<double>(std::min<std::int64_t>(memory, 65536 * tile.features)));
    }
  }
}

TEST_CASE("choices are continuous at the split point") {
  for (const std::int64_t inverse_density : {1, 4, 16}) {
    for (const std::int64_t d : {16, 64}) {
      const AttentionSize size = square(4096, d, inverse_density);
      const auto split = static_cast<std::int64_t>(split_point(input_words(size), static_cast<double>(size.pairs)));
      double before_forward = 0;
      double before_backward = 0;
      std::int64_t before_chunks = 0;
      for (std::int64_t memory = split * 7 / 8; memory <= split * 9 / 8;
           memory += std::max<std::int64_t>(1, split / 64)) {
        const MaterializeTiles tiles = choose_materialize(size, memory);
        const double forward = materialize_forward_traffic(size, tiles).words();
        const double backward = materialize_backward_traffic(size, tiles).words();
        const std::int64_t chunks = (d + tiles.grad_query.features - 1) / tiles.grad_query.features;
        if (before_forward > 0) {
          CHECK(forward >= 0.9 * before_forward);
          CHECK(backward >= 0.9 * before_backward);
          CHECK(std::abs(chunks - before_chunks) <= 1);
        }
        before_forward = forward;
        before_backward = backward;
        before_chunks = chunks;
      }
    }
  }
}

TEST_CASE("more fast memory never costs more") {
  for (const std::int64_t inverse_density : {1, 16, 64}) {
    const AttentionSize size = square(1024, 64, inverse_density);
    const ProductSize product{1024, 1024, size.pairs, 64};
    double loads = 1e300;
    double words = 1e300;
    double panel = 1e300;
    for (std::int64_t memory = 64; memory < 300000; memory += 1 + memory / 50) {
      const double next_loads = score_operand_loads(product, choose_score_tile(product, memory));
      CHECK(next_loads <= loads);
      loads = next_loads;
      const double next_words = value_product_traffic(product, choose_value_tile(product, 1, memory)).words();
      CHECK(next_words <= words);
      words = next_words;
      if (const auto tile = choose_panel(RecomputePass::forward, size, memory)) {
        const double next_panel = recompute_forward_traffic(size, *tile).words();
        CHECK(next_panel <= panel * 1.01);
        panel = next_panel;
      }
    }
  }
}

TEST_CASE("where everything fits there is one tile and one panel") {
  const AttentionSize size = square(100, 16, 1);
  const MaterializeTiles tiles = choose_materialize(size, 1 << 20);
  CHECK(tiles.scores.rows == 100);
  CHECK(tiles.scores.columns == 100);
  CHECK(tiles.scores.features == 16);
  CHECK(tiles.output.rows == 100);
  CHECK(tiles.output.features == 16);
  const auto panel = choose_panel(RecomputePass::forward, size, 1 << 20);
  REQUIRE(panel.has_value());
  CHECK(panel->rows == 100);
  CHECK(panel->columns == 100);
  CHECK(panel->features == 16);
  CHECK(choose_recompute_backward(size, 1 << 20)->fused);
}

TEST_CASE("rounding to the hardware gives whole cache lines and whole register tiles where they fit") {
  const AttentionSize size = square(4096, 60, 4);
  const ProductSize product{4096, 4096, size.pairs, 60};
  const std::int64_t memory = 1 << 17;
  const ScoreTile scores = round_to_hardware(choose_score_tile(product, memory), product, memory, 4);
  CHECK(scores.features == 16);
  CHECK(scores.streamed == 16);
  CHECK(scores.rows % 16 == 0);
  CHECK(round_to_hardware(choose_score_tile(product, memory), product, memory, 8).features == 8);
  const ValueTile values = round_to_hardware(choose_value_tile(product, 1, memory), product, memory, 4);
  CHECK(values.features == 60);  // all of d where d is no multiple
  CHECK(values.rows % 16 == 0);
  const PanelTile panel =
      round_to_hardware(RecomputePass::forward, *choose_panel(RecomputePass::forward, size, memory), size, memory, 4);
  CHECK(panel.rows % 16 == 0);
  CHECK(panel.columns % 16 == 0);
  // It costs little where M is a cache.
  CHECK(score_operand_loads(product, scores) <= 1.1 * score_operand_loads(product, choose_score_tile(product, memory)));
}

TEST_CASE("a fast memory that cannot pay for cache lines keeps its tile") {
  const ProductSize product{100, 100, 10000, 64};
  const ValueTile tile = choose_value_tile(product, 1, 64);
  const ValueTile rounded = round_to_hardware(tile, product, 64, 4);
  CHECK(rounded.rows == tile.rows);
  CHECK(rounded.features == tile.features);
  CHECK(rounded.streamed == tile.streamed);
}

TEST_CASE("sizes that no tile serves are refused") {
  CHECK(error_of([] {
          choose_materialize({10, 10, 100, 4, 4}, 63);
        }) == "infeasible: fast memory of 63 words, expected at least 64");
  CHECK(error_of([] {
          choose_value_tile({10, 10, -1, 4}, 0, 64);
        }) == "invalid_argument: pairs = -1, expected a size of at least 0");
  CHECK(error_of([] {
          choose_panel(RecomputePass::forward, {-2, 10, 1, 4, 4}, 64);
        }) == "invalid_argument: queries = -2, expected a size of at least 0");
  CHECK(error_of([] {
          round_to_hardware(ValueTile{}, {10, 10, 100, 4}, 64, 0);
        }) == "invalid_argument: element_bytes = 0, expected at least 1");
}
