#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/tile_kernels.hpp"
#include "support/isas.hpp"
#include "support/matrices.hpp"
#include "support/random.hpp"

// Softmax on dense tiles against plain loops, on every instruction set and under every kind of mask.

using namespace cobble;
using namespace cobble::test;
using kernels::DenseTile;
using kernels::Interval;
using kernels::tile_kernels;

namespace {

enum class Mask { none, intervals, bits };

constexpr std::int64_t kKeys[] = {0, 1, 2, 3, 5, 16, 33, 64, 70};

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

/// A tile of random scores in rows of keys, NaN wherever the mask has no pair.
template <class T>
struct Tile {
  std::int64_t queries;
  std::int64_t keys;
  GappedMatrix<T> values;
  std::vector<Interval> intervals;
  std::vector<std::uint64_t> bits;
  std::int64_t words;
  Mask mask;

  Tile(std::int64_t query_count, std::int64_t key_count, Mask kind, Random& random)
      : queries(query_count),
        keys(key_count),
        values(keys, queries, queries + (keys % 2 == 0 ? 16 : 0), random),
        words((queries + 63) / 64),
        mask(kind) {
    for (std::int64_t i = 0; i < queries; ++i) {
      const std::int64_t begin = random.below(keys + 1);
      const std::int64_t end = random.below(4) == 0 ? begin : begin + random.below(keys - begin + 1);
      intervals.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)});
    }
    for (std::int64_t word = 0; word < words * keys; ++word) bits.push_back(random.bits() & random.bits());
    for (std::int64_t j = 0; j < keys; ++j) {
      for (std::int64_t i = 0; i < queries; ++i) {
        if (random.below(20) == 0) values(j, i) = -kInfinity<T>;
        if (i % 7 == 3) values(j, i) = -kInfinity<T>;  // a row with nothing above
        if (!holds(i, j)) values(j, i) = kNan<T>;
      }
    }
  }

  bool holds(std::int64_t i, std::int64_t j) const {
    if (mask == Mask::none) return true;
    if (mask == Mask::bits) return (bits[static_cast<std::size_t>(j * words + i / 64)] >> (i % 64) & 1U) != 0;
    const Interval interval = intervals[static_cast<std::size_t>(i)];
    return interval.begin <= j && j < interval.end;
  }
  DenseTile<T> dense(T* data) {
    return {queries,
            keys,
            data,
            values.stride(),
            mask == Mask::intervals ? intervals.data() : nullptr,
            mask == Mask::bits ? bits.data() : nullptr,
            mask == Mask::bits ? words : 0};
  }
  DenseTile<T> dense() { return dense(values.data()); }
};

template <class T>
bool close(T x, double exact, double ulps = 4) {
  const auto unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  // What is below the smallest normal number may be 0.
  return std::abs(static_cast<double>(x) - exact) <=
         ulps * unit * std::abs(exact) + 3 * static_cast<double>(std::numeric_limits<T>::min());
}

/// Statistics of rows, one of four kinds: none yet, a maximum that scores raise, one that they exceed but keep, one
/// larger than any score.
template <class T>
struct Statistics {
  std::vector<T> maximum, sum, rescale;

  Statistics(std::int64_t queries, Random& random) {
    for (std::int64_t i = 0; i < queries; ++i) {
      const T values[] = {-kInfinity<T>, T{-11}, T{-3}, T{20}};
      const std::int64_t kind = random.below(4);
      maximum.push_back(values[kind]);
      sum.push_back(kind == 0 ? T{0} : static_cast<T>(1 + random.uniform()));
    }
    rescale.assign(maximum.size(), kNan<T>);
  }
};

