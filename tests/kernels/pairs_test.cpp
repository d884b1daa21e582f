#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/tile_kernels.hpp"
#include "support/isas.hpp"
#include "support/matrices.hpp"
#include "support/random.hpp"

// Products pair by pair, and softmax on pairs, against plain loops on every instruction set.

using namespace cobble;
using namespace cobble::test;
using kernels::PairTile;
using kernels::tile_kernels;

namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

/// Pairs of random keys, some of them in many rows. Every third row is empty.
struct Pairs {
  std::int64_t rows;
  std::int64_t keys;
  std::vector<std::int32_t> offsets = {0};
  std::vector<std::int32_t> columns = {};

  Pairs(std::int64_t row_count, std::int64_t key_count, std::int64_t longest, Random& random)
      : rows(row_count), keys(key_count) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t count = i % 3 == 2 ? 0 : std::min(keys, random.below(longest + 1));
      std::vector<std::int32_t> row;
      while (static_cast<std::int64_t>(row.size()) < count) {
        const auto key = static_cast<std::int32_t>(random.below(keys));
        if (std::find(row.begin(), row.end(), key) == row.end()) row.push_back(key);
      }
      std::sort(row.begin(), row.end());
      columns.insert(columns.end(), row.begin(), row.end());
      offsets.push_back(static_cast<std::int32_t>(columns.size()));
    }
  }
  std::int64_t count() const { return std::ssize(columns); }
  PairTile tile() const { return {rows, offsets.data(), columns.data()}; }
  /// Calls visit(row, key, pair).
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int32_t at = offsets[static_cast<std::size_t>(row)]; at < offsets[static_cast<std::size_t>(row) + 1];
           ++at) {
        visit(row, columns[static_cast<std::size_t>(at)], static_cast<std::size_t>(at));
      }
    }
  }
};

template <class T>
std::vector<T> normal_vector(std::int64_t n, Random& random) {
  std::vector<T> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(static_cast<T>(random.normal()));
  return x;
}

/// The sums that a kernel must have added to a matrix.
struct Sums {
  GappedMatrix<double> sum, magnitude;
  GappedMatrix<std::int64_t> terms;

  template <class T>
  explicit Sums(const GappedMatrix<T>& before)
      : sum(before.rows(), before.columns(), before.columns()),
        magnitude(before.rows(), before.columns(), before.columns()),
        terms(before.rows(), before.columns(), before.columns()) {
    for (std::int64_t i = 0; i < sum.rows(); ++i) {
      for (std::int64_t j = 0; j < sum.columns(); ++j) {
        sum(i, j) = static_cast<double>(before(i, j));
        magnitude(i, j) = std::abs(sum(i, j));
        terms(i, j) = 0;
      }
    }
  }
  void add(std::int64_t i, std::int64_t j, double term) {
    sum(i, j) += term;
    magnitude(i, j) += std::abs(term);
    terms(i, j) += 1;
  }
  template <class T>
  bool are(const GappedMatrix<T>& got) const {
    bool right = got.gaps_are_untouched();
    for (std::int64_t i = 0; i < sum.rows(); ++i) {
      for (std::int64_t j = 0; j < sum.columns(); ++j) {
        right = right && is_sum(got(i, j), sum(i, j), magnitude(i, j), terms(i, j));
      }
    }
    return right;
  }
};

