#include "pattern/closed_sums.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

namespace cobble::detail {
namespace {

TEST_CASE("sums in closed form equal those of a loop") {
  bool all_equal = true;
  for (std::int64_t begin = -6; begin < 12; ++begin) {
    for (std::int64_t end = begin; end < 14; ++end) {
      for (std::int64_t limit = 0; limit < 9; ++limit) {
        std::int64_t clamped = 0;
        std::int64_t between = 0;
        for (std::int64_t t = begin; t < end; ++t) {
          clamped += std::clamp<std::int64_t>(t, 0, limit);
          between += std::clamp<std::int64_t>(t, 2, 2 + limit);
        }
        all_equal = all_equal && sum_clamped(begin, end, limit) == clamped;
        all_equal = all_equal && sum_clamped(begin, end, 2, 2 + limit) == between;
        if (begin < 0) continue;
        std::int64_t quotients = 0;
        std::int64_t numbers = 0;
        for (std::int64_t t = begin; t < end; ++t) {
          quotients += t / (limit + 1);
          numbers += t;
        }
        all_equal = all_equal && sum_quotients(begin, end, limit + 1) == quotients;
        all_equal = all_equal && sum_range(begin, end) == numbers;
      }
    }
  }
  CHECK(all_equal);
}

TEST_CASE("sums over the largest sizes are exact") {
  const std::int64_t n = 2147483647;
  CHECK(sum_clamped(-n, 2 * n, n) == n * (n - 1) / 2 + n * n);
  CHECK(sum_clamped(3 * n, 4 * n, n) == n * n);
  CHECK(sum_quotients(0, n, 1) == n * (n - 1) / 2);
}

}  // namespace
}  // namespace cobble::detail
