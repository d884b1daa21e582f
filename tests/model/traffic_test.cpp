#include "cobble/traffic.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "support/random.hpp"

using namespace cobble;
using cobble::test::Random;

namespace {

/// The grid of sizes on which the constants are promised.
template <class Visit>
void over_grid(Visit&& visit) {
  for (const std::int64_t n : {256, 512, 1024, 2048}) {
    for (const std::int64_t d : {16, 64}) {
      for (const std::int64_t inverse_density : {1, 4, 16, 64}) {
        const AttentionSize size{n, n, n * n / inverse_density, d, d};
        for (std::int64_t memory = 1 << 8; memory <= (1 << 18); memory *= 2) visit(size, memory);
      }
    }
  }
}

/// Words of one feature that a walk over score tiles loads on a random pattern: row panels, columns gathered until a
/// tile's pairs are full, rows and columns without a pair left out.
double walked_loads_per_feature(const std::vector<std::vector<char>>& pattern, const ScoreTile& tile) {
  const std::size_t rows = pattern.size();
  const std::size_t columns = pattern.front().size();
  double loads = 0;
  for (std::size_t first = 0; first < rows; first += static_cast<std::size_t>(tile.rows)) {
    const std::size_t last = std::min(rows, first + static_cast<std::size_t>(tile.rows));
    std::vector<char> row_touched(last - first, 0);
    std::int64_t pairs = 0;
    const auto close = [&] {
      loads += static_cast<double>(std::count(row_touched.begin(), row_touched.end(), 1));
      std::fill(row_touched.begin(), row_touched.end(), 0);
      pairs = 0;
    };
    for (std::size_t j = 0; j < columns; ++j) {
      std::int64_t in_column = 0;
      for (std::size_t i = first; i < last; ++i) in_column += pattern[i][j];
      if (in_column == 0) continue;
      if (pairs + in_column > tile.pairs) close();
      for (std::size_t i = first; i < last; ++i) row_touched[i - first] |= pattern[i][j];
      pairs += in_column;
      loads += 1;
    }
    close();
  }
  return loads;
}

}  // namespace

TEST_CASE("the traffic of a score product is counted by hand") {
  // 10 x 8 full, 3 features, tiles of 5 x 4: 2 panels of 2 tiles, each loads (5 + 4) x 3.
  const ProductSize product{10, 8, 80, 3};
  CHECK(score_operand_loads(product, {5, 20, 4, 1, 1}) == 2 * 2 * (5 + 4) * 3);
}

TEST_CASE("the traffic of a value product is counted by hand") {
  // 10 x 8 full times 3 features, 5 rows and 2 features at a time: 2 chunks pass all 80 scores, 2 panels pass 8 x 3.
  const ProductSize product{10, 8, 80, 3};
  const Traffic traffic = value_product_traffic(product, {5, 2, 1, 1});
  CHECK(traffic.loads == 2 * 80 + 2 * 8 * 3 + 10);
  CHECK(traffic.stores == 10 * 3);
  // Folded into 4 x 3: the panel's 4 words a row for each of 2 chunks, 4 x 3 loaded once and stored twice.
  const Traffic folded = folded_value_product_traffic(product, {5, 2, 1, 1}, 4);
  CHECK(folded.loads == traffic.loads + 2 * 10 * 4 + 4 * 3);
  CHECK(folded.stores == 2 * 4 * 3);
}

TEST_CASE("the traffic of recompute is counted by hand") {
  const AttentionSize size{10, 8, 80, 3, 2};
  const Traffic forward = recompute_forward_traffic(size, {5, 1, 1});
  CHECK(forward.loads == 10 * 3 + 2 * 8 * (3 + 2));
  CHECK(forward.stores == 10 * 2 + 10);
  // Rows in 2 panels: Q, dO, O, LSE in, dQ, delta out. Columns in 4 panels: Q, dO, LSE, delta four times.
  const Traffic two_passes = recompute_backward_traffic(size, {false, {5, 1, 1}, {1, 2, 1}});
  CHECK(two_passes.loads == 10 * (3 + 2 + 2 + 1) + 2 * 8 * (3 + 2) + 8 * (3 + 2) + 4 * 10 * (3 + 2 + 2));
  CHECK(two_passes.stores == 10 * (3 + 1) + 8 * (3 + 2));
  // Fused: delta first (dO, O in, delta out), dQ read three times and written four times.
  const Traffic fused = recompute_backward_traffic(size, {true, {}, {1, 2, 1}});
  CHECK(fused.loads == 10 * 4 + 8 * (3 + 2) + 4 * 10 * (3 + 2 + 2) + 3 * 10 * 3);
  CHECK(fused.stores == 10 + 8 * (3 + 2) + 4 * 10 * 3);
}

