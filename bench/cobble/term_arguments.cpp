#include "term_arguments.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <span>
#include <utility>

#include "cobble/error.hpp"
#include "cobble/files.hpp"
#include "cobble/half.hpp"
#include "progress.hpp"
#include "random.hpp"
#include "text.hpp"

namespace cobble::program {
namespace {

constexpr std::uint64_t kSinkStream = 6;

template <class T>
void read_bias(const std::string& path, const Pattern& pattern, TermValues<T>& values) {
  const Progress progress("reading " + path);
  CsrMatrix<double> matrix = read_csr(path);
  if (matrix.rows != pattern.rows() || matrix.columns != pattern.columns()) {
    throw Error(ErrorCode::shape_mismatch, fmt::format("--bias {}: {} x {}, but the pattern is {} x {}", path,
                                                       matrix.rows, matrix.columns, pattern.rows(), pattern.columns()));
  }
  values.bias.reserve(matrix.values.size());
  for (const double value : matrix.values) values.bias.push_back(static_cast<T>(value));
  values.bias_structure = from_csr(std::move(matrix));
  values.has_bias = true;
}

template <class T>
std::vector<T> make_sinks(const std::string& source, std::int64_t heads, std::uint64_t seed) {
  if (source == "random") {
    std::vector<T> sinks(static_cast<std::size_t>(heads));
    fill_random(std::span<T>(sinks), seed, kSinkStream);
    return sinks;
  }
  const NumpyArray<T> array = read_npy<T>(source);
  if (array.values.size() != heads) {
    throw Error(ErrorCode::shape_mismatch, fmt::format("--sinks {}: {} numbers, but there are {} query heads", source,
                                                       array.values.size(), heads));
  }
  return {array.values.begin(), array.values.end()};
}

}  // namespace

void add_term_arguments(CLI::App& command, TermArguments& arguments) {
  const std::string group = "Terms of scores";
  command.add_option("--softcap", arguments.softcap, "Replace each scaled product x by C tanh(x / C)")
      ->type_name("C")
      ->check(CLI::PositiveNumber)
      ->group(group);
  command.add_flag("--alibi", arguments.alibi, "ALiBi with slopes 2^(-8 h / heads), h = 1, 2, ...")->group(group);
  command
      .add_option("--bias", arguments.bias_file,
                  "Values to add to scores, 0 where none is stored: .mtx, or a SciPy matrix as .npz")
      ->type_name("FILE")
      ->group(group);
  command
      .add_flag("--sinks{random}", arguments.sinks,
                "A sink for each query head: random, or --sinks=FILE, a .npy of as many numbers")
      ->group(group);
}

template <class T>
ScoreTerms<T> TermValues<T>::terms() const {
  ScoreTerms<T> terms;
  terms.softcap = softcap;
  if (has_bias) {
    terms.bias = {bias_structure, {bias.data(), {1, 1, 1, static_cast<std::int64_t>(bias.size())}}};
  }
  terms.alibi_slopes = slopes;
  terms.sinks = sinks;
  return terms;
}

template <class T>
std::string TermValues<T>::describe() const {
  std::string text;
  const auto add = [&text](const std::string& term) { text += (text.empty() ? "" : ", ") + term; };
  if (softcap != 0) add(fmt::format("softcap {}", softcap));
  if (!slopes.empty()) add("ALiBi");
  if (has_bias) add(fmt::format("a bias of {} values", group_digits(static_cast<std::int64_t>(bias.size()))));
  if (!sinks.empty()) add("sinks");
  return text;
}

template <class T>
TermValues<T> make_terms(const TermArguments& arguments, const Pattern& pattern, const Problem& problem,
                         std::uint64_t seed) {
  TermValues<T> values;
  values.softcap = arguments.softcap;
  if (arguments.alibi) values.slopes = alibi_slopes(problem.query_heads);
  if (!arguments.bias_file.empty()) read_bias(arguments.bias_file, pattern, values);
  if (!arguments.sinks.empty()) values.sinks = make_sinks<T>(arguments.sinks, problem.query_heads, seed);
  return values;
}

template struct TermValues<float>;
template struct TermValues<double>;
template struct TermValues<bfloat16>;
template struct TermValues<float16>;
template TermValues<float> make_terms(const TermArguments&, const Pattern&, const Problem&, std::uint64_t);
template TermValues<double> make_terms(const TermArguments&, const Pattern&, const Problem&, std::uint64_t);
template TermValues<bfloat16> make_terms(const TermArguments&, const Pattern&, const Problem&, std::uint64_t);
template TermValues<float16> make_terms(const TermArguments&, const Pattern&, const Problem&, std::uint64_t);

}  // namespace cobble::program
