#include "term_arguments.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "cobble/files.hpp"
#include "support/error_of.hpp"
#include "support/memory_files.hpp"

using namespace cobble;
using namespace cobble::program;
using cobble::test::error_of;

TEST_CASE("without flags there are no terms") {
  const TermValues<float> values = make_terms<float>({}, causal(4), {}, 1);
  const ScoreTerms<float> terms = values.terms();
  CHECK(terms.softcap == 0);
  CHECK(terms.bias.values.data() == nullptr);
  CHECK(terms.alibi_slopes.empty());
  CHECK(terms.sinks.empty());
  CHECK(values.describe().empty());
}

TEST_CASE("flags become terms of the problem's heads") {
  const test::TemporaryDirectory directory;
  CsrMatrix<double> bias;
  bias.rows = bias.columns = 4;
  bias.row_offsets = {0, 1, 1, 2, 3};
  bias.column_indices = {0, 2, 1};
  bias.values = {0.5, -1, -std::numeric_limits<double>::infinity()};
  write_csr(directory / "bias.npz", bias.view());
  const TermArguments arguments{30, true, (directory / "bias.npz").string(), "random"};
  Problem problem;
  problem.query_heads = 8;
  const TermValues<float> values = make_terms<float>(arguments, causal(4), problem, 1);
  const ScoreTerms<float> terms = values.terms();
  CHECK(terms.softcap == 30);
  CHECK(std::vector<double>(terms.alibi_slopes.begin(), terms.alibi_slopes.end()) == alibi_slopes(8));
  CHECK(values.bias == std::vector<float>{0.5F, -1, -std::numeric_limits<float>::infinity()});
  CHECK(terms.bias.structure.contains(2, 2));
  CHECK(terms.bias.values.shape() == TensorShape{1, 1, 1, 3});
  CHECK(terms.sinks.size() == 8);
  CHECK(terms.sinks[0] != terms.sinks[1]);
  CHECK(values.describe() == "softcap 30, ALiBi, a bias of 3 values, sinks");
  CHECK(make_terms<float>(arguments, causal(4), problem, 2).sinks != values.sinks);
}

TEST_CASE("files that do not fit name the flag") {
  const test::TemporaryDirectory directory;
  const std::vector<float> three{1, 2, 3};
  write_npy(directory / "sinks.npy", {"", {3}, three});
  TermArguments arguments;
  arguments.sinks = (directory / "sinks.npy").string();
  Problem problem;
  problem.query_heads = 2;
  CHECK(error_of([&] { make_terms<float>(arguments, causal(4), problem, 1); }) ==
        "shape_mismatch: --sinks " + arguments.sinks + ": 3 numbers, but there are 2 query heads");
  problem.query_heads = 3;
  CHECK(make_terms<float>(arguments, causal(4), problem, 1).sinks == three);
}
