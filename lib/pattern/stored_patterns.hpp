#pragma once

#include <string>

#include "cobble/pattern.hpp"

namespace cobble::detail {

/// Patterns over matrices that are known to be valid. `text` is what describe() answers; when empty, the storage,
/// sizes and counts.
Pattern csr_pattern(CsrPattern matrix, std::string text = {});
Pattern bsr_pattern(BsrPattern matrix, std::string text = {});

/// The matrix of a CSR-backed pattern, which lives as long as the pattern does; nullptr for other kinds.
const CsrPattern* stored_rows(const Pattern& pattern) noexcept;
/// The blocks of a BSR-backed pattern, which live as long as the pattern does; nullptr for other kinds.
const BsrPattern* stored_blocks(const Pattern& pattern) noexcept;

}  // namespace cobble::detail
