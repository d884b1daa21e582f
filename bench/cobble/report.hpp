#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cobble/files.hpp"
#include "cobble/model.hpp"
#include "cobble/pattern.hpp"

// What several subcommands print in the same way.

namespace cobble::program {

/// Names keep the order in which they are added.
using Json = nlohmann::ordered_json;

/// Writes one document and a line end to stdout. Numbers that are not finite become null.
void print_json(const Json& document);

/// Writes "label     text" to stdout, the label in a column of its own.
void print_line(const std::string& label, const std::string& text);

/// Pairs over rows x columns; 0 for an empty matrix.
double density(const Pattern& pattern);

/// rows, columns, pairs, density.
Json pattern_json(const Pattern& pattern);
/// "16,384 x 16,384 tokens, 9,298,176 pairs, density 3.46 %"
std::string pattern_text(const Pattern& pattern);

/// format, stored_entries, duplicates_merged, sorted_rows, expanded_symmetry, empty_rows.
Json read_report_json(const ReadReport& report);
/// "mtx, 78 entries stored, symmetry expanded, 3 duplicates merged"
std::string read_report_text(const ReadReport& report);

/// Which floor of traffic is the higher one: "theorem" or "compulsory".
const char* binding_bound(const TrafficBound& bound);
/// theorem_bound, compulsory, bound, binding.
Json bound_json(const TrafficBound& bound);
/// "1,048,576 words (the theorem binds)"
std::string bound_text(const TrafficBound& bound);

}  // namespace cobble::program
