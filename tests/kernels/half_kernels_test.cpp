#include "kernels/half_kernels.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cobble/isa.hpp"

// Conversions by vectors have the bits of those one by one, on every instruction set that this machine has.

using namespace cobble;
using kernels::half_kernels;

namespace {

/// Runs `check` on every instruction set, then goes back to the one before.
template <class Check>
void on_every_isa(Check check) {
  const Isa before = isa();
  for (const Isa other : available_isas()) {
    set_isa(other);
    CAPTURE(std::string(to_string(other)));
    check();
  }
  set_isa(before);
}

/// Every half.
template <class Half>
std::vector<Half> all_halves() {
  std::vector<Half> halves;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    halves.push_back(Half::from_bits(static_cast<std::uint16_t>(bits)));
  return halves;
}

/// Floats between neighbouring halves: at, below and above the middle; also those that are no half at all.
template <class Half>
std::vector<float> floats_around_halves() {
  std::vector<float> floats;
  for (const Half half : all_halves<Half>()) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(half));
    const std::uint32_t middle = std::is_same_v<Half, bfloat16> ? 0x8000 : 0x1000;
    for (const std::uint32_t offset : {0U, 1U, middle - 1, middle, middle + 1}) {
      floats.push_back(std::bit_cast<float>(bits + offset));
    }
  }
  for (int exponent = -149; exponent < 128; ++exponent) floats.push_back(std::ldexp(-1.7F, exponent));
  // Halves of the smallest numbers are met in the middle, too.
  for (int i = 0; i < 5000; ++i) floats.push_back(std::ldexp(static_cast<float>(i), -26));
  return floats;
}

}  // namespace

TEST_CASE_TEMPLATE("every half becomes the float that it is", Half, bfloat16, float16) {
  const std::vector<Half> halves = all_halves<Half>();
  on_every_isa([&] {
    std::vector<float> floats(halves.size());
    half_kernels<Half>().widen(std::ssize(halves), halves.data(), floats.data());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < halves.size(); ++i) {
      const float expected = static_cast<float>(halves[i]);
      if (std::bit_cast<std::uint32_t>(floats[i]) != std::bit_cast<std::uint32_t>(expected)) ++wrong;
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE_TEMPLATE("floats round to the nearest half, ties to even", Half, bfloat16, float16) {
  const std::vector<float> floats = floats_around_halves<Half>();
  on_every_isa([&] {
    std::vector<Half> halves(floats.size());
    half_kernels<Half>().narrow(std::ssize(floats), floats.data(), halves.data());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < floats.size(); ++i) {
      if (halves[i].bits != Half(floats[i]).bits) ++wrong;
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE_TEMPLATE("conversions of any number of elements write those and no more", Half, bfloat16, float16) {
  on_every_isa([] {
    for (std::int64_t n = 0; n <= 70; ++n) {
      CAPTURE(n);
      const auto size = static_cast<std::size_t>(n);
      std::vector<Half> halves(size + 1, Half(-1.0F));
      std::vector<float> floats(size + 1, -1.0F);
      std::vector<Half> back(size + 1, Half(-1.0F));
      for (std::size_t i = 0; i < size; ++i) halves[i] = Half(static_cast<float>(i) * 0.5F + 1);
      half_kernels<Half>().widen(n, halves.data(), floats.data());
      half_kernels<Half>().narrow(n, floats.data(), back.data());
      bool same = true;
      for (std::size_t i = 0; i <= size; ++i) {
        same = same && floats[i] == static_cast<float>(halves[i]) && back[i] == halves[i];
      }
      CHECK(same);
    }
  });
}

TEST_CASE_TEMPLATE("NaN and infinity are found wherever they stand", Half, bfloat16, float16) {
  on_every_isa([] {
    for (const std::size_t n : {1U, 7U, 31U, 33U, 64U, 97U}) {
      std::vector<Half> halves(n, std::numeric_limits<Half>::lowest());
      const auto finite = [&] { return half_kernels<Half>().all_finite(std::ssize(halves), halves.data()); };
      CHECK(finite());
      bool found = true;
      for (std::size_t i = 0; i < n; ++i) {
        for (const Half odd : {std::numeric_limits<Half>::quiet_NaN(), std::numeric_limits<Half>::infinity(),
                               Half(-std::numeric_limits<float>::infinity())}) {
          halves[i] = odd;
          found = found && !finite();
        }
        halves[i] = std::numeric_limits<Half>::max();
      }
      CHECK(found);
      CHECK(finite());
    }
  });
}
