#include "pattern/score_term_checks.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "support/error_of.hpp"

using namespace cobble;
using cobble::test::error_of;

namespace {

/// Terms that fit 2 batch entries, 4 query heads, 2 queries and 3 keys.
struct Terms {
  std::vector<float> memory = std::vector<float>(24);
  std::vector<double> slopes = {1, 2, 3, 4};
  ScoreTerms<float> terms;

  Terms() {
    terms.softcap = 30;
    terms.bias = {from_csr({2, 3, {0, 1, 3}, {0, 1, 2}}), {memory.data(), {2, 4, 1, 3}}};
    terms.alibi_slopes = slopes;
    terms.sinks = std::span(memory).first(4);
  }
  std::string error() const {
    return error_of([this] { detail::validate(terms, {2, 4, 2, 3}); });
  }
};

}  // namespace

TEST_CASE("terms that fit are accepted, shared or not") {
  Terms t;
  CHECK(t.error() == "no error");
  for (const std::int64_t batch : {1, 2}) {
    for (const std::int64_t heads : {1, 4}) {
      t.terms.bias.values = {t.memory.data(), {batch, heads, 1, 3}};
      CHECK(t.error() == "no error");
    }
  }
  t.terms = {};
  CHECK(t.error() == "no error");
  CHECK_FALSE(detail::has_terms(t.terms));
}

TEST_CASE("each term alone is a term") {
  const Terms all;
  ScoreTerms<float> terms;
  SUBCASE("softcap") { terms.softcap = 1; }
  SUBCASE("bias") { terms.bias = all.terms.bias; }
  SUBCASE("slopes") { terms.alibi_slopes = all.terms.alibi_slopes; }
  SUBCASE("sinks") { terms.sinks = all.terms.sinks; }
  CHECK(detail::has_terms(terms));
}

TEST_CASE("a softcap is positive and finite") {
  Terms t;
  t.terms.softcap = -2;
  CHECK(t.error() == "invalid_argument: softcap = -2.000000, expected a positive finite number, or 0 for none");
  t.terms.softcap = std::numeric_limits<double>::quiet_NaN();
  CHECK(t.error() == "invalid_argument: softcap = nan, expected a positive finite number, or 0 for none");
  t.terms.softcap = std::numeric_limits<double>::infinity();
  CHECK(t.error() == "invalid_argument: softcap = inf, expected a positive finite number, or 0 for none");
}

TEST_CASE("a bias has the structure of the problem and as many values as it stores") {
  Terms t;
  SUBCASE("structure") {
    t.terms.bias.structure = from_csr({3, 3, {0, 1, 2, 3}, {0, 1, 2}});
    CHECK(t.error() == "shape_mismatch: bias.structure is 3 x 3, expected 2 x 3 (query tokens x key tokens)");
  }
  SUBCASE("no matrix") {
    t.terms.bias.structure = full(2, 3);
    CHECK(t.error() == "invalid_argument: bias.structure is full(2x3), expected a pattern held as a CSR or BSR matrix");
  }
  SUBCASE("values") {
    t.terms.bias.values = {t.memory.data(), {2, 4, 1, 2}};
    CHECK(t.error() ==
          "shape_mismatch: bias.values is 2 x 4 x 1 x 2, expected 1 or 2 x 1 or 4 x 1 x 3 (batch x query heads x 1 x "
          "stored values)");
  }
  SUBCASE("heads") {
    t.terms.bias.values = {t.memory.data(), {2, 2, 1, 3}};
    CHECK(t.error() ==
          "shape_mismatch: bias.values is 2 x 2 x 1 x 3, expected 1 or 2 x 1 or 4 x 1 x 3 (batch x query heads x 1 x "
          "stored values)");
  }
  SUBCASE("no data") {
    t.terms.bias.values = {nullptr, {1, 1, 1, 3}};
    CHECK(t.error() == "invalid_argument: bias.values has no data");
  }
  SUBCASE("gaps") {
    t.terms.bias.values = {t.memory.data(), {1, 1, 1, 3}, {0, 0, 0, 2}};
    CHECK(t.error() == "invalid_argument: bias.values has a stride of 2 between the values of a matrix, expected 1");
  }
}

TEST_CASE("slopes and sinks are one for each query head") {
  Terms t;
  t.terms.alibi_slopes = t.terms.alibi_slopes.first(2);
  CHECK(t.error() == "shape_mismatch: alibi_slopes has 2 entries, expected one for each of 4 query heads");
  t.terms.alibi_slopes = t.slopes;
  t.terms.sinks = t.terms.sinks.first(1);
  CHECK(t.error() == "shape_mismatch: sinks has 1 entries, expected one for each of 4 query heads");
  t.terms.sinks = {};
  t.slopes[2] = std::numeric_limits<double>::infinity();
  CHECK(t.error() == "invalid_argument: alibi_slopes[2] = inf, expected a finite number");
}
