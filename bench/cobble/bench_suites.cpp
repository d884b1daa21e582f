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
  measured.name = case_name(measured);
  return measured;
}

/// Each token of Q and K stores `features` of head_dim; value_dim 0: as head_dim.
BenchCase with_features(const std::string& pattern, std::int64_t features, std::int64_t head_dim,
                        const std::string& storage = "csr", std::int64_t value_dim = 0) {
  BenchCase measured = make_case(pattern, head_dim, "f32", Sweep::features);
  measured.features = {features, storage};
  measured.value_dim = value_dim;
  measured.name = case_name(measured);
  return measured;
}

/// The order of the pattern's tokens is lost, and found again by `method` where that is not empty.
BenchCase shuffled(const std::string& pattern, const std::string& method) {
  BenchCase measured = make_case(pattern);
  measured.shuffled = true;
  measured.reorder = method;
  measured.name = case_name(measured);
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
  for (const std::int64_t d : {64, 128}) cases.push_back(make_case("full(4096)", d, "bf16"));
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
  for (const auto& pattern : {"blocks(8192,64,4)", "window(8192,256,0)"}) {
    cases.push_back(shuffled(pattern, "automatic"));
  }
  return cases;
}

/// V is dense. With a value of one feature little but the score products and the softmax is left.
Cases features_cases() {
  const std::string window = "window(16384,512,0)";
  Cases cases = {with_features(window, 4, 64)};
  for (const int features : {2, 4, 8, 16, 32, 64}) cases.push_back(with_features(window, features, 128));
  cases.push_back(with_features(window, 16, 256));
  cases.push_back(with_features(window, 8, 256, "csr", 1));
  cases.push_back(with_features(window, 16, 256, "bsr"));
  cases.push_back(with_features("random(4096,64)", 8, 128));
  return cases;
}

Cases all_cases() {
  Cases cases = dense_cases();
  for (const Cases& more : {long_context_cases(), unstructured_cases(), features_cases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

const std::map<std::string, std::function<Cases()>>& suites() {
  static const std::map<std::string, std::function<Cases()>> kSuites = {{"quick", quick_cases},
                                                                        {"dense", dense_cases},
                                                                        {"long-context", long_context_cases},
                                                                        {"unstructured", unstructured_cases},
                                                                        {"features", features_cases},
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
    case Sweep::features: return "features";
  }
  return "";
}

std::string case_name(const BenchCase& measured) {
  std::string name = short_pattern(measured.pattern);
  if (measured.shuffled) name += ", shuffled";
  name += measured.compressed() ? fmt::format(", d = {} of {} {}", *measured.features.features, measured.head_dim,
                                              measured.features.storage)
                                : fmt::format(", d = {}", measured.head_dim);
  if (measured.value_dim != 0) name += fmt::format(", d_v = {}", measured.value_dim);
  name += ", " + measured.dtype;
  if (!measured.reorder.empty()) name += ", reordered";
  if (measured.heads != 1 || measured.batch != 1) {
    name += fmt::format(", {} head{}, batch {}", measured.heads, measured.heads == 1 ? "" : "s", measured.batch);
  }
  return name;
}

BenchCase make_case(const std::string& pattern, std::int64_t head_dim, const std::string& dtype, Sweep sweep) {
  BenchCase result;
  result.pattern = pattern;
  result.head_dim = head_dim;
  result.dtype = dtype;
  result.sweep = sweep;
  result.name = case_name(result);
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
