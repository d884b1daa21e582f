#include "picture.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "progress.hpp"
#include "report.hpp"
#include "stroke_font.hpp"
#include "text.hpp"
#include "tile_map.hpp"

namespace cobble::program {
namespace {

constexpr Color kInk = {0x1f, 0x26, 0x33};
constexpr Color kSoftInk = {0x5b, 0x64, 0x75};
constexpr Color kFrame = {0xb8, 0xbf, 0xca};
constexpr Color kEmpty = {0xf2, 0xf4, 0xf7};
constexpr Color kFull = {0x1d, 0x4e, 0x9e};
constexpr Color kFullTint = {0xd3, 0xe0, 0xf5};
constexpr Color kPartial = {0xe8, 0x70, 0x1a};
constexpr Color kPartialTint = {0xfd, 0xec, 0xd8};

constexpr double kTextSize = 14;
constexpr double kTitleSize = 20;
constexpr int kShades = 48;

/// A cell inside the plot, with a gap to the next one where there is room for it.
Box cell_box(const PictureLayout& layout, std::int64_t row, std::int64_t column, std::int64_t columns, int gap) {
  return {layout.plot.x + static_cast<int>(column) * layout.keys.pixels_per_cell,
          layout.plot.y + static_cast<int>(row) * layout.queries.pixels_per_cell,
          static_cast<int>(columns) * layout.keys.pixels_per_cell - gap, layout.queries.pixels_per_cell - gap};
}

int gap_between_cells(const PictureLayout& layout) {
  const int smaller = std::min(layout.queries.pixels_per_cell, layout.keys.pixels_per_cell);
  return smaller >= 12 ? 2 : smaller >= (layout.shows_pairs ? 4 : 6) ? 1 : 0;
}

/// Tiles as rectangles, grouped by shade; neighbours of the same shade in a row become one where there is no gap.
void paint_tiles(const TileMap& map, const PictureLayout& layout, Painter& painter) {
  const int gap = gap_between_cells(layout);
  const std::int64_t area = map.row_tile * map.column_tile;
  std::map<int, std::vector<Box>> boxes;
  const auto level_of = [&](std::int64_t row, std::int64_t column) {
    const float fill = map.at(row, column);
    if (fill == 0) return -1;
    return fill == 1 ? kShades : std::min(kShades - 1, static_cast<int>(shade_of_fill(fill, area) * kShades));
  };
  for (std::int64_t row = 0; row < map.tile_rows; ++row) {
    for (std::int64_t column = 0; column < map.tile_columns;) {
      const int level = level_of(row, column);
      std::int64_t end = column + 1;
      while (gap == 0 && end < map.tile_columns && level_of(row, end) == level) ++end;
      if (level >= 0) boxes[level].push_back(cell_box(layout, row, column, end - column, gap));
      column = end;
    }
  }
  for (const auto& [level, same_level] : boxes) {
    painter.fill(same_level, level == kShades ? kFull : shade_color((level + 0.5) / kShades));
  }
}

/// Pairs on tinted tiles.
void paint_pairs(const Pattern& pattern, const TileMap& tiles, const PictureLayout& layout, Painter& painter) {
  std::array<std::vector<Box>, 2> tinted;
  for (std::int64_t row = 0; row < tiles.tile_rows; ++row) {
    for (std::int64_t column = 0; column < tiles.tile_columns; ++column) {
      const float fill = tiles.at(row, column);
      if (fill == 0) continue;
      const Box first = cell_box(layout, row * layout.tile, column * layout.tile, 1, 0);
      const Box last = cell_box(layout, std::min((row + 1) * layout.tile, pattern.rows()),
                                std::min((column + 1) * layout.tile, pattern.columns()), 1, 0);
      tinted[fill == 1 ? 1 : 0].push_back({first.x, first.y, last.x - first.x, last.y - first.y});
    }
  }
  painter.fill(tinted[0], kPartialTint);
  painter.fill(tinted[1], kFullTint);

  const int gap = gap_between_cells(layout);
  std::array<std::vector<Box>, 2> pairs;
  std::vector<ColumnRun> runs;
  for (std::int64_t row = 0; row < pattern.rows(); ++row) {
    runs.clear();
    pattern.append_runs(row, 0, pattern.columns(), runs);
    for (const ColumnRun& run : runs) {
      for (std::int64_t column = run.begin; column < run.end; ++column) {
        const bool full = tiles.at(row / layout.tile, column / layout.tile) == 1;
        pairs[full ? 1 : 0].push_back(cell_box(layout, row, column, 1, gap));
      }
    }
  }
  painter.fill(pairs[0], kPartial);
  painter.fill(pairs[1], kFull);

  // Where tiles meet.
  std::vector<Box> lines;
  for (std::int64_t row = 1; row < tiles.tile_rows; ++row) {
    lines.push_back({layout.plot.x, cell_box(layout, row * layout.tile, 0, 1, 0).y - 1, layout.plot.width, 1});
  }
  for (std::int64_t column = 1; column < tiles.tile_columns; ++column) {
    lines.push_back({cell_box(layout, 0, column * layout.tile, 1, 0).x - 1, layout.plot.y, 1, layout.plot.height});
  }
  painter.fill(lines, Color{255, 255, 255});
}

void paint_frame(const Box& plot, Painter& painter) {
  const std::array<Box, 4> sides = {
      Box{plot.x - 1, plot.y - 1, plot.width + 2, 1}, Box{plot.x - 1, plot.y + plot.height, plot.width + 2, 1},
      Box{plot.x - 1, plot.y, 1, plot.height}, Box{plot.x + plot.width, plot.y, 1, plot.height}};
  painter.fill(sides, kFrame);
}

void paint_axes(const PictureLayout& layout, Painter& painter) {
  constexpr int kTickLength = 5;
  const Box& plot = layout.plot;
  const auto place = [](const AxisLayout& axis, double token) {
    // A tick points to the middle of a pair's cell, to the beginning of a tile's.
    const double middle = axis.tokens_per_cell == 1 ? 0.5 : 0;
    return (token + middle) / static_cast<double>(axis.tokens_per_cell) * axis.pixels_per_cell;
  };
  for (const Tick& tick : make_ticks(layout.keys.tokens, plot.width / 90 + 1)) {
    const double x = plot.x + place(layout.keys, tick.position);
    if (x > plot.x + plot.width) continue;
    painter.fill({static_cast<int>(x), plot.y + plot.height + 1, 1, kTickLength}, kFrame);
    painter.write({x + 0.5, plot.y + plot.height + 21.0, tick.label, kTextSize, Anchor::middle, kSoftInk});
  }
  for (const Tick& tick : make_ticks(layout.queries.tokens, plot.height / 50 + 1)) {
    const double y = plot.y + place(layout.queries, tick.position);
    if (y > plot.y + plot.height) continue;
    painter.fill({plot.x - 1 - kTickLength, static_cast<int>(y), kTickLength, 1}, kFrame);
    painter.write({plot.x - 11.0, y + 5.5, tick.label, kTextSize, Anchor::end, kSoftInk});
  }
  painter.write(
      {plot.x + plot.width / 2.0, plot.y + plot.height + 46.0, "key token", kTextSize + 1, Anchor::middle, kInk});
  painter.write({layout.left + 24.0, plot.y + plot.height / 2.0, "query token", kTextSize + 1, Anchor::middle, kInk,
                 false, true});
}

std::string tile_text(const TileMap& tiles) {
  return tiles.row_tile == tiles.column_tile
             ? fmt::format("{0} x {0}", group_digits(tiles.row_tile))
             : fmt::format("{} x {}", group_digits(tiles.row_tile), group_digits(tiles.column_tile));
}

void paint_legend(const TileMap& tiles, const PictureLayout& layout, Painter& painter) {
  constexpr int kSwatch = 14;
  const double all = std::max(1.0, static_cast<double>(tiles.tile_rows) * static_cast<double>(tiles.tile_columns));
  const int y = layout.height - 56;
  double x = layout.plot.x;
  const auto write = [&](const std::string& text) {
    painter.write({x, y + 12.0, text, kTextSize, Anchor::start, kInk});
    x += text_width(text, kTextSize) + 26;
  };
  const auto swatch = [&](Color color, Color inner) {
    painter.fill({static_cast<int>(x) - 1, y - 1, kSwatch + 2, kSwatch + 2}, kFrame);
    painter.fill({static_cast<int>(x), y, kSwatch, kSwatch}, color);
    if (layout.shows_pairs && !(inner == color)) {
      for (int i = 0; i < 4; ++i) painter.fill({static_cast<int>(x) + 2 + i % 2 * 6, y + 2 + i / 2 * 6, 4, 4}, inner);
    }
    x += kSwatch + 8;
  };
  const auto share = [&](std::int64_t count) {
    return fmt::format("{} ({})", group_digits(count), format_percent(static_cast<double>(count) / all));
  };

  swatch(layout.shows_pairs ? kFullTint : kFull, kFull);
  write("full " + share(tiles.full));
  swatch(layout.shows_pairs ? kPartialTint : shade_color(0.4), kPartial);
  write("partial " + share(tiles.partial));
  swatch(kEmpty, kEmpty);
  write("empty " + share(tiles.empty()));

  const double second_line = y + 38.0;
  const std::string sizes = "tiles of " + tile_text(tiles);
  painter.write({static_cast<double>(layout.plot.x), second_line, sizes, kTextSize, Anchor::start, kSoftInk});
  if (layout.shows_pairs) return;

  // The scale of partial tiles.
  constexpr int kScaleWidth = 180;
  double scale_x = layout.plot.x + text_width(sizes, kTextSize) + 40;
  const std::string label = "partial, by fill: 1 pair";
  painter.write({scale_x, second_line, label, kTextSize, Anchor::start, kSoftInk});
  scale_x += text_width(label, kTextSize) + 14;
  for (int i = 0; i < kScaleWidth; ++i) {
    painter.fill({static_cast<int>(scale_x) + i, static_cast<int>(second_line) - 11, 1, 12},
                 shade_color((i + 0.5) / kScaleWidth));
  }
  painter.write({scale_x + kScaleWidth + 8, second_line, "100 %", kTextSize, Anchor::start, kSoftInk});
}

std::string shorten_to_width(const std::string& text, double font_size, double width) {
  std::size_t length = text.size();
  while (length > 8 && text_width(shorten(text, length), font_size) > width) --length;
  return shorten(text, length);
}

}  // namespace

double shade_of_fill(double fill, std::int64_t area) {
  if (area <= 1) return 1;
  return std::clamp(1 + std::log(fill) / std::log(static_cast<double>(area)), 0.0, 1.0);
}

Color shade_color(double shade) {
  constexpr Color kLight = {0xfb, 0xc9, 0x7f};
  constexpr Color kMiddle = {0xee, 0x7b, 0x1f};
  constexpr Color kDark = {0xa3, 0x2a, 0x17};
  return mix({kLight, kMiddle, kDark}, shade);
}

void paint(const Pattern& pattern, const std::string& title, const PictureLayout& layout, Painter& painter) {
  Progress progress("drawing", pattern.rows());
  const std::int64_t row_tile = layout.shows_pairs ? layout.tile : layout.queries.tokens_per_cell;
  const std::int64_t column_tile = layout.shows_pairs ? layout.tile : layout.keys.tokens_per_cell;
  const TileMap tiles = make_tile_map(pattern, row_tile, column_tile, progress);

  const double left = layout.plot.x - 1;
  painter.write({left, 34, shorten_to_width(title, kTitleSize, layout.left + layout.width - left - 20), kTitleSize,
                 Anchor::start, kInk, true});
  painter.write({left, 60, pattern_text(pattern), kTextSize, Anchor::start, kSoftInk});
  painter.fill(layout.plot, kEmpty);
  if (layout.shows_pairs) {
    paint_pairs(pattern, tiles, layout, painter);
  } else {
    paint_tiles(tiles, layout, painter);
  }
  paint_frame(layout.plot, painter);
  paint_axes(layout, painter);
  paint_legend(tiles, layout, painter);
}

}  // namespace cobble::program
