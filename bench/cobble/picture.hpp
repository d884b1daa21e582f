#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cobble/pattern.hpp"
#include "painter.hpp"

// The picture of a pattern: queries from top to bottom, keys from left to right. Up to 512 tokens every pair is drawn,
// on tiles tinted by kind; beyond, every tile, full ones in one colour, partial ones shaded by their fill.

namespace cobble::program {

/// How one axis is cut into cells of whole pixels.
struct AxisLayout {
  std::int64_t tokens = 0;
  std::int64_t tokens_per_cell = 1;
  int pixels_per_cell = 1;

  std::int64_t cells() const { return (tokens + tokens_per_cell - 1) / tokens_per_cell; }
  int pixels() const { return static_cast<int>(cells()) * pixels_per_cell; }
};

struct PictureLayout {
  AxisLayout queries;
  AxisLayout keys;
  bool shows_pairs = false;  ///< cells are single pairs
  std::int64_t tile = 16;    ///< of the tinted tiles below pairs

  int left = 0;   ///< where the picture begins, on a canvas that holds others too
  int width = 0;  ///< of the whole picture
  int height = 0;
  Box plot;
};

/// `tile` 0: chosen. Throws Error{invalid_argument} when tiles of this size do not fit a picture.
PictureLayout lay_out(const Pattern& pattern, std::int64_t tile = 0);

/// The same picture with its left edge at `left`.
PictureLayout moved(PictureLayout layout, int left);

void paint(const Pattern& pattern, const std::string& title, const PictureLayout& layout, Painter& painter);

struct Tick {
  double position = 0;  ///< in tokens
  std::string label;
};
/// At round numbers, at most `most` of them: multiples of a power of two when `tokens` is a multiple of 1024, otherwise
/// of 1, 2 or 5 times a power of ten.
std::vector<Tick> make_ticks(std::int64_t tokens, int most);

/// Where a partial tile of `area` pairs stands between a single pair (0) and all (1): eyes take equal ratios for equal
/// steps, so by the logarithm of its fill.
double shade_of_fill(double fill, std::int64_t area);
/// The colour of a partial tile; from light to dark in steps that look even.
Color shade_color(double shade);

}  // namespace cobble::program