TEST_CASE("the traffic of materialize is counted by hand") {
  const AttentionSize size{10, 8, 80, 3, 2};
  MaterializeTiles tiles;
  tiles.scores = {5, 20, 4, 1, 1};
  tiles.grad_probabilities = {10, 80, 8, 1, 1};
  tiles.output = {5, 2, 1, 1};
  tiles.grad_query = {5, 3, 0, 1};
  tiles.grad_key = {4, 3, 0, 1};
  tiles.grad_value = {8, 1, 0, 1};
  // Two tiles in a row: maximum and sum are stored by the first and loaded by the second.
  const Traffic forward = materialize_forward_traffic(size, tiles);
  CHECK(forward.loads == 2 * 2 * (5 + 4) * 3 + 2 * 10 + 80 + 2 * 8 * 2 + 10);
  CHECK(forward.stores == 80 + 2 * 10 + 10 + 10 * 2);
  const Traffic backward = materialize_backward_traffic(size, tiles);
  const double delta = 2 * 10 * 2;
  const double probabilities = 2 * 2 * (5 + 4) * 3 + 2 * 10;
  const double grad_scores = (10 + 8) * 2 + 10 + 80;
  const double grad_value = 2 * 80 + 1 * 10 * 2;
  const double grad_query = 80 + 2 * 8 * 3;
  const double grad_key = 80 + 2 * 10 * 3;
  CHECK(backward.loads == delta + probabilities + grad_scores + grad_value + grad_query + grad_key);
  CHECK(backward.stores == 10 + 80 + 80 + 8 * 2 + 10 * 3 + 8 * 3);
}

TEST_CASE("the share of touched columns is that of independent pairs") {
  CHECK(touched_share(1.0, 1) == 1);
  CHECK(touched_share(1.0, 0) == 0);
  CHECK(touched_share(0.0, 100) == 0);
  CHECK(touched_share(0.25, 1) == doctest::Approx(0.25));
  CHECK(touched_share(0.25, 2) == doctest::Approx(1 - 0.75 * 0.75));
  CHECK(touched_share(1e-12, 1000) == doctest::Approx(1e-9));
}

TEST_CASE("the predicted loads are those of a walk over a random pattern") {
  const std::int64_t n = 512;
  Random random(20240910);
  for (const std::int64_t inverse_density : {1, 4, 16, 64}) {
    std::vector<std::vector<char>> pattern(512, std::vector<char>(512, 0));
    std::int64_t pairs = 0;
    for (auto& row : pattern) {
      for (char& pair : row) {
        pair = random.below(inverse_density) == 0;
        pairs += pair;
      }
    }
    const ProductSize product{n, n, pairs, 1};
    for (const std::int64_t memory : {64, 256, 1024, 4096, 16384}) {
      const ScoreTile tile = choose_score_tile(product, memory);
      const double walked = walked_loads_per_feature(pattern, tile);
      CAPTURE(inverse_density);
      CAPTURE(memory);
      CHECK(score_operand_loads(product, tile) == doctest::Approx(walked).epsilon(inverse_density == 1 ? 0.01 : 0.05));
    }
  }
}

