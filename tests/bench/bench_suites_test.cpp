#include "bench_suites.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

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
  CHECK_THROWS_AS(suite_cases("features"), std::out_of_range);
}

TEST_CASE("the suite of everything holds all but the quick one") {
  std::set<std::string> all;
  for (const BenchCase& measured : suite_cases("all")) all.insert(measured.name);
  for (const char* suite : {"dense", "long-context", "unstructured"}) {
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

TEST_CASE("equal documents are counted in the name") {
  CHECK(make_case("documents(8,8,8,8)", 16, "f64").name == "documents(4 x 8), d = 16, f64");
  CHECK(make_case("documents(8,8,8,9)").name == "documents(8,8,8,9), d = 64, f32");
  CHECK(make_case("causal(5)").name == "causal(5), d = 64, f32");
}
