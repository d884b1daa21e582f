#include "word_list.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "cobble/error.hpp"

namespace cobble::program {
namespace {

constexpr std::int64_t kLargestExponent = 40;
constexpr std::int64_t kLargest = std::int64_t{1} << kLargestExponent;

[[noreturn]] void reject(std::string_view part) {
  throw Error(ErrorCode::invalid_argument, "\"" + std::string(part) +
                                               "\" is no size of fast memory; expected words from 1 to 2^40, such as "
                                               "4096, 2^12, or 2^8..2^18 for doubling");
}

std::int64_t parse_number(std::string_view text, std::string_view part) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || fault != std::errc() || end != text.data() + text.size()) reject(part);
  return number;
}

std::int64_t parse_words(std::string_view text, std::string_view part) {
  std::int64_t words = 0;
  if (text.substr(0, 2) == "2^") {
    const std::int64_t exponent = parse_number(text.substr(2), part);
    if (exponent < 0 || exponent > kLargestExponent) reject(part);
    words = std::int64_t{1} << exponent;
  } else {
    words = parse_number(text, part);
  }
  if (words < 1 || words > kLargest) reject(part);
  return words;
}

}  // namespace

std::vector<std::int64_t> parse_word_list(std::string_view text) {
  std::vector<std::int64_t> list;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t dots = part.find("..");
    if (dots == std::string_view::npos) {
      list.push_back(parse_words(part, part));
      continue;
    }
    const std::int64_t last = parse_words(part.substr(dots + 2), part);
    std::int64_t words = parse_words(part.substr(0, dots), part);
    if (words > last) reject(part);
    for (; words <= last; words *= 2) list.push_back(words);
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

}  // namespace cobble::program