TEST_CASE("the schedule that the regime picks stays within 8 times the bound forward and 20 times backward") {
  double most_forward = 0;
  double most_backward = 0;
  double least_forward = 1e300;
  double least_backward = 1e300;
  over_grid([&](const AttentionSize& size, std::int64_t memory) {
    const double split = split_point(input_words(size), static_cast<double>(size.pairs));
    double forward = 0;
    double backward = 0;
    if (regime(memory, split) == Regime::large_fast_memory) {
      const auto panel = choose_panel(RecomputePass::forward, size, memory);
      const auto panels = choose_recompute_backward(size, memory);
      REQUIRE(panel.has_value());
      REQUIRE(panels.has_value());
      forward = recompute_forward_traffic(size, *panel).words();
      backward = recompute_backward_traffic(size, *panels).words();
    } else {
      const MaterializeTiles tiles = choose_materialize(size, memory);
      forward = materialize_forward_traffic(size, tiles).words();
      backward = materialize_backward_traffic(size, tiles).words();
    }
    const TrafficBound floor = forward_bound(size, memory);
    const TrafficBound backward_floor = backward_bound(size, memory);
    // A few rows and columns have no pair at density 1/64, and are not loaded.
    CHECK(forward >= 0.98 * forward_compulsory(size));
    CHECK(backward >= 0.98 * backward_compulsory(size));
    most_forward = std::max(most_forward, forward / floor.words());
    most_backward = std::max(most_backward, backward / backward_floor.words());
    if (floor.theorem_binds()) least_forward = std::min(least_forward, forward / floor.words());
    if (backward_floor.theorem_binds()) least_backward = std::min(least_backward, backward / backward_floor.words());
  });
  CHECK(most_forward <= 8);
  CHECK(most_backward <= 20);
  // Where the theorem binds the ratio spreads by a factor of 4 at most.
  CHECK(most_forward <= 4 * least_forward);
  CHECK(most_backward <= 4 * least_backward);
}

TEST_CASE("where the theorem binds on both sides of M*, the two schedules cross within a factor of 4 of it") {
  const auto difference = [](const AttentionSize& size, std::int64_t memory) {
    const auto panel = choose_panel(RecomputePass::forward, size, memory);
    if (!panel) return -1.0;
    return materialize_forward_traffic(size, choose_materialize(size, memory)).words() -
           recompute_forward_traffic(size, *panel).words();
  };
  const auto backward_difference = [](const AttentionSize& size, std::int64_t memory) {
    const auto panels = choose_recompute_backward(size, memory);
    if (!panels) return -1.0;
    return materialize_backward_traffic(size, choose_materialize(size, memory)).words() -
           recompute_backward_traffic(size, *panels).words();
  };
  for (const std::int64_t n : {1024, 2048}) {
    for (const std::int64_t d : {16, 64}) {
      for (const std::int64_t inverse_density : {1, 4, 16}) {
        const AttentionSize size{n, n, n * n / inverse_density, d, d};
        const auto split = static_cast<std::int64_t>(split_point(input_words(size), static_cast<double>(size.pairs)));
        for (std::int64_t memory = std::max<std::int64_t>(256, split / 64); memory < split / 4; memory *= 2) {
          CHECK(difference(size, memory) < 0);
          CHECK(backward_difference(size, memory) < 0);
        }
        for (std::int64_t memory = split * 4; memory <= split * 64; memory *= 2) {
          CHECK(difference(size, memory) > 0);
          CHECK(backward_difference(size, memory) > 0);
        }
      }
    }
  }
}

TEST_CASE("where everything fits recompute moves little more than compulsory traffic") {
  const AttentionSize size{256, 256, 256 * 256, 16, 16};
  const std::int64_t memory = 1 << 22;
  CHECK(recompute_forward_traffic(size, *choose_panel(RecomputePass::forward, size, memory)).words() ==
        forward_compulsory(size));
  // dO is read once more for delta, which is written and read.
  CHECK(recompute_backward_traffic(size, *choose_recompute_backward(size, memory)).words() ==
        backward_compulsory(size) + 256 * 16 + 2 * 256);
}

TEST_CASE("the traffic of parameter gradients stays within a constant of its bound") {
  over_grid([](const AttentionSize& size, std::int64_t memory) {
    const double floor = std::max(parameter_gradients_bound(size, memory), parameter_gradients_compulsory(size));
    const double split = split_point(input_words(size), static_cast<double>(size.pairs));
    if (regime(memory, split) == Regime::large_fast_memory) {
      const auto traffic = recompute_parameter_gradients_traffic(size, memory);
      REQUIRE(traffic.has_value());
      CHECK(traffic->words() <= 24 * floor);
    } else {
      CHECK(materialize_parameter_gradients_traffic(size, memory).words() <= 24 * floor);
    }
  });
}

TEST_CASE("parameter gradients by recompute are infeasible where a panel does not fit") {
  CHECK_FALSE(recompute_parameter_gradients_traffic({100, 100, 10000, 64, 64}, 128).has_value());
}
