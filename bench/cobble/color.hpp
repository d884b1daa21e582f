#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace cobble::program {

/// sRGB.
struct Color {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;

  bool operator==(const Color&) const = default;
};

/// "#1d3f8f"
std::string to_hex(Color color);

/// Between `a` (t = 0) and `b` (t = 1), mixed in OKLab, where equal steps of t look equally large.
Color mix(Color a, Color b, double t);

/// Along evenly spaced stops; t in [0, 1].
Color mix(std::initializer_list<Color> stops, double t);

}  // namespace cobble::program
