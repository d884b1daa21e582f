#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cobble/pattern.hpp"
#include "plan/walk.hpp"

namespace cobble::detail {

/// How a pattern is cut into tiles: row panels of one height, and within each
/// - column panels of one width (most_pairs = 0), or
/// - runs of columns as long as they hold at most `most_pairs` pairs and span at most `column_panel` columns, or
/// - runs of columns of which at most `column_panel` have a pair (gathers).
struct TileCut {
  std::int64_t row_panel = 1;
  std::int64_t column_panel = 1;
  std::int64_t most_pairs = 0;  ///< at least row_panel, so that one column always fits; or 0
  bool by_columns = false;      ///< the tiles are also listed by column panel (most_pairs = 0)
  bool counts_touched = false;  ///< touched rows and columns are counted; otherwise all count as touched
  bool gathers = false;         ///< most_pairs = 0, counts_touched

  bool operator==(const TileCut&) const = default;
};

/// A non-empty tile of a row panel.
struct PlanTile {
  std::int32_t column_begin = 0;
  std::int32_t column_end = 0;
  std::int64_t pairs = 0;
  std::int32_t touched_rows = 0;     ///< rows that have a pair in the tile
  std::int32_t touched_columns = 0;  ///< columns that have one
  TileKind kind = TileKind::partial;

  Range columns() const noexcept { return {column_begin, column_end}; }
  bool operator==(const PlanTile&) const = default;
};

/// The tiles of one pattern under one cut.
struct TileList {
  struct Reference {
    std::int64_t row_panel = 0;
    std::int64_t tile = 0;  ///< into tiles
  };

  std::vector<std::int64_t> row_offsets;     ///< row panels + 1
  std::vector<PlanTile> tiles;               ///< row panel by row panel, columns ascending
  std::vector<std::int64_t> column_offsets;  ///< column panels + 1, when listed by columns
  std::vector<Reference> by_column;          ///< column panel by column panel, rows ascending

  std::span<const PlanTile> row(std::int64_t row_panel) const noexcept {
    const auto first = static_cast<std::size_t>(row_offsets[static_cast<std::size_t>(row_panel)]);
    const auto last = static_cast<std::size_t>(row_offsets[static_cast<std::size_t>(row_panel) + 1]);
    return std::span(tiles).subspan(first, last - first);
  }
  std::span<const Reference> column(std::int64_t column_panel) const noexcept {
    const auto first = static_cast<std::size_t>(column_offsets[static_cast<std::size_t>(column_panel)]);
    const auto last = static_cast<std::size_t>(column_offsets[static_cast<std::size_t>(column_panel) + 1]);
    return std::span(by_column).subspan(first, last - first);
  }
  std::int64_t memory_bytes() const noexcept;
};

/// Cuts a pattern; exact, in O(runs of the rows + tiles) memory of which only the tiles stay.
TileList cut_tiles(const Pattern& pattern, const TileCut& cut);

}  // namespace cobble::detail
