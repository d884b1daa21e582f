#include "color.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace cobble::program {
namespace {

// OKLab after Bjoern Ottosson, "A perceptual color space for image processing" (2020).

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

constexpr Matrix kConesFromLinear = {Vector{0.4122214708, 0.5363325363, 0.0514459929},
                                     Vector{0.2119034982, 0.6806995451, 0.1073969566},
                                     Vector{0.0883024619, 0.2817188376, 0.6299787005}};
constexpr Matrix kLabFromCones = {Vector{0.2104542553, 0.7936177850, -0.0040720468},
                                  Vector{1.9779984951, -2.4285922050, 0.4505937099},
                                  Vector{0.0259040371, 0.7827717662, -0.8086757660}};
constexpr Matrix kConesFromLab = {Vector{1, 0.3963377774, 0.2158037573}, Vector{1, -0.1055613458, -0.0638541728},
                                  Vector{1, -0.0894841775, -1.2914855480}};
constexpr Matrix kLinearFromCones = {Vector{4.0767416621, -3.3077115913, 0.2309699292},
                                     Vector{-1.2684380046, 2.6097574011, -0.3413193965},
                                     Vector{-0.0041960863, -0.7034186147, 1.7076147010}};

Vector multiply(const Matrix& matrix, const Vector& vector) {
  Vector product{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) product[row] += matrix[row][column] * vector[column];
  }
  return product;
}

double linear_from_srgb(std::uint8_t channel) {
  const double value = channel / 255.0;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

std::uint8_t srgb_from_linear(double value) {
  const double encoded = value <= 0.0031308 ? 12.92 * value : 1.055 * std::pow(value, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(std::clamp(encoded, 0.0, 1.0) * 255));
}

Vector oklab(Color color) {
  Vector cones = multiply(kConesFromLinear,
                          {linear_from_srgb(color.red), linear_from_srgb(color.green), linear_from_srgb(color.blue)});
  for (double& cone : cones) cone = std::cbrt(cone);
  return multiply(kLabFromCones, cones);
}

Color from_oklab(const Vector& lab) {
  Vector cones = multiply(kConesFromLab, lab);
  for (double& cone : cones) cone = cone * cone * cone;
  const Vector linear = multiply(kLinearFromCones, cones);
  return {srgb_from_linear(linear[0]), srgb_from_linear(linear[1]), srgb_from_linear(linear[2])};
}

}  // namespace

std::string to_hex(Color color) { return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue); }

Color mix(Color a, Color b, double t) {
  const Vector lab_a = oklab(a);
  const Vector lab_b = oklab(b);
  Vector lab{};
  for (std::size_t i = 0; i < 3; ++i) lab[i] = lab_a[i] + t * (lab_b[i] - lab_a[i]);
  return from_oklab(lab);
}

Color mix(std::initializer_list<Color> stops, double t) {
  const std::size_t last = stops.size() - 1;
  const double position = std::clamp(t, 0.0, 1.0) * static_cast<double>(last);
  const std::size_t stop = std::min(static_cast<std::size_t>(position), last == 0 ? 0 : last - 1);
  const Color* const first = stops.begin();
  return mix(first[stop], first[std::min(stop + 1, last)], position - static_cast<double>(stop));
}

}  // namespace cobble::program
