#include "bench_suites.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>

namespace cobble::program {
namespace {

using Cases = std::vector<BenchCase>;

/// `count` documents of `length` tokens.
std::string documents_of(int count, int length) {
  std::string lengths;
  for (int document = 0; document < count; ++document) lengths += fmt::format("{}{}", document == 0 ? "" : ",", length);
  return "documents(" + lengths + ")";
}

BenchCase with_heads(BenchCase measured, std::int64_t heads, std::int64_t batch) {
  measured.heads = heads;
  measured.batch = batch;
  measured.name += fmt::format(", {} heads, batch {}", heads, batch);
  return measured;
}

/// One of each kind, small: under a minute.
Cases quick_cases() {
  return {make_case("full(2048)"),         make_case("causal(4096)"),        make_case("window(16384,512,0)"),
          make_case("blocks(16384,64,8)"), make_case(documents_of(8, 1024)), make_case("random(2048,256)"),
          make_case("graph(16384,32)")};
}

Cases dense_cases() {
  Cases cases;
  for (const std::int64_t d : {40, 64, 72, 80, 96, 112, 128}) {
    cases.push_back(make_case("full(4096)", d, "f32", Sweep::head_dim));
  }
  for (const std::int64_t d : {64, 128}) cases.push_back(make_case("causal(8192)", d));
  cases.push_back(make_case("full(4096)", 64, "f64"));
  cases.push_back(with_heads(make_case("causal(1024)"), 8, 2));
  return cases;
}

Cases long_context_cases() {
  Cases cases;
  for (const std::int64_t d : {64, 128}) {
    for (const auto& pattern : {std::string("blocks(16384,64,8)"), documents_of(16, 1024)}) {
      cases.push_back(make_case(pattern, d));
    }
  }
  cases.push_back(make_case("longformer(16384,512,64)"));
  cases.push_back(make_case("bigbird(16384,64,3,1,3)"));
  cases.push_back(make_case("window(65536,128,0)"));
  cases.push_back(make_case("window(16384,512,0)", 128));
  cases.push_back(make_case("window(16384,512,0)", 64, "f64"));
  for (const int n : {2048, 4096, 8192, 16384, 32768, 65536, 131072}) {
    cases.push_back(make_case(fmt::format("window({},512,0)", n), 64, "f32", Sweep::tokens));
  }
  cases.push_back(make_case("window(65536,1024,0)"));
  cases.push_back(make_case("window(1048576,1024,0)"));
  return cases;
}

Cases unstructured_cases() {
  Cases cases = {make_case("random(2048,256)"), make_case("random(131072,256)"), make_case("graph(65536,32)")};
  for (const int pairs : {8, 16, 32, 64, 128, 256, 512, 1024, 2048}) {
    cases.push_back(make_case(fmt::format("random(4096,{})", pairs), 64, "f32", Sweep::density));
  }
  return cases;
}

Cases all_cases() {
  Cases cases = dense_cases();
  for (const Cases& more : {long_context_cases(), unstructured_cases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

/// A suite of score terms and compressed inputs, `features`, comes with them.
const std::map<std::string, std::function<Cases()>>& suites() {
  static const std::map<std::string, std::function<Cases()>> kSuites = {{"quick", quick_cases},
                                                                        {"dense", dense_cases},
                                                                        {"long-context", long_context_cases},
                                                                        {"unstructured", unstructured_cases},
                                                                        {"all", all_cases}};
  return kSuites;
}

/// "documents(1024 x 16)" for many equal arguments.
std::string short_pattern(const std::string& pattern) {
  const std::string documents = "documents(";
  if (pattern.rfind(documents, 0) != 0 || pattern.back() != ')') return pattern;
  const std::string list = pattern.substr(documents.size(), pattern.size() - documents.size() - 1);
  const std::string first = list.substr(0, list.find(','));
  const auto count = static_cast<int>(std::count(list.begin(), list.end(), ',')) + 1;
  std::string same = first;
  for (int i = 1; i < count; ++i) same += "," + first;
  return count > 3 && list == same ? fmt::format("documents({} x {})", count, first) : pattern;
}

}  // namespace

const char* to_string(Sweep sweep) noexcept {
  switch (sweep) {
    case Sweep::none: return "none";
    case Sweep::head_dim: return "head_dim";
    case Sweep::tokens: return "tokens";
    case Sweep::density: return "density";
  }
  return "";
}

BenchCase make_case(const std::string& pattern, std::int64_t head_dim, const std::string& dtype, Sweep sweep) {
  BenchCase result;
  result.name = fmt::format("{}, d = {}, {}", short_pattern(pattern), head_dim, dtype);
  result.pattern = pattern;
  result.head_dim = head_dim;
  result.dtype = dtype;
  result.sweep = sweep;
  return result;
}

const std::vector<std::string>& suite_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const auto& suite : suites()) names.push_back(suite.first);
    return names;
  }();
  return kNames;
}

std::vector<BenchCase> suite_cases(const std::string& suite) { return suites().at(suite)(); }

}  // namespace cobble::program
