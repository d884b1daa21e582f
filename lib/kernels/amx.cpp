#include "kernels/amx.hpp"

#include <algorithm>
#include <cstring>

#include "cobble/isa.hpp"

#if defined(__x86_64__) && defined(__linux__)
#define COBBLE_HAS_AMX 1
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cobble::kernels {
namespace {

constexpr std::int64_t kTileRows = 16;
constexpr std::int64_t kTileFeatures = 32;

#ifdef COBBLE_HAS_AMX

bool ask_for_amx() {
  constexpr std::uint32_t kBf16 = 1U << 22;
  constexpr std::uint32_t kTile = 1U << 24;
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBf16) == 0 || (d & kTile) == 0) return false;
  // Linux lets no process have the large state of tiles that did not ask for it.
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileConfig kWholeTiles{};

// The compilers' intrinsics do not say that these read memory (g++ 12).
#define COBBLE_AMX __attribute__((target("amx-tile,amx-bf16,avx512f")))
#define COBBLE_TILE_LOAD(tile, from, bytes) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"(bytes) : "memory")
#define COBBLE_TILE_STORE(tile, to, bytes) \
  asm volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(to), "r"(bytes) : "memory")
#define COBBLE_TILE_ZERO(tile) asm volatile("tilezero %%tmm" #tile : :)
#define COBBLE_TILE_MULTIPLY(sum, a, b) asm volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : :)

/// Sums of 32 x 32 elements of c.
struct alignas(64) Sums {
  float values[2 * kTileRows][2 * kTileRows];
};

/// 32 rows of a times two tiles, or one, of columns of b.
template <bool kTwo>
COBBLE_AMX void multiply_tiles(const bfloat16* a, std::int64_t a_stride, const std::uint32_t* b, std::int64_t b_stride,
                               std::int64_t steps, Sums& sums) {
  const std::int64_t a_bytes = a_stride * 2;
  const std::int64_t b_bytes = b_stride * 4;
  const bfloat16* const lower = a + kTileRows * a_stride;
  COBBLE_TILE_ZERO(0);
  COBBLE_TILE_ZERO(2);
  if constexpr (kTwo) {
    COBBLE_TILE_ZERO(1);
    COBBLE_TILE_ZERO(3);
  }
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::uint32_t* const columns = b + step * kTileRows * b_stride;
    COBBLE_TILE_LOAD(4, a + step * kTileFeatures, a_bytes);
    COBBLE_TILE_LOAD(6, columns, b_bytes);
    COBBLE_TILE_MULTIPLY(0, 4, 6);
    COBBLE_TILE_LOAD(5, lower + step * kTileFeatures, a_bytes);
    COBBLE_TILE_MULTIPLY(2, 5, 6);
    if constexpr (kTwo) {
      COBBLE_TILE_LOAD(7, columns + kTileRows, b_bytes);
      COBBLE_TILE_MULTIPLY(1, 4, 7);
      COBBLE_TILE_MULTIPLY(3, 5, 7);
    }
  }
  constexpr std::int64_t kBytes = sizeof(sums.values[0]);
  COBBLE_TILE_STORE(0, &sums.values[0][0], kBytes);
  COBBLE_TILE_STORE(2, &sums.values[kTileRows][0], kBytes);
  if constexpr (kTwo) {
    COBBLE_TILE_STORE(1, &sums.values[0][kTileRows], kBytes);
    COBBLE_TILE_STORE(3, &sums.values[kTileRows][kTileRows], kBytes);
  }
}

COBBLE_AMX void write_sums(const Sums& sums, float alpha, std::int64_t rows, std::int64_t columns, float* c,
                           std::int64_t c_stride) {
  const __m512 factor = _mm512_set1_ps(alpha);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < columns; i += 16) {
      _mm512_storeu_ps(c + r * c_stride + i, _mm512_mul_ps(factor, _mm512_load_ps(&sums.values[r][i])));
    }
  }
}

/// The columns that any of some rows wants.
Interval wanted_columns(const Bf16Product& p, std::int64_t first_row, std::int64_t rows) {
  Interval wanted{0, static_cast<std::int32_t>(p.columns)};
  if (p.columns_of_row == nullptr) return wanted;
  wanted = {wanted.end, 0};
  for (std::int64_t r = first_row; r < first_row + rows; ++r) {
    const Interval& row = p.columns_of_row[r];
    if (row.begin >= row.end) continue;
    wanted.begin = row.begin < wanted.begin ? row.begin : wanted.begin;
    wanted.end = row.end > wanted.end ? row.end : wanted.end;
  }
  return wanted;
}

#endif

}  // namespace

#ifdef COBBLE_HAS_AMX

bool has_amx() {
  static const bool available = ask_for_amx();
  return available;
}

bool uses_amx() { return isa() == Isa::amx; }

COBBLE_AMX void multiply_bf16(const Bf16Product& p) {
  constexpr std::int64_t kRows = 2 * kTileRows;
  alignas(64) bfloat16 packed[kRows * kMostAmxFeatures];
  Sums sums;
  const std::int64_t steps = paired_rows(p.inner) / kTileRows;
  asm volatile("ldtilecfg %0" : : "m"(kWholeTiles));
  for (std::int64_t row = 0; row < p.rows; row += kRows) {
    const std::int64_t rows = std::min(kRows, p.rows - row);
    const Interval wanted = wanted_columns(p, row, rows);
    if (wanted.begin >= wanted.end) continue;
    const bfloat16* a = p.a + row * p.a_stride;
    std::int64_t a_stride = p.a_stride;
    if (rows < kRows || p.inner % kTileFeatures != 0) {
      // Tiles are whole: what is beyond is 0, not what memory holds there.
      a_stride = steps * kTileFeatures;
      std::memset(static_cast<void*>(packed), 0, sizeof(bfloat16) * static_cast<std::size_t>(kRows * a_stride));
      for (std::int64_t r = 0; r < rows; ++r) {
        std::memcpy(packed + r * a_stride, a + r * p.a_stride, sizeof(bfloat16) * static_cast<std::size_t>(p.inner));
      }
      a = packed;
    }
    for (std::int64_t column = wanted.begin / kTileRows * kTileRows; column < wanted.end; column += kRows) {
      const std::int64_t columns = std::min(kRows, p.columns - column);
      if (columns == kRows) {
        multiply_tiles<true>(a, a_stride, p.b + column, p.b_stride, steps, sums);
      } else {
        multiply_tiles<false>(a, a_stride, p.b + column, p.b_stride, steps, sums);
      }
      write_sums(sums, p.alpha, rows, columns, p.c + row * p.c_stride + column, p.c_stride);
    }
  }
  asm volatile("tilerelease" : :);
}

#else

bool has_amx() { return false; }
bool uses_amx() { return false; }
void multiply_bf16(const Bf16Product&) {}

#endif

}  // namespace cobble::kernels