/// Calls check(tile) for all masks and some sizes.
template <class T, class Check>
void for_each_tile(std::uint64_t seed, Check check) {
  Random random(seed);
  for (const Mask mask : {Mask::none, Mask::intervals, Mask::bits}) {
    for (const std::int64_t queries : {16, 32, 64, 80, 144}) {
      for (const std::int64_t keys : kKeys) {
        Tile<T> tile(queries, keys, mask, random);
        CAPTURE(static_cast<int>(mask));
        CAPTURE(queries);
        CAPTURE(keys);
        check(tile, random);
      }
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("online softmax and row statistics are those of plain loops", T, float, double) {
  on_every_isa([] {
    for_each_tile<T>(1, [](Tile<T>& tile, Random& random) {
      const GappedMatrix<T> scores = tile.values;
      const Statistics<T> before(tile.queries, random);
      Statistics<T> alone = before, after = before;
      tile_kernels<T>().row_statistics(tile.dense(), alone.maximum.data(), alone.sum.data());
      bool kept = true;
      for (std::int64_t j = 0; j < tile.keys; ++j) {
        for (std::int64_t i = 0; i < tile.queries; ++i)
          kept = kept && (!tile.holds(i, j) || scores(j, i) == tile.values(j, i));
      }
      CHECK(kept);
      const bool rescaled =
          tile_kernels<T>().online_softmax(tile.dense(), after.maximum.data(), after.sum.data(), after.rescale.data());
      CHECK(tile.values.gaps_are_untouched());
      CHECK(rescaled == std::any_of(after.rescale.begin(), after.rescale.end(), [](T x) { return x != 1; }));
      bool right = alone.maximum == after.maximum && alone.sum == after.sum;
      for (std::int64_t i = 0; i < tile.queries; ++i) {
        const auto at = static_cast<std::size_t>(i);
        T largest = -kInfinity<T>;
        for (std::int64_t j = 0; j < tile.keys; ++j) {
          if (tile.holds(i, j)) largest = std::max(largest, scores(j, i));
        }
        const T maximum = largest > before.maximum[at] + T{kernels::kMaximumLag} ? largest : before.maximum[at];
        const bool none = maximum == -kInfinity<T>;
        const double shift = none ? 0 : static_cast<double>(maximum);
        const double rescale = std::exp(static_cast<double>(before.maximum[at]) - shift);
        double sum = static_cast<double>(before.sum[at]) * rescale;
        for (std::int64_t j = 0; j < tile.keys; ++j) {
          const double p = tile.holds(i, j) ? std::exp(static_cast<double>(scores(j, i)) - shift) : 0;
          sum += p;
          // A difference that is rounded makes as much of an error as it is large.
          right = right && close(tile.values(j, i), p, 12);
          right = right && (p != 0 || tile.values(j, i) == 0);
        }
        right = right && after.maximum[at] == maximum;
        right = right && close(after.sum[at], sum, 12 + static_cast<double>(tile.keys));
        if (!none) right = right && close(after.rescale[at], rescale, 16);
        if (maximum == before.maximum[at] && !none) right = right && after.rescale[at] == 1;
        if (none) right = right && after.sum[at] == before.sum[at] && std::isfinite(after.rescale[at]);
      }
      CHECK(right);
    });
  });
}

TEST_CASE_TEMPLATE("probabilities and gradients of scores are those of plain loops", T, float, double) {
  on_every_isa([] {
    for_each_tile<T>(2, [](Tile<T>& tile, Random& random) {
      const GappedMatrix<T> scores = tile.values;
      std::vector<T> shift, delta;
      for (std::int64_t i = 0; i < tile.queries; ++i) {
        shift.push_back(i % 7 == 3 ? kInfinity<T> : static_cast<T>(random.normal() + 3));
        delta.push_back(i % 7 == 3 ? kNan<T> : static_cast<T>(random.normal()));
      }
      tile_kernels<T>().probabilities(tile.dense(), shift.data());
      CHECK(tile.values.gaps_are_untouched());
      const GappedMatrix<T> probability = tile.values;
      GappedMatrix<T> grad(tile.keys, tile.queries, tile.values.stride(), random);
      for (std::int64_t j = 0; j < tile.keys; ++j) {
        for (std::int64_t i = 0; i < tile.queries; ++i) {
          if (!tile.holds(i, j) || i % 7 == 3) grad(j, i) = kNan<T>;
        }
      }
      const GappedMatrix<T> grad_probability = grad;
      tile_kernels<T>().grad_scores(tile.dense(grad.data()), probability.data(), shift.data(), delta.data(), T{0.5});
      CHECK(grad.gaps_are_untouched());
      bool right = true;
      for (std::int64_t j = 0; j < tile.keys; ++j) {
        for (std::int64_t i = 0; i < tile.queries; ++i) {
          const auto at = static_cast<std::size_t>(i);
          if (!tile.holds(i, j) || shift[at] == kInfinity<T>) {
            right = right && probability(j, i) == 0 && grad(j, i) == 0;
            continue;
          }
          const double p = std::exp(static_cast<double>(scores(j, i)) - static_cast<double>(shift[at]));
          right = right && close(probability(j, i), p, 16);
          right = right && grad(j, i) == probability(j, i) * (grad_probability(j, i) - T{0.5} * delta[at]);
        }
      }
      CHECK(right);
    });
  });
}

TEST_CASE_TEMPLATE("a NaN or infinite score of a pair shows in its row's sum, and in no other", T, float, double) {
  for (const T bad : {kNan<T>, kInfinity<T>}) {
    on_every_isa([&] {
      for_each_tile<T>(3, [&](Tile<T>& tile, Random& random) {
        if (tile.keys == 0) return;
        const std::int64_t query = random.below(tile.queries), key = random.below(tile.keys);
        if (!tile.holds(query, key)) return;
        Tile<T> poisoned = tile;
        poisoned.values(key, query) = bad;
        Statistics<T> expected(tile.queries, random);
        Statistics<T> got = expected, alone = expected;
        tile_kernels<T>().row_statistics(poisoned.dense(), alone.maximum.data(), alone.sum.data());
        tile_kernels<T>().online_softmax(tile.dense(), expected.maximum.data(), expected.sum.data(),
                                         expected.rescale.data());
        tile_kernels<T>().online_softmax(poisoned.dense(), got.maximum.data(), got.sum.data(), got.rescale.data());
        bool right = true;
        for (std::size_t i = 0; i < got.sum.size(); ++i) {
          if (static_cast<std::int64_t>(i) == query) {
            right = right && std::isnan(got.sum[i]) && std::isnan(alone.sum[i]);
          } else {
            right = right && got.sum[i] == expected.sum[i] && alone.sum[i] == expected.sum[i];
          }
        }
        CHECK(right);
        CHECK(std::isnan(poisoned.values(key, query)));
        // And whatever comes after.
        tile_kernels<T>().row_statistics(tile.dense(), alone.maximum.data(), alone.sum.data());
        CHECK(std::isnan(alone.sum[static_cast<std::size_t>(query)]));
        std::vector<T> shift(static_cast<std::size_t>(tile.queries), T{1});
        poisoned.values(key, query) = kNan<T>;
        tile_kernels<T>().probabilities(poisoned.dense(), shift.data());
        CHECK(std::isnan(poisoned.values(key, query)));
      });
    });
  }
}

TEST_CASE_TEMPLATE("a row whose LSE is NaN is not an empty one: its probabilities and gradients are NaN", T, float,
                   double) {
  on_every_isa([] {
    for_each_tile<T>(5, [](Tile<T>& tile, Random& random) {
      const std::int64_t query = random.below(tile.queries);
      std::vector<T> shift(static_cast<std::size_t>(tile.queries), T{3});
      const std::vector<T> delta(shift.size(), T{1});
      shift[static_cast<std::size_t>(query)] = kNan<T>;
      GappedMatrix<T> grad(tile.keys, tile.queries, tile.values.stride(), random);
      GappedMatrix<T> ones = grad;
      for (std::int64_t j = 0; j < tile.keys; ++j) {
        for (std::int64_t i = 0; i < tile.queries; ++i) ones(j, i) = i == query ? kNan<T> : T{1};
      }
      tile_kernels<T>().probabilities(tile.dense(), shift.data());
      tile_kernels<T>().grad_scores(tile.dense(grad.data()), ones.data(), shift.data(), delta.data(), T{0.5});
      bool right = true;
      for (std::int64_t j = 0; j < tile.keys; ++j) {
        for (std::int64_t i = 0; i < tile.queries; ++i) {
          const bool expected = i == query && tile.holds(i, j);
          right = right && std::isnan(tile.values(j, i)) == expected && std::isnan(grad(j, i)) == expected;
        }
      }
      CHECK(right);
    });
  });
}

TEST_CASE_TEMPLATE("rows are finished with their logarithms, empty ones apart, and NaN stays NaN", T, float, double) {
  on_every_isa([] {
    Random random(4);
    for (const std::int64_t n : {16, 32, 48, 80}) {
      std::vector<T> maximum, sum;
      for (std::int64_t i = 0; i < n; ++i) {
        const T sums[] = {T{0},       T{1},    static_cast<T>(1 + 100 * random.uniform()),
                          T(1.5e30F), kNan<T>, kInfinity<T>,
                          T(1e-30F),  T(0.75F)};
        maximum.push_back(i % 8 == 0 ? -kInfinity<T> : static_cast<T>(random.normal()));
        sum.push_back(sums[i % 8]);
      }
      std::vector<T> lse(sum.size()), factor(sum.size());
      tile_kernels<T>().finish_rows(n, maximum.data(), sum.data(), lse.data(), factor.data());
      for (std::size_t i = 0; i < sum.size(); ++i) {
        CAPTURE(i);
        if (sum[i] == 0) {
          CHECK(lse[i] == -kInfinity<T>);
          CHECK(factor[i] == 0);
        } else if (std::isnan(sum[i])) {
          CHECK(std::isnan(lse[i]));
          CHECK(std::isnan(factor[i]));
        } else if (sum[i] == kInfinity<T>) {
          CHECK(lse[i] == kInfinity<T>);
          CHECK(factor[i] == 0);
        } else {
          const double logarithm = std::log(static_cast<double>(sum[i]));
          const auto most = static_cast<double>(maximum[i]);
          const double magnitude = std::abs(logarithm) + std::abs(most);
          CHECK(is_sum(lse[i], most + logarithm, magnitude, 0));
          CHECK(factor[i] == T{1} / sum[i]);
        }
      }
    }
  });
}
