#include "tile_map.hpp"

#include <algorithm>

#include "progress.hpp"

namespace cobble::program {

TileMap make_tile_map(const Pattern& pattern, std::int64_t row_tile, std::int64_t column_tile, Progress& progress) {
  TileMap map;
  map.row_tile = row_tile;
  map.column_tile = column_tile;
  map.tile_rows = (pattern.rows() + row_tile - 1) / row_tile;
  map.tile_columns = (pattern.columns() + column_tile - 1) / column_tile;
  map.fill.resize(static_cast<std::size_t>(map.tile_rows * map.tile_columns));
  std::vector<PatternTile> tiles;
  for (std::int64_t tile_row = 0; tile_row < map.tile_rows; ++tile_row) {
    const std::int64_t row_begin = tile_row * row_tile;
    const std::int64_t row_end = std::min(pattern.rows(), row_begin + row_tile);
    pattern.tiles(row_begin, row_end, column_tile, tiles);
    for (const PatternTile& tile : tiles) {
      const std::int64_t column_begin = tile.column_panel * column_tile;
      const std::int64_t width = std::min(pattern.columns(), column_begin + column_tile) - column_begin;
      const double area = static_cast<double>(width) * static_cast<double>(row_end - row_begin);
      const bool full = tile.kind == TileKind::full;
      // Rounding must make no partial tile full.
      const float share = std::min(static_cast<float>(static_cast<double>(tile.pairs) / area), 0.9999F);
      map.fill[static_cast<std::size_t>(tile_row * map.tile_columns + tile.column_panel)] = full ? 1.0F : share;
      ++(full ? map.full : map.partial);
    }
    progress.advance(row_end - row_begin);
  }
  return map;
}

}  // namespace cobble::program