template <class T>
void check_pairs(const Pairs& pairs, std::int64_t features, std::int64_t gap, Random& random) {
  CAPTURE(features);
  CAPTURE(pairs.rows);
  CAPTURE(pairs.count());
  const T alpha = T(0.75);
  const GappedMatrix<T> rows(pairs.rows, features, features + gap, random);
  const GappedMatrix<T> keys(pairs.keys, features, features + gap, random);

  for (const bool add : {false, true}) {
    const std::vector<T> before = normal_vector<T>(pairs.count(), random);
    std::vector<T> values = before;
    if (!add) std::fill(values.begin(), values.end(), kNan<T>);
    tile_kernels<T>().pair_products(pairs.tile(), features, alpha, {rows.data(), rows.stride()},
                                    {keys.data(), keys.stride()}, values.data(), add);
    bool right = true;
    pairs.for_each([&](std::int64_t row, std::int64_t key, std::size_t pair) {
      double sum = add ? static_cast<double>(before[pair]) : 0;
      double magnitude = std::abs(sum);
      for (std::int64_t f = 0; f < features; ++f) {
        const double term =
            static_cast<double>(alpha) * static_cast<double>(rows(row, f)) * static_cast<double>(keys(key, f));
        sum += term;
        magnitude += std::abs(term);
      }
      right = right && is_sum(values[pair], sum, magnitude, features);
    });
    CAPTURE(add);
    CHECK(right);
  }

  const std::vector<T> values = normal_vector<T>(pairs.count(), random);
  GappedMatrix<T> row_sums(pairs.rows, features, features + gap, random);
  GappedMatrix<T> key_sums(pairs.keys, features, features + gap, random);
  Sums of_rows(row_sums), of_keys(key_sums);
  pairs.for_each([&](std::int64_t row, std::int64_t key, std::size_t pair) {
    const double factor = static_cast<double>(alpha) * static_cast<double>(values[pair]);
    for (std::int64_t f = 0; f < features; ++f) {
      of_rows.add(row, f, factor * static_cast<double>(keys(key, f)));
      of_keys.add(key, f, factor * static_cast<double>(rows(row, f)));
    }
  });
  tile_kernels<T>().pairs_to_rows(pairs.tile(), features, alpha, values.data(), {keys.data(), keys.stride()},
                                  {row_sums.data(), row_sums.stride()});
  tile_kernels<T>().pairs_to_keys(pairs.tile(), features, alpha, values.data(), {rows.data(), rows.stride()},
                                  {key_sums.data(), key_sums.stride()});
  CHECK(of_rows.are(row_sums));
  CHECK(of_keys.are(key_sums));
}

}  // namespace

TEST_CASE_TEMPLATE("products by pairs are those of plain loops, for any number of features", T, float, double) {
  on_every_isa([] {
    Random random(1);
    for (std::int64_t features = 1; features <= 140; features += features < 70 ? 1 : 13) {
      const bool is_long = features % 4 == 0;  // rows of many pairs take another way
      const Pairs pairs(is_long ? 5 : 13, is_long ? 70 : 19, is_long ? 60 : 9, random);
      check_pairs<T>(pairs, features, features % 3, random);
    }
  });
}

TEST_CASE_TEMPLATE("products by pairs have no trouble with any number of pairs a row", T, float, double) {
  on_every_isa([] {
    Random random(2);
    for (std::int64_t longest = 0; longest <= 40; ++longest) {
      check_pairs<T>(Pairs(longest % 5, 41, longest, random), 17, 0, random);
      check_pairs<T>(Pairs(1, longest + 1, 2 * longest, random), 64, 1, random);
    }
  });
}

TEST_CASE_TEMPLATE("softmax on pairs is that of plain loops", T, float, double) {
  const auto unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  const auto close = [=](T x, double exact, double ulps) {
    return std::abs(static_cast<double>(x) - exact) <=
           ulps * unit * std::abs(exact) + 3 * static_cast<double>(std::numeric_limits<T>::min());
  };
  on_every_isa([&] {
    Random random(3);
    for (std::int64_t longest = 0; longest <= 37; ++longest) {
      CAPTURE(longest);
      const Pairs pairs(14, 50, longest, random);
      std::vector<T> scores = normal_vector<T>(pairs.count(), random);
      pairs.for_each([&](std::int64_t row, std::int64_t, std::size_t pair) {
        if (row == 3 || random.below(9) == 0) scores[pair] = -kInfinity<T>;
      });
      std::vector<T> maximum, sum;
      for (std::int64_t i = 0; i < pairs.rows; ++i) {
        const T values[] = {-kInfinity<T>, T{-11}, T{-3}, T{20}};
        maximum.push_back(values[(i + longest) % 4]);
        sum.push_back(maximum.back() == -kInfinity<T> ? T{0} : T{2});
      }
      std::vector<T> probability = scores, alone_maximum = maximum, alone_sum = sum, after = maximum, after_sum = sum;
      std::vector<T> rescale(maximum.size(), kNan<T>);
      tile_kernels<T>().pair_row_statistics(pairs.tile(), scores.data(), alone_maximum.data(), alone_sum.data());
      const bool rescaled = tile_kernels<T>().pair_online_softmax(pairs.tile(), probability.data(), after.data(),
                                                                  after_sum.data(), rescale.data());
      CHECK(alone_maximum == after);
      CHECK(alone_sum == after_sum);
      CHECK(rescaled == std::any_of(rescale.begin(), rescale.end(), [](T x) { return x != 1; }));
      std::vector<T> expected(maximum.size(), -kInfinity<T>);
      pairs.for_each([&](std::int64_t row, std::int64_t, std::size_t pair) {
        T& most = expected[static_cast<std::size_t>(row)];
        most = std::max(most, scores[pair]);
      });
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (!(expected[i] > maximum[i] + T{kernels::kMaximumLag})) expected[i] = maximum[i];
      }
      CHECK(after == expected);
      std::vector<double> sums;
      bool right = true;
      for (std::size_t i = 0; i < maximum.size(); ++i) {
        const bool none = expected[i] == -kInfinity<T>;
        const double factor = none ? 1 : std::exp(static_cast<double>(maximum[i]) - static_cast<double>(expected[i]));
        right = right && close(rescale[i], factor, 16);
        sums.push_back(static_cast<double>(sum[i]) * factor);
      }
      pairs.for_each([&](std::int64_t row, std::int64_t, std::size_t pair) {
        const auto i = static_cast<std::size_t>(row);
        const bool none = expected[i] == -kInfinity<T>;
        const double p = none ? 0 : std::exp(static_cast<double>(scores[pair]) - static_cast<double>(expected[i]));
        sums[i] += p;
        right = right && close(probability[pair], p, 12);
      });
      for (std::size_t i = 0; i < sums.size(); ++i) right = right && close(after_sum[i], sums[i], 50);
      CHECK(right);
    }
  });
}

