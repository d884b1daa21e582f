#include "cobble/isa.hpp"

#include <hwy/highway.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "cobble/error.hpp"
#include "kernels/amx.hpp"
#include "kernels/bf16_product.hpp"
#include "kernels/isa_tables.hpp"

namespace cobble {
namespace {

struct Target {
  Isa isa;
  const char* name;
  std::int64_t bit;  ///< Highway's
};

constexpr Target kTargets[] = {{Isa::baseline, "baseline", HWY_STATIC_TARGET},
                               {Isa::sse4, "sse4", HWY_SSE4},
                               {Isa::avx2, "avx2", HWY_AVX2},
                               {Isa::avx512, "avx512", HWY_AVX3},
                               {Isa::avx512_bf16, "avx512_bf16", HWY_AVX3},  // the same tables
                               {Isa::amx, "amx", HWY_AVX3},
                               {Isa::neon, "neon", HWY_NEON}};

bool is_available(const Target& target) {
  const bool in_table = (HWY_TARGETS & target.bit) != 0 && (hwy::SupportedTargets() & target.bit) != 0;
  if (target.isa == Isa::avx512_bf16) return in_table && kernels::has_avx512_bf16();
  return in_table && (target.isa != Isa::amx || kernels::has_amx());
}

std::string names() {
  std::string list;
  for (const Target& target : kTargets) {
    if (is_available(target)) list += (list.empty() ? "" : ", ") + std::string(target.name);
  }
  return list;
}

/// Narrowest first, so the last one that is available is the widest.
const Target& find(Isa isa, const char* argument) {
  const Target* found = nullptr;
  for (const Target& target : kTargets) {
    if (is_available(target) && (isa == Isa::automatic || isa == target.isa)) found = &target;
  }
  if (found == nullptr) {
    throw Error(ErrorCode::invalid_argument, std::string(argument) + " is " + std::string(to_string(isa)) +
                                                 ", which is not available here; expected one of " + names());
  }
  return *found;
}

Isa parse(std::string_view name, const char* argument) {
  if (name == "automatic") return Isa::automatic;
  for (const Target& target : kTargets) {
    if (name == target.name) return target.isa;
  }
  throw Error(ErrorCode::invalid_argument,
              std::string(argument) + " is \"" + std::string(name) + "\"; expected automatic or one of " + names());
}

struct Choice {
  hwy::ChosenTarget highway;
  std::atomic<Isa> isa;

  Choice() {
    const char* const forced = std::getenv("COBBLE_ISA");  // NOLINT(concurrency-mt-unsafe): read once
    assign(find(forced == nullptr || *forced == '\0' ? Isa::automatic : parse(forced, "COBBLE_ISA"), "COBBLE_ISA"));
  }
  void assign(const Target& target) {
    highway.Update(target.bit);
    isa = target.isa;
  }
};

Choice& choice() {
  static Choice chosen;
  return chosen;
}

}  // namespace

std::string_view to_string(Isa isa) noexcept {
  for (const Target& target : kTargets) {
    if (target.isa == isa) return target.name;
  }
  return "automatic";
}

Isa parse_isa(std::string_view name) { return parse(name, "instruction set"); }

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const Target& target : kTargets) {
    if (is_available(target)) isas.push_back(target.isa);
  }
  return isas;
}

Isa isa() { return choice().isa; }

void set_isa(Isa isa) { choice().assign(find(isa, "isa")); }

namespace kernels {
const hwy::ChosenTarget& chosen_target() { return choice().highway; }
}  // namespace kernels

}  // namespace cobble
