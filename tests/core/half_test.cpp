#include "cobble/half.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "cobble/aligned_buffer.hpp"
#include "cobble/tensor.hpp"
#include "support/random.hpp"

using namespace cobble;
using cobble::test::Random;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A binary format: numbers are fraction * 2^exponent with `digits` bits of fraction.
struct Format {
  int digits;
  int lowest_exponent;  ///< of the last bit of the smallest numbers
  double overflow;      ///< this and above is infinity
  int fraction_bits() const { return digits - 1; }
};
template <class T>
constexpr Format kFormat = std::is_same_v<T, float16> ? Format{11, -24, 65520.0} : Format{8, -133, 0x1.FFp127};

/// What the bits mean, by the definition of the format.
template <class T>
double value_of(std::uint16_t bits) {
  const Format format = kFormat<T>;
  const int exponent_bits = 15 - format.fraction_bits();
  const int exponent = bits >> format.fraction_bits() & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << format.fraction_bits()) - 1);
  double magnitude = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    magnitude = fraction == 0 ? kInfinity : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, format.lowest_exponent);
  } else {
    magnitude = std::ldexp(fraction + (1 << format.fraction_bits()), format.lowest_exponent + exponent - 1);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The nearest number of the format, as a double; of two, the one whose last bit is 0.
template <class T>
double rounded(double x) {
  const Format format = kFormat<T>;
  if (!std::isfinite(x) || x == 0) return x;
  if (std::abs(x) >= format.overflow) return std::copysign(kInfinity, x);
  int exponent = 0;
  std::frexp(x, &exponent);
  const int last_bit = std::max(exponent - format.digits, format.lowest_exponent);
  return std::ldexp(std::nearbyint(std::ldexp(x, -last_bit)), last_bit);  // nearbyint rounds ties to even
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T>
void check_rounding(double x) {
  const double expected = rounded<T>(x);
  if (!same(static_cast<double>(T(x)), expected)) {
    CAPTURE(x);
    CHECK(static_cast<double>(T(x)) == expected);
  }
  const auto narrow = static_cast<float>(x);
  const double expected_of_float = rounded<T>(narrow);
  if (!same(static_cast<double>(T(narrow)), expected_of_float)) {
    CAPTURE(narrow);
    CHECK(static_cast<double>(T(narrow)) == expected_of_float);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("every pattern of bits has its value and survives the way through float and double", T, bfloat16,
                   float16) {
  int wrong = 0;
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const T number = T::from_bits(bits);
    const auto wide = static_cast<float>(number);
    const double expected = value_of<T>(bits);
    wrong += !same(wide, expected) || !same(static_cast<double>(number), expected);
    if (std::isnan(expected)) {
      // Still a NaN of the same sign and payload, made quiet.
      const auto quiet = static_cast<std::uint16_t>(bits | 1U << (kFormat<T>.fraction_bits() - 1));
      wrong += T(wide).bits != quiet || !std::isnan(static_cast<double>(T(static_cast<double>(wide))));
    } else {
      wrong += T(wide).bits != bits || T(static_cast<double>(wide)).bits != bits;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("between each two neighbours numbers go to the nearer, ties to the even one", T, bfloat16, float16) {
  const auto infinity = std::numeric_limits<T>::infinity().bits;
  for (std::uint16_t bits = 0; bits < infinity; ++bits) {
    const double low = value_of<T>(bits);
    const double high = bits + 1 == infinity ? 2 * kFormat<T>.overflow - low : value_of<T>(bits + 1);
    const double middle = (low + high) / 2;
    for (const double x : {middle, std::nextafter(middle, 0.0), std::nextafter(middle, kInfinity),
                           static_cast<double>(std::nextafter(static_cast<float>(middle), 0.0F)),
                           static_cast<double>(std::nextafter(static_cast<float>(middle), INFINITY))}) {
      check_rounding<T>(x);
      check_rounding<T>(-x);
    }
  }
}

TEST_CASE_TEMPLATE("random floats and doubles of all magnitudes are rounded to the nearest", T, bfloat16, float16) {
  constexpr std::uint64_t kSeed = 1;
  CAPTURE(kSeed);
  Random random(kSeed);
  for (int i = 0; i < 200000; ++i) {
    check_rounding<T>(std::bit_cast<float>(static_cast<std::uint32_t>(random.bits())));
    check_rounding<T>(std::bit_cast<double>(random.bits()));
    check_rounding<T>(std::ldexp(random.normal(), static_cast<int>(random.below(60)) - 40));
  }
}

TEST_CASE("a double is rounded once, not by way of float") {
  // 1 + 2^-8 lies in the middle between two numbers of bfloat16. A bit above it is lost in float, which gives a tie.
  CHECK(static_cast<double>(bfloat16(1 + 0x1p-8)) == 1.0);
  CHECK(static_cast<double>(bfloat16(1 + 0x1p-8 + 0x1p-40)) == 1 + 0x1p-7);
  CHECK(static_cast<double>(float16(1 + 0x1p-11 + 0x1p-40)) == 1 + 0x1p-10);
  CHECK(static_cast<double>(float16(1 + 0x1p-11)) == 1.0);
}

TEST_CASE("integers are rounded as well") {
  CHECK(static_cast<float>(bfloat16(257)) == 256);
  CHECK(static_cast<float>(float16(2049)) == 2048);
  CHECK(static_cast<float>(float16(2051)) == 2052);
  CHECK(static_cast<float>(float16(std::int64_t{1} << 40)) == std::numeric_limits<float>::infinity());
}

TEST_CASE_TEMPLATE("the limits are those of the format", T, bfloat16, float16) {
  using Limits = std::numeric_limits<T>;
  CHECK(Limits::digits == kFormat<T>.digits);
  CHECK(static_cast<double>(Limits::epsilon()) == std::ldexp(1, 1 - kFormat<T>.digits));
  CHECK(static_cast<double>(Limits::denorm_min()) == std::ldexp(1, kFormat<T>.lowest_exponent));
  CHECK(static_cast<double>(Limits::min()) == std::ldexp(1, kFormat<T>.lowest_exponent + kFormat<T>.digits - 1));
  CHECK(static_cast<double>(T(kFormat<T>.overflow)) == kInfinity);
  CHECK(T(std::nextafter(kFormat<T>.overflow, 0.0)) == Limits::max());
  CHECK(T(-std::nextafter(kFormat<T>.overflow, 0.0)) == Limits::lowest());
  CHECK(std::isnan(static_cast<float>(Limits::quiet_NaN())));
  CHECK_FALSE(Limits::quiet_NaN() == Limits::quiet_NaN());
  CHECK(T(0.0F) == T(-0.0F));
}

TEST_CASE("conversions are possible at compile time") {
  static_assert(bfloat16(1.0F).bits == 0x3F80);
  static_assert(float16(1.0F).bits == 0x3C00);
  static_assert(float16(0x1p-24).bits == 1);
  static_assert(static_cast<float>(float16::from_bits(0x3C01)) == 1 + 0x1p-10F);
}

TEST_CASE_TEMPLATE("tensors hold halves", T, bfloat16, float16) {
  AlignedBuffer<T> buffer(3);
  buffer[2] = T(1.5F);
  CHECK(static_cast<float>(buffer[2]) == 1.5F);
  Tensor<T> tensor({1, 1, 2, 2});
  tensor(0, 0, 1, 0) = T(0.25F);
  const TensorView<const T> view = tensor.view();
  CHECK(static_cast<double>(view(0, 0, 1, 0)) == 0.25);
}
