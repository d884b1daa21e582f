#pragma once

#include <cstdint>
#include <vector>

#include "cobble/pattern.hpp"

namespace cobble::program {

class Progress;

/// Every tile of a pattern: its kind and how much of it is filled.
struct TileMap {
  std::int64_t row_tile = 1;     ///< rows of a tile
  std::int64_t column_tile = 1;  ///< columns of a tile
  std::int64_t tile_rows = 0;    ///< tiles from top to bottom
  std::int64_t tile_columns = 0;
  std::vector<float> fill;  ///< tile_rows x tile_columns: 0 empty, 1 full, otherwise the share of the area
  std::int64_t full = 0;
  std::int64_t partial = 0;

  float at(std::int64_t row, std::int64_t column) const {
    return fill[static_cast<std::size_t>(row * tile_columns + column)];
  }
  std::int64_t empty() const { return tile_rows * tile_columns - full - partial; }
};

/// O(tiles) memory, whatever the number of pairs. `progress` advances by the rows.
TileMap make_tile_map(const Pattern& pattern, std::int64_t row_tile, std::int64_t column_tile, Progress& progress);

}  // namespace cobble::program
