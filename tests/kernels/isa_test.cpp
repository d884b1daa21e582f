#include "cobble/isa.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kernels/tile_kernels.hpp"
#include "support/error_of.hpp"
#include "support/isas.hpp"

using namespace cobble;
using namespace cobble::test;
using kernels::tile_kernels;

namespace {

constexpr Isa kAll[] = {Isa::automatic, Isa::baseline,    Isa::sse4, Isa::avx2,
                        Isa::avx512,    Isa::avx512_bf16, Isa::amx,  Isa::neon};

/// Where `isa` stands in available_isas(); -1: nowhere.
std::ptrdiff_t place(Isa isa) {
  const std::vector<Isa> isas = available_isas();
  const auto found = std::find(isas.begin(), isas.end(), isa);
  return found == isas.end() ? -1 : found - isas.begin();
}

}  // namespace

TEST_CASE("names of instruction sets are read back as what they name") {
  std::set<std::string> names;
  for (const Isa isa : kAll) {
    CHECK(parse_isa(to_string(isa)) == isa);
    names.insert(std::string(to_string(isa)));
  }
  CHECK(names ==
        std::set<std::string>{"automatic", "baseline", "sse4", "avx2", "avx512", "avx512_bf16", "amx", "neon"});
}

TEST_CASE("a name that is none is refused, with the names that are") {
  for (const char* name : {"", "AVX2", "avx", "sse4.2", " avx2", "avx2 "}) {
    const std::string error = error_of([&] { parse_isa(name); });
    CHECK(error.starts_with("invalid_argument: instruction set is \"" + std::string(name) +
                            "\"; expected automatic or one of "));
    for (const Isa isa : available_isas()) CHECK(error.find(to_string(isa)) != std::string::npos);
  }
}

TEST_CASE("instruction sets come narrowest first, the baseline before all others") {
  const std::vector<Isa> isas = available_isas();
  REQUIRE(!isas.empty());
  CHECK(isas.front() == Isa::baseline);
  CHECK(std::is_sorted(isas.begin(), isas.end()));  // in the order of the enumeration
  CHECK(std::adjacent_find(isas.begin(), isas.end()) == isas.end());
  CHECK(std::count(isas.begin(), isas.end(), Isa::automatic) == 0);
#if defined(__x86_64__)
  CHECK(place(Isa::neon) == -1);
  CHECK(place(Isa::sse4) == (__builtin_cpu_supports("sse4.2") != 0 ? 1 : -1));
  const bool bf16 = __builtin_cpu_supports("avx512bf16") != 0;
  CHECK((place(Isa::avx512_bf16) >= 0) == bf16);
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  CHECK(place(Isa::avx2) == (avx2 ? 2 : -1));
#endif
}

TEST_CASE("the one in use is one that there is, and automatic stands for the widest") {
  CHECK(place(isa()) >= 0);
  const Isa before = isa();
  set_isa(Isa::automatic);
  CHECK(isa() == available_isas().back());
  set_isa(before);
  CHECK(isa() == before);
}

TEST_CASE("what this machine has not is refused, and the choice stays") {
  const Isa before = isa();
  int missing = 0;
  for (const Isa other : kAll) {
    if (other == Isa::automatic || place(other) >= 0) continue;
    ++missing;
    const std::string error = error_of([&] { set_isa(other); });
    CHECK(error.starts_with("invalid_argument: isa is " + std::string(to_string(other)) +
                            ", which is not available here; expected one of baseline"));
    CHECK(isa() == before);
  }
  CHECK(missing > 0);  // no processor is an x86 and an Arm
}

TEST_CASE_TEMPLATE("every instruction set has kernels of its own, and set_isa() switches to them", T, float, double) {
  std::vector<const kernels::TileKernels<T>*> tables;
  std::set<const void*> functions;
  on_every_isa([&] {
    tables.push_back(&tile_kernels<T>());
    CHECK(&tile_kernels<T>() == tables.back());
    functions.insert(reinterpret_cast<const void*>(tile_kernels<T>().multiply));
  });
  // AVX-512 BF16 and AMX multiply bfloat16 only: float and double have AVX-512's kernels.
  std::size_t own = available_isas().size();
  for (const Isa halves : {Isa::avx512_bf16, Isa::amx}) own -= place(halves) >= 0 ? 1 : 0;
  CHECK(std::set(tables.begin(), tables.end()).size() == own);
  CHECK(functions.size() == own);
  // And back, in any order.
  for (std::size_t i = tables.size(); i-- > 0;) {
    set_isa(available_isas()[i]);
    CHECK(&tile_kernels<T>() == tables[i]);
  }
  set_isa(Isa::automatic);
  CHECK(&tile_kernels<T>() == tables.back());
}

TEST_CASE("kernels compute with the instructions of the one that is set") {
  // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24, of which a product that is rounded keeps 1 + 2^-11 alone.
  const float x = 1 + 0x1p-12F;
  on_every_isa([&] {
    if (isa() == Isa::neon) return;  // its baseline fuses too
    const bool fuses = isa() >= Isa::avx2;
    float y = -(1 + 0x1p-11F);
    tile_kernels<float>().axpy(1, x, &x, &y);
    CHECK(y == (fuses ? 0x1p-24F : 0.0F));
  });
}
