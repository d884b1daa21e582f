#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"
#include "support/pattern_oracle.hpp"
#include "support/sample_patterns.hpp"

namespace cobble {
namespace {

using test::error_of;
using test::first_difference;

TEST_CASE("every operation on every two kinds is exact") {
  const std::int64_t n = 24;
  const std::vector<test::SamplePattern> samples = test::named_sample_patterns(n, n);
  std::vector<test::DensePattern> dense;
  for (const test::SamplePattern& sample : samples) dense.emplace_back(n, n, sample.contains);
  for (std::size_t a = 0; a < samples.size(); ++a) {
    for (std::size_t b = 0; b < samples.size(); ++b) {
      INFO(samples[a].name, " and ", samples[b].name);
      const test::DensePattern either(n, n, [&](auto i, auto j) { return dense[a].at(i, j) || dense[b].at(i, j); });
      const test::DensePattern both(n, n, [&](auto i, auto j) { return dense[a].at(i, j) && dense[b].at(i, j); });
      const test::DensePattern rest(n, n, [&](auto i, auto j) { return dense[a].at(i, j) && !dense[b].at(i, j); });
      CHECK(either.check_runs(samples[a].pattern | samples[b].pattern) == "");
      CHECK(both.check_runs(samples[a].pattern & samples[b].pattern) == "");
      CHECK(rest.check_runs(samples[a].pattern - samples[b].pattern) == "");
    }
  }
}

TEST_CASE("every complement is exact, and twice the complement is the pattern") {
  for (const test::SamplePattern& sample : test::named_sample_patterns(65, 65)) {
    INFO(sample.name);
    CHECK(first_difference(!sample.pattern, 65, 65, [&](auto i, auto j) { return !sample.contains(i, j); }) == "");
    CHECK((!!sample.pattern).describe() == sample.pattern.describe());
  }
}

TEST_CASE("a hundred operations on one another stay exact") {
  Pattern pattern = causal(50);
  std::function<bool(std::int64_t, std::int64_t)> contains = [](auto i, auto j) { return j <= i; };
  for (std::int64_t k = 0; k < 100; ++k) {
    const Pattern other = window(50, k % 7, k % 11);
    const auto in_window = [k](std::int64_t i, std::int64_t j) { return j >= i - k % 7 && j <= i + k % 11; };
    if (k % 3 == 0) {
      pattern = pattern - other;
      contains = [before = contains, in_window](auto i, auto j) { return before(i, j) && !in_window(i, j); };
    } else if (k % 3 == 1) {
      pattern = !(pattern & other);
      contains = [before = contains, in_window](auto i, auto j) { return !(before(i, j) && in_window(i, j)); };
    } else {
      pattern = other | pattern;
      contains = [before = contains, in_window](auto i, auto j) { return before(i, j) || in_window(i, j); };
    }
  }
  CHECK(test::DensePattern(50, 50, contains).check_runs(pattern) == "");
}

TEST_CASE("patterns of different sizes cannot be combined") {
  const std::string expected = "shape_mismatch: a set operation on patterns of 4 x 4 and 4 x 5, expected the same size";
  CHECK(error_of([] { full(4) | full(4, 5); }) == expected);
  CHECK(error_of([] { full(4) & full(4, 5); }) == expected);
  CHECK(error_of([] { full(4) - full(4, 5); }) == expected);
}

TEST_CASE("endless nesting is an error long before the stack ends") {
  Pattern pattern = causal(4);
  CHECK(error_of([&] {
          for (int k = 0; k < 100000; ++k) pattern = pattern | window(4, k % 3, 0);
        }) == "unsupported: set operations nest deeper than 1000; store the pattern (to_csr)");
  CHECK(pattern.pairs() == 10);
}

TEST_CASE("an expression has the parentheses that it needs and no others") {
  const Pattern a = full(4);
  const Pattern b = causal(4);
  CHECK((a | b).describe() == "full(4) | causal(4)");
  CHECK(((a | b) - a).describe() == "full(4) | causal(4) - full(4)");
  CHECK((a | (b - a)).describe() == "full(4) | (causal(4) - full(4))");
  CHECK(((a & b) | a).describe() == "full(4) & causal(4) | full(4)");
  CHECK((a & (b | a)).describe() == "full(4) & (causal(4) | full(4))");
  CHECK((a & (b & a)).describe() == "full(4) & (causal(4) & full(4))");
  CHECK((!(a & b)).describe() == "!(full(4) & causal(4))");
  CHECK(((!a) & b).describe() == "!full(4) & causal(4)");
}

}  // namespace
}  // namespace cobble
