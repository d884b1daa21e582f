#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace cobble::program {

/// Sizes of fast memory as a command line gives them: "256", "2^8", "100,1000,2^20", "2^8..2^18" (each twice the one
/// before), in any combination. Sorted, each once, from 1 to 2^40 words. Throws Error{invalid_argument} that quotes the
/// part at fault.
std::vector<std::int64_t> parse_word_list(std::string_view text);

}  // namespace cobble::program
