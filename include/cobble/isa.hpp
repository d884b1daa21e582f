#pragma once

#include <string_view>
#include <vector>

// Which instruction set the kernels use. The library is built for all of them and takes the widest that the processor
// has, unless the environment variable COBBLE_ISA names another when the first kernel runs, or set_isa() did.

namespace cobble {

enum class Isa {
  automatic,    ///< the widest that the processor has
  baseline,     ///< what the compiler's target guarantees
  sse4,         ///< SSE4.2, AES and CLMUL
  avx2,         ///< AVX2, FMA, BMI2 and F16C
  avx512,       ///< AVX-512 F, BW, CD, DQ and VL
  avx512_bf16,  ///< avx512, with AVX-512 BF16 for products of dense tiles from bfloat16: see attention.hpp
  amx,          ///< avx512, with AMX for scores and their gradients from bfloat16; Linux gives the process permission
  neon          ///< Arm Advanced SIMD
};
/// "automatic", "baseline", "sse4", "avx2", "avx512", "avx512_bf16", "amx", "neon".
std::string_view to_string(Isa isa) noexcept;
/// Throws Error{invalid_argument} that lists the names.
Isa parse_isa(std::string_view name);

/// Those that this build holds and this processor runs, narrowest first.
std::vector<Isa> available_isas();
/// The one in use, never automatic. Throws Error{invalid_argument} when COBBLE_ISA asks for one that is not available.
Isa isa();
/// Chooses for the whole process; not to be called while attention is computed. Different instruction sets may give
/// different last bits. Throws Error{invalid_argument} when it is not available.
void set_isa(Isa isa);

}  // namespace cobble
