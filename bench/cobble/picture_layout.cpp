#include <algorithm>
#include <cmath>

#include "cobble/error.hpp"
#include "picture.hpp"
#include "text.hpp"

namespace cobble::program {
namespace {

constexpr int kMostPixels = 1024;
constexpr int kFewestPixels = 80;  // of the shorter axis, so that it stays readable
constexpr std::int64_t kFewestCells = 16;
constexpr std::int64_t kMostPairs = 512;  // tokens up to which pairs are drawn
constexpr int kLargestPair = 32;
constexpr std::int64_t kFewestTiles = 256;
constexpr std::int64_t kUsualTile = 64;

int pixels_for(std::int64_t cells, int most) {
  return static_cast<int>(std::max<std::int64_t>(1, most / std::max<std::int64_t>(1, cells)));
}

/// 16, 32, 64 while that makes few tiles; beyond 64 the smallest 2^k or 1.5 * 2^k that fits the picture.
std::int64_t choose_tile(std::int64_t tokens, int most_pixels) {
  std::int64_t tile = 16;
  while (tile < kUsualTile && tokens / tile > kFewestTiles) tile *= 2;
  bool power_of_two = true;
  while ((tokens + tile - 1) / tile > most_pixels) {
    tile = power_of_two ? tile / 2 * 3 : tile / 3 * 4;
    power_of_two = !power_of_two;
  }
  return tile;
}

/// An axis on the scale of the other; when that makes it too short to see, on a scale of its own.
AxisLayout short_axis(const AxisLayout& longer, std::int64_t tokens) {
  AxisLayout axis = {tokens, longer.tokens_per_cell, longer.pixels_per_cell};
  if (axis.pixels() >= kFewestPixels || tokens == 0) return axis;
  while (axis.tokens_per_cell > 1 && axis.cells() < kFewestCells) axis.tokens_per_cell /= 2;
  axis.pixels_per_cell = std::clamp(pixels_for(axis.cells(), 2 * kFewestPixels), longer.pixels_per_cell, kLargestPair);
  return axis;
}

}  // namespace

PictureLayout lay_out(const Pattern& pattern, std::int64_t tile) {
  constexpr int kLeft = 104;
  constexpr int kRight = 28;
  constexpr int kTop = 76;
  constexpr int kBottom = 128;
  constexpr int kNarrowest = 600;

  const std::int64_t longest = std::max(pattern.rows(), pattern.columns());
  PictureLayout layout;
  layout.shows_pairs = longest <= kMostPairs;
  if (tile > 0) layout.tile = tile;
  AxisLayout longer{longest, 1, 1};
  if (!layout.shows_pairs) longer.tokens_per_cell = tile > 0 ? tile : choose_tile(longest, kMostPixels);
  if (longer.cells() > 4 * kMostPixels) {
    throw Error(ErrorCode::invalid_argument, "--tile " + std::to_string(tile) + " makes " +
                                                 group_digits(longer.cells()) + " tiles in a row, expected at most " +
                                                 group_digits(4 * kMostPixels));
  }
  longer.pixels_per_cell = std::min(pixels_for(longer.cells(), kMostPixels), kLargestPair);

  layout.queries = pattern.rows() == longest ? longer : short_axis(longer, pattern.rows());
  layout.keys = pattern.columns() == longest ? longer : short_axis(longer, pattern.columns());
  layout.plot = {kLeft, kTop, std::max(layout.keys.pixels(), 1), std::max(layout.queries.pixels(), 1)};
  layout.width = std::max(kNarrowest, kLeft + layout.plot.width + kRight);
  layout.height = kTop + std::max(layout.plot.height, kFewestPixels) + kBottom;
  return layout;
}

PictureLayout moved(PictureLayout layout, int left) {
  layout.plot.x += left - layout.left;
  layout.left = left;
  return layout;
}

std::vector<Tick> make_ticks(std::int64_t tokens, int most) {
  std::vector<Tick> ticks;
  if (tokens <= 0) return ticks;
  const bool binary = tokens % 1024 == 0;
  std::int64_t step = 1;
  for (int i = 0; tokens / step + 1 > std::max(most, 2); ++i) {
    // 1, 2, 5, 10, 20, 50, ...
    step = binary || i % 3 != 1 ? step * 2 : step / 2 * 5;
  }
  for (std::int64_t token = 0; token <= tokens; token += step) {
    ticks.push_back({static_cast<double>(token), group_digits(token)});
  }
  return ticks;
}

}  // namespace cobble::program
