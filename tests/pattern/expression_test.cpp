#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "cobble/pattern.hpp"
#include "support/error_of.hpp"
#include "support/sample_patterns.hpp"

namespace cobble {
namespace {

std::string error_in(std::string_view expression) {
  return test::error_of([&] { parse_pattern(expression); });
}

TEST_CASE("what a pattern says of itself reads back as the same pattern") {
  int parsed = 0;
  for (const test::SamplePattern& sample : test::named_sample_patterns(65, 65)) {
    const std::string text = sample.pattern.describe();
    INFO(sample.name, ": ", text);
    if (text.find("pairs)") != std::string::npos || text.find("predicate") != std::string::npos) continue;
    CHECK(parse_pattern(text).to_csr() == sample.pattern.to_csr());
    CHECK(parse_pattern(text).describe() == text);
    ++parsed;
  }
  CHECK(parsed >= 22);
  for (const test::SamplePattern& sample : test::named_sample_patterns(30, 65)) {
    const std::string text = sample.pattern.describe();
    INFO(sample.name, ": ", text);
    if (text.find("pairs)") != std::string::npos || text.find("predicate") != std::string::npos) continue;
    CHECK(parse_pattern(text).to_csr() == sample.pattern.to_csr());
  }
}

TEST_CASE("each kind can be called by its name") {
  const auto same = [](std::string_view expression, const Pattern& pattern) {
    return parse_pattern(expression).to_csr() == pattern.to_csr();
  };
  CHECK(same("full(9)", full(9)));
  CHECK(same("full( 9 x 4 )", full(9, 4)));
  CHECK(same("causal(4x9)", causal(4, 9)));
  CHECK(same("window(9,3,1)", window(9, 3, 1)));
  CHECK(same("window(9 x 20,3,1)", window(9, 20, 3, 1)));
  CHECK(same("dilated(30,2,3)", dilated(30, 2, 3)));
  CHECK(same("strided(30,4)", strided(30, 4)));
  CHECK(same("fixed(30,4,1)", fixed(30, 4, 1)));
  CHECK(same("global_tokens(9x12,2)", global_tokens(9, 12, 2)));
  CHECK(same("global_tokens(9,[2,5])", global_tokens(9, {2, 5})));
  CHECK(same("leading_tokens(9x12,2)", leading_tokens(9, 12, 2)));
  CHECK(same("longformer(30,3,2)", longformer(30, 3, 2)));
  CHECK(same("bigbird(30,2,3,1,2)", bigbird(30, 2, 3, 1, 2, 0)));
  CHECK(same("bigbird(30,2,3,1,2,8)", bigbird(30, 2, 3, 1, 2, 8)));
  CHECK(same("documents(3, 0, 4)", documents(std::vector<std::int64_t>{3, 0, 4})));
  CHECK(same("documents(2x3, 4)",
             documents_from_offsets(std::vector<std::int64_t>{0, 2, 6}, std::vector<std::int64_t>{0, 3, 7})));
  CHECK(same("documents()", full(0)));
  CHECK(same("prefix(9,4)", prefix(9, 4)));
  CHECK(same("vertical_slash(9,[1,4],[])", vertical_slash(9, {1, 4}, {})));
  CHECK(same("blocks(30,4,2,7)", random_blocks(30, 4, 2, 7)));
  CHECK(same("random(9x30,4,7)", random_pairs(9, 30, 4, 7)));
  CHECK(same("graph(30,4.5,7)", power_law_graph(30, 4.5, 7)));
  CHECK(same("full(0)", full(0)));
  CHECK(same("window(1,0,0)", window(1, 0, 0)));
}

TEST_CASE("the default seed serves the random kinds that name none") {
  CHECK(parse_pattern("random(20,3)", 5).to_csr() == random_pairs(20, 20, 3, 5).to_csr());
  CHECK(parse_pattern("random(20,3,18446744073709551615)").describe() == "random(20,3,18446744073709551615)");
}

TEST_CASE("operators bind as documented") {
  const Pattern a = window(20, 3, 3);
  const Pattern b = leading_tokens(20, 2);
  const Pattern c = causal(20);
  const auto parsed = [](std::string_view text) { return parse_pattern(text).to_csr(); };
  CHECK(parsed("window(20,3,3) | leading_tokens(20,2) & causal(20)") == (a | (b & c)).to_csr());
  CHECK(parsed("(window(20,3,3) | leading_tokens(20,2)) & causal(20)") == ((a | b) & c).to_csr());
  CHECK(parsed("causal(20)-window(20,3,3)|leading_tokens(20,2)") == ((c - a) | b).to_csr());
  CHECK(parsed("causal(20)-(window(20,3,3)|leading_tokens(20,2))") == (c - (a | b)).to_csr());
  CHECK(parsed("!window(20,3,3)&causal(20)") == ((!a) & c).to_csr());
  CHECK(parsed("!(window(20,3,3)&causal(20))") == (!(a & c)).to_csr());
  CHECK(parsed("!!causal(20)") == c.to_csr());
  CHECK(parsed(" \t( ( causal ( 20 ) ) )\n") == c.to_csr());
}

TEST_CASE("an expression that breaks off or goes on says where and what was expected") {
  CHECK(error_in("") ==
        "invalid_argument: pattern expression, column 1: expected a pattern such as causal(1024), "
        "found the end");
  CHECK(error_in("  causal(8) | ") ==
        "invalid_argument: pattern expression, column 15: expected a pattern such as "
        "causal(1024), found the end");
  CHECK(error_in("causal(8) causal(8)") ==
        "invalid_argument: pattern expression, column 11: expected &, |, - or the end, found 'c'");
  CHECK(error_in("(causal(8)") ==
        "invalid_argument: pattern expression, column 11: expected &, |, - or ), found the end");
  CHECK(error_in("causal(8))") ==
        "invalid_argument: pattern expression, column 10: expected &, |, - or the end, found ')'");
  CHECK(error_in("causal") ==
        "invalid_argument: pattern expression, column 7: expected ( as in causal(n), found the end");
  CHECK(error_in("window(8,1;2)") ==
        "invalid_argument: pattern expression, column 11: expected , or ) as in "
        "window(n,left,right), found ';'");
  CHECK(error_in("window(8,,2)") == "invalid_argument: pattern expression, column 10: expected a number, found ','");
  CHECK(error_in("causal(\xFF)") ==
        "invalid_argument: pattern expression, column 8: expected a number, found a byte "
        "that is not printable ASCII");
  CHECK(error_in("global_tokens(8,[1,2)") ==
        "invalid_argument: pattern expression, column 21: expected , or ] in a list, found ')'");
  CHECK(error_in("global_tokens(8,[-1])") ==
        "invalid_argument: pattern expression, column 18: expected a whole number "
        "in [0, 2147483647] in a list");
}

TEST_CASE("an unknown name is answered with the known ones") {
  const std::string error = error_in("causal(8) | sliding(8,2)");
  CHECK(
      error.starts_with("invalid_argument: pattern expression, column 13: unknown pattern 'sliding', expected one of "
                        "full causal window"));
  CHECK(error.ends_with("blocks random graph"));
  CHECK(error_in(std::string(100000, 'a')).size() < 400);
}

TEST_CASE("the number and the form of arguments are checked") {
  CHECK(error_in("window(8,1)") ==
        "invalid_argument: pattern expression, column 1: found 2 arguments, expected window(n,left,right)");
  CHECK(error_in("full()") == "invalid_argument: pattern expression, column 1: found 0 arguments, expected full(n)");
  CHECK(error_in("strided(8x9,2)") ==
        "invalid_argument: pattern expression, column 9: strided: this kind is square, "
        "expected one number n");
  CHECK(error_in("window(8,1.5,0)") ==
        "invalid_argument: pattern expression, column 10: window: expected a whole "
        "number for left");
  CHECK(error_in("causal(1e3)") ==
        "invalid_argument: pattern expression, column 8: causal: expected n, or n_q x n_k, "
        "in whole numbers");
  CHECK(error_in("causal(8x)") == "invalid_argument: pattern expression, column 10: expected a number, found ')'");
  CHECK(error_in("causal(8x2.5)") ==
        "invalid_argument: pattern expression, column 10: expected a whole number after x");
  CHECK(error_in("vertical_slash(8,1,[2])") ==
        "invalid_argument: pattern expression, column 18: vertical_slash: "
        "expected a list such as [0,5,9] for verticals");
  CHECK(error_in("graph(8,[2])") ==
        "invalid_argument: pattern expression, column 9: graph: expected a number for mean_degree");
  CHECK(error_in("random(8,2,-1)") ==
        "invalid_argument: pattern expression, column 12: random: expected a whole "
        "number of at least 0 for seed");
  CHECK(
      error_in("global_tokens(8x9,[1])").starts_with("invalid_argument: pattern expression, column 1: global_tokens:"));
}

TEST_CASE("numbers beyond their range are errors") {
  CHECK(error_in("window(2147483648,1,1)") ==
        "invalid_argument: pattern expression, column 1: window: n = 2147483648 "
        "does not fit the range [0, 2147483647]");
  CHECK(error_in("causal(-3)") ==
        "invalid_argument: pattern expression, column 1: causal: n = -3 does not fit the "
        "range [0, 2147483647]");
  CHECK(error_in("causal(5x-3)") ==
        "invalid_argument: pattern expression, column 1: causal: n_k = -3 does not fit "
        "the range [0, 2147483647]");
  CHECK(error_in("window(8,-1,0)") ==
        "invalid_argument: pattern expression, column 1: window: left = -1, expected at least 0");
  CHECK(error_in("causal(99999999999999999999)") ==
        "invalid_argument: pattern expression, column 8: the number does not fit 64 bits");
  CHECK(error_in("window(8,18446744073709551615,0)") ==
        "invalid_argument: pattern expression, column 10: window: left does not fit 64 bits");
  CHECK(error_in("graph(8,1e999)") ==
        "invalid_argument: pattern expression, column 9: the number does not fit a double");
  CHECK(error_in("documents(2147483647,1)").starts_with("invalid_argument: pattern expression, column 1: documents:"));
  CHECK(parse_pattern("window(8,4294967296,0)").pairs() == 36);
}

TEST_CASE("sizes that do not fit one another are reported at the operator") {
  CHECK(error_in("causal(8) & full(9)") ==
        "invalid_argument: pattern expression, column 11: a set operation on "
        "patterns of 8 x 8 and 9 x 9, expected the same size");
}

TEST_CASE("no depth of nesting exhausts the stack") {
  CHECK(error_in(std::string(1000000, '(')) ==
        "invalid_argument: pattern expression, column 201: parentheses nest deeper than 200");
  CHECK(parse_pattern(std::string(1000000, '!') + "causal(8)").pairs() == 36);
  CHECK(parse_pattern(std::string(200, '(') + "causal(8)" + std::string(200, ')')).pairs() == 36);
  std::string complements;
  for (int k = 0; k < 1000000; ++k) complements += "!(";
  CHECK(error_in(complements).find("parentheses nest deeper than 200") != std::string::npos);
  std::string chain = "causal(8)";
  for (int k = 0; k < 100000; ++k) chain += "|full(8)";
  CHECK(error_in(chain).find("set operations nest deeper than 1000") != std::string::npos);
}

}  // namespace
}  // namespace cobble
