#include "cobble/model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "support/error_of.hpp"

using namespace cobble;
using cobble::test::error_of;

TEST_CASE("the sparse bounds have the values of theorem 4.5") {
  // n = 4 tokens of d = 2 features, full: Z_input = 8, Z_QK = 16, M* = 4.
  CHECK(split_point(8, 16) == 4);
  CHECK(sparse_bound(8, 16, 16) == 4);  // 8^2 / 16
  CHECK(sparse_bound(8, 16, 1) == 32);  // 8 sqrt(16) / sqrt(1)
  CHECK(sparse_bound_large(8, 16, 1) == 64);
  CHECK(sparse_bound_small(8, 16, 16) == 8);
  CHECK(regime(4, 4.0) == Regime::large_fast_memory);
  CHECK(regime(3, 4.0) == Regime::small_fast_memory);
}

TEST_CASE("the dense bounds have the values of theorem 1.1") {
  CHECK(dense_split_point(2) == 4);
  CHECK(dense_bound(4, 2, 16) == 6);  // (16 * 4 + 4 * 8) / 16
  CHECK(dense_bound(4, 2, 1) == 48);  // (16 * 2 + 4 * 4) / 1
  CHECK(dense_bound_large(4, 2, 1) == 96);
  CHECK(dense_bound_small(4, 2, 16) == 12);
}

TEST_CASE("both sides of a bound are the same number at the split point, also where M* is no whole number") {
  for (double z_input = 1; z_input < 1e12; z_input = z_input * 7 + 3) {
    for (double z_qk = 1; z_qk <= z_input * z_input; z_qk = z_qk * 11 + 5) {
      const double split = split_point(z_input, z_qk);
      CHECK(sparse_bound_large(z_input, z_qk, split) == sparse_bound_small(z_input, z_qk, split));
    }
  }
  for (double d = 1; d <= 256; ++d) CHECK(dense_bound_large(12345, d, d * d) == dense_bound_small(12345, d, d * d));
}

TEST_CASE("the regime picks the smaller side below the split point and the smaller side above it") {
  const double z_input = 4096 * 64.0;
  const double z_qk = 4096 * 512.0;
  for (std::int64_t memory = 1; memory < (1LL << 40); memory *= 3) {
    const double large = sparse_bound_large(z_input, z_qk, static_cast<double>(memory));
    const double small = sparse_bound_small(z_input, z_qk, static_cast<double>(memory));
    CHECK(sparse_bound(z_input, z_qk, memory) == std::min(large, small));
  }
}

TEST_CASE("the dense case is the sparse formula at Z_input = n d, Z_QK = n^2, and the products with the weights") {
  const double n = 1000;
  for (const double d : {1.0, 16.0, 100.0, 256.0}) {
    CHECK(split_point(n * d, n * n) == doctest::Approx(dense_split_point(d)));
    for (const std::int64_t memory : {1, 64, 255, 256, 257, 10000, 65536, 1 << 20}) {
      CHECK(sparse_bound(n * d, n * n, memory) + weight_product_bound(n, d, memory) ==
            doctest::Approx(dense_bound(n, d, memory)).epsilon(1e-12));
    }
  }
  const AttentionSize full{1000, 1000, 1000000, 16, 16};
  CHECK(parameter_gradients_bound(full, 100) == doctest::Approx(dense_bound(1000, 16, 100)));
}

TEST_CASE("an empty pattern has no finite split point and the bound 0") {
  CHECK(split_point(640, 0) == std::numeric_limits<double>::infinity());
  CHECK(split_point(0, 0) == std::numeric_limits<double>::infinity());
  CHECK(regime(std::numeric_limits<std::int64_t>::max(), split_point(640, 0)) == Regime::small_fast_memory);
  CHECK(sparse_bound(640, 0, 64) == 0);
  CHECK(sparse_bound_small(640, 0, 64) == 0);
  CHECK(sparse_bound_large(640, 0, 64) == 6400);
  CHECK(attention_bound({0, 0, 0, 64, 64}, 64) == 0);
  CHECK(density({0, 5, 0, 64, 64}) == 0);
  CHECK(forward_bound({10, 10, 0, 8, 8}, 64).words() == forward_compulsory({10, 10, 0, 8, 8}));
}

TEST_CASE("products of sizes beyond 2^63 stay exact to rounding") {
  // n = 2^31 - 1 tokens of 2^20 features: Z_input^2 is about 2^102, n^2 d^2 as well.
  const double n = 2147483647.0;
  const double d = 1048576.0;
  const std::int64_t tokens = 2147483647;
  const AttentionSize size{tokens, tokens, tokens * tokens, 1048576, 1048576};
  CHECK(input_words(size) == n * d);
  CHECK(split_point(n * d, n * n) == doctest::Approx(d * d).epsilon(1e-15));
  CHECK(attention_bound(size, 1 << 20) == doctest::Approx(n * d * n / 1024.0).epsilon(1e-15));
  CHECK(dense_bound(n, d, std::int64_t{1} << 41) == doctest::Approx((n + d) * n / 2.0).epsilon(1e-15));
  CHECK(backward_compulsory(size) == doctest::Approx(8 * n * d).epsilon(1e-6));
}

TEST_CASE("compulsory traffic counts each input and each output once") {
  const AttentionSize size{2, 3, 6, 4, 5};
  CHECK(forward_compulsory(size) == 8 + 12 + 15 + 10 + 2);
  CHECK(backward_compulsory(size) == (8 + 12 + 15 + 10 + 10 + 2) + (8 + 12 + 15));
  CHECK(backward_compulsory(size, true) == backward_compulsory(size) + 2);
  CHECK(parameter_gradients_compulsory(size) == (8 + 12 + 12 + 16 + 20 + 10) + (16 + 20));
}

TEST_CASE("Z_input is the largest of the three inputs") {
  CHECK(input_words({10, 2, 20, 3, 5}) == 30);
  CHECK(input_words({2, 10, 20, 5, 3}) == 50);
  CHECK(input_words({2, 10, 20, 3, 5}) == 50);
  CHECK(density({2, 10, 5, 3, 5}) == 0.25);
}

TEST_CASE("a traffic bound says which floor binds") {
  // n = 1024, d = 16, full: the theorem asks for n^2 d / sqrt(M) = 2^20 words at M = 256, compulsory traffic is 66,560.
  const AttentionSize size{1024, 1024, 1024 * 1024, 16, 16};
  const TrafficBound tight = forward_bound(size, 256);
  CHECK(tight.theorem_binds());
  CHECK(tight.words() == 1048576);
  const TrafficBound roomy = backward_bound(size, 1 << 20);
  CHECK_FALSE(roomy.theorem_binds());
  CHECK(roomy.words() == 8 * 1024 * 16 + 1024);
}

TEST_CASE("a size that makes no sense is refused by name") {
  CHECK(error_of([] { split_point(-1, 4); }) == "invalid_argument: z_input = -1.000000, expected a size of at least 0");
  CHECK(error_of([] { sparse_bound(4, std::nan(""), 4); }) ==
        "invalid_argument: z_qk = nan, expected a size of at least 0");
  CHECK(error_of([] { dense_bound(-4, 1, 4); }) ==
        "invalid_argument: tokens = -4.000000, expected a size of at least 0");
  CHECK(error_of([] { regime(0, 4); }) == "invalid_argument: fast_memory_words = 0.000000, expected at least 1 word");
  CHECK(to_string(Regime::small_fast_memory) == "small_fast_memory");
  CHECK(to_string(Regime::large_fast_memory) == "large_fast_memory");
}
