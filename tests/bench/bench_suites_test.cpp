#include "bench_suites.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "cobble/pattern.hpp"

using namespace cobble::program;

TEST_CASE("every case of every suite has a pattern, and a name of its own") {
  CHECK(suite_names().size() >= 5);
  for (const std::string& suite : suite_names()) {
    const std::vector<BenchCase> cases = suite_cases(suite);
    CHECK_FALSE(cases.empty());
    std::set<std::string> names;
    for (const BenchCase& measured : cases) {
      CAPTURE(measured.name);
      names.insert(measured.name);
      if (measured.pattern.rfind("graph", 0) == 0 || measured.pattern.rfind("random(131072", 0) == 0) continue;  // slow
      CHECK(cobble::parse_pattern(measured.pattern).rows() >= 1024);
    }
    CHECK(names.size() == cases.size());
  }
  CHECK_THROWS_AS(suite_cases("none"), std::out_of_range);
}

TEST_CASE("the suite of everything holds all but the quick one") {
  std::set<std::string> all;
  for (const BenchCase& measured : suite_cases("all")) all.insert(measured.name);
  for (const char* suite : {"dense", "long-context", "unstructured", "features"}) {
    for (const BenchCase& measured : suite_cases(suite)) CHECK(all.contains(measured.name));
  }
}

TEST_CASE("a sweep varies what it is named after") {
  std::set<std::int64_t> head_dims;
  std::set<std::string> patterns;
  for (const BenchCase& measured : suite_cases("all")) {
    if (measured.sweep == Sweep::head_dim) head_dims.insert(measured.head_dim);
    if (measured.sweep == Sweep::density) patterns.insert(measured.pattern);
  }
  for (const std::int64_t d : {40, 72, 80, 96, 112, 128}) CHECK(head_dims.contains(d));
  CHECK(patterns.size() >= 5);
}

TEST_CASE("the suite of compressed inputs has the cases that its plot and its goals need") {
  std::set<std::pair<std::int64_t, std::int64_t>> of_window;  // K and d
  std::set<std::int64_t> of_128;
  bool unstructured = false;
  bool scores_alone = false;
  for (const BenchCase& measured : suite_cases("features")) {
    CAPTURE(measured.name);
    REQUIRE(measured.compressed());
    CHECK(*measured.features.features <= measured.head_dim);
    CHECK(measured.sweep == Sweep::features);
    unstructured = unstructured || measured.pattern.rfind("random", 0) == 0;
    scores_alone = scores_alone || (measured.value_dim == 1 && *measured.features.features == 8);
    if (measured.pattern != "window(16384,512,0)" || measured.value_dim != 0) continue;
    of_window.insert({*measured.features.features, measured.head_dim});
    if (measured.head_dim == 128) of_128.insert(*measured.features.features);
  }
  CHECK(of_window.contains({4, 64}));
  CHECK(of_window.contains({8, 128}));
  CHECK(of_window.contains({16, 128}));
  CHECK(of_window.contains({16, 256}));
  CHECK(of_128.size() >= 5);
  CHECK(unstructured);
  CHECK(scores_alone);
}

TEST_CASE("the unstructured suite reorders patterns whose order is lost") {
  std::set<std::string> patterns;
  for (const BenchCase& measured : suite_cases("unstructured")) {
    CHECK(measured.shuffled == !measured.reorder.empty());
    if (measured.shuffled) patterns.insert(measured.pattern);
  }
  CHECK(patterns.contains("blocks(8192,64,4)"));
  CHECK(patterns.size() >= 2);
}

TEST_CASE("a case's name says what makes it another case") {
  BenchCase measured = make_case("causal(64)", 32);
  measured.features = {8, "bsr"};
  measured.value_dim = 1;
  CHECK(case_name(measured) == "causal(64), d = 8 of 32 bsr, d_v = 1, f32");
  measured = make_case("causal(64)", 32);
  measured.shuffled = true;
  measured.reorder = "automatic";
  measured.batch = 2;
  CHECK(case_name(measured) == "causal(64), shuffled, d = 32, f32, reordered, 1 head, batch 2");
}

TEST_CASE("equal documents are counted in the name") {
  CHECK(make_case("documents(8,8,8,8)", 16, "f64").name == "documents(4 x 8), d = 16, f64");
  CHECK(make_case("documents(8,8,8,9)").name == "documents(8,8,8,9), d = 64, f32");
  CHECK(make_case("causal(5)").name == "causal(5), d = 64, f32");
}