TEST_CASE_TEMPLATE("probabilities and gradients of scores on pairs are those of plain loops", T, float, double) {
  on_every_isa([] {
    Random random(4);
    for (std::int64_t longest = 0; longest <= 37; ++longest) {
      CAPTURE(longest);
      const Pairs pairs(14, 50, longest, random);
      std::vector<T> scores = normal_vector<T>(pairs.count(), random);
      std::vector<T> grads = normal_vector<T>(pairs.count(), random);
      std::vector<T> shift = normal_vector<T>(pairs.rows, random), delta = normal_vector<T>(pairs.rows, random);
      shift[4] = kInfinity<T>;
      delta[4] = kNan<T>;
      pairs.for_each([&](std::int64_t row, std::int64_t, std::size_t pair) {
        if (row == 4) scores[pair] = grads[pair] = kNan<T>;
      });
      std::vector<T> probability = scores, result = grads;
      tile_kernels<T>().pair_probabilities(pairs.tile(), probability.data(), shift.data());
      tile_kernels<T>().pair_grad_scores(pairs.tile(), result.data(), probability.data(), shift.data(), delta.data(),
                                         T{0.5});
      bool right = true;
      pairs.for_each([&](std::int64_t row, std::int64_t, std::size_t pair) {
        const auto i = static_cast<std::size_t>(row);
        if (row == 4) {
          right = right && probability[pair] == 0 && result[pair] == 0;
        } else {
          right = right && ulps(probability[pair], std::exp(static_cast<long double>(scores[pair] - shift[i]))) <= 2;
          right = right && result[pair] == probability[pair] * (grads[pair] - T{0.5} * delta[i]);
        }
      });
      CHECK(right);
    }
  });
}

TEST_CASE_TEMPLATE("a NaN or infinite score of a pair shows in its row's sum, and in no other", T, float, double) {
  for (const T bad : {kNan<T>, kInfinity<T>}) {
    on_every_isa([&] {
      Random random(5);
      for (std::int64_t longest = 1; longest <= 37; ++longest) {
        const Pairs pairs(5, 50, longest, random);
        if (pairs.count() == 0) continue;
        const std::vector<T> scores = normal_vector<T>(pairs.count(), random);
        const auto at = static_cast<std::size_t>(random.below(pairs.count()));
        std::vector<T> poisoned = scores;
        poisoned[at] = bad;
        const std::vector<T> lowest(5, -kInfinity<T>), none(5, T{0});
        std::vector<T> maximum = lowest, sum = none, poisoned_maximum = lowest, poisoned_sum = none, rescale(5);
        tile_kernels<T>().pair_row_statistics(pairs.tile(), scores.data(), maximum.data(), sum.data());
        tile_kernels<T>().pair_online_softmax(pairs.tile(), poisoned.data(), poisoned_maximum.data(),
                                              poisoned_sum.data(), rescale.data());
        bool right = std::isnan(poisoned[at]);
        pairs.for_each([&](std::int64_t row, std::int64_t, std::size_t) {
          const auto i = static_cast<std::size_t>(row);
          const bool mine =
              static_cast<std::int32_t>(at) >= pairs.offsets[i] && static_cast<std::int32_t>(at) < pairs.offsets[i + 1];
          right = right && (mine ? std::isnan(poisoned_sum[i]) : poisoned_sum[i] == sum[i]);
        });
        CAPTURE(longest);
        CHECK(right);
      }
    });
  }
}
