#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "cobble/csr.hpp"
#include "cobble/error.hpp"
#include "cobble/files.hpp"

// What the fuzz targets of the readers share: read under every option, and use what came out. Only cobble::Error may
// be thrown.

namespace cobble::fuzz {

/// Many empty rows are valid and take their time: they are not what is looked for here.
constexpr std::int64_t kMostRows = 1 << 16;

inline void read_as(std::span<const std::byte> bytes, const std::string& name, const ReadOptions& options) {
  try {
    const Pattern pattern = read_pattern_from_memory(bytes, name, options);
    if (pattern.rows() > kMostRows) return;
    const CsrPattern matrix = pattern.to_csr();
    validate(matrix.view());
    if (matrix.view().entries() != pattern.pairs()) std::abort();
  } catch (const Error&) {
  }
  try {
    ReadReport report;
    const CsrMatrix<double> matrix = read_csr_from_memory(bytes, name, options, &report);
    validate(matrix.view());
    if (report.stored_entries - report.duplicates_merged < matrix.view().entries()) std::abort();
  } catch (const Error&) {
  }
}

inline void read_all_ways(const std::uint8_t* data, std::size_t size, const std::string& name) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read_as(bytes, name, {});
  read_as(bytes, name, {.strict = true});
  read_as(bytes, name, {.drop_zeros = true});
}

}  // namespace cobble::fuzz
