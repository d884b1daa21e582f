#include "plan/tile_list.hpp"

#include <algorithm>
#include <utility>

#include "core/checked.hpp"
#include "core/parallel_for.hpp"
#include "pattern/pattern_node.hpp"
#include "pattern/tile_classifier.hpp"

namespace cobble::detail {
namespace {

/// Cuts row panel after row panel; its buffers are reused.
class TileCutter {
 public:
  TileCutter(const Pattern& pattern, const TileCut& cut)
      : pattern_(pattern), cut_(cut), classifier_(pattern.columns(), std::max<std::int64_t>(cut.column_panel, 1)) {}

  void append(Range rows, std::vector<PlanTile>& tiles) {
    const std::size_t first = tiles.size();
    if (cut_.gathers) {
      gather_runs(rows);
      append_gathered(tiles);
    } else if (cut_.most_pairs > 0) {
      gather_runs(rows);
      append_by_pairs(tiles);
    } else if (cut_.counts_touched && pattern_.node().stored_row(0).data() != nullptr) {
      append_stored(rows, tiles);
    } else {
      append_by_panels(rows, tiles);
      if (cut_.counts_touched) {
        gather_runs(rows);
        count_touched_columns(std::span(tiles).subspan(first));
      }
    }
    const std::span<PlanTile> added = std::span(tiles).subspan(first);
    if (cut_.counts_touched && (cut_.gathers || cut_.most_pairs > 0 || panels_.empty())) {
      count_touched_rows(added);
    } else if (!cut_.counts_touched) {
      for (PlanTile& tile : added) {
        tile.touched_rows = static_cast<std::int32_t>(rows.size());
        tile.touched_columns = tile.column_end - tile.column_begin;
      }
    }
    for (PlanTile& tile : added) {
      const std::int64_t width = cut_.gathers ? tile.touched_columns : tile.columns().size();
      const bool full = tile.pairs == rows.size() * width;
      tile.kind = full ? TileKind::full : TileKind::partial;
    }
  }

 private:
  void gather_runs(Range rows) {
    runs_.clear();
    row_first_.assign(1, 0);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      pattern_.append_runs(row, 0, pattern_.columns(), runs_);
      row_first_.push_back(runs_.size());
    }
  }

  /// Tiles of rows that are stored column by column, with what they touch, in one look at each pair.
  void append_stored(Range rows, std::vector<PlanTile>& tiles) {
    const std::int64_t width = cut_.column_panel;
    const PatternNode& node = pattern_.node();
    panels_.resize(static_cast<std::size_t>(divide_up(pattern_.columns(), width)));
    is_touched_.resize(static_cast<std::size_t>(pattern_.columns()));
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      std::int64_t panel = -1;
      std::int64_t end = 0;
      for (const std::int32_t column : node.stored_row(static_cast<std::int32_t>(row))) {
        if (column >= end) {
          panel = column / width;
          end = (panel + 1) * width;
          ++panels_[static_cast<std::size_t>(panel)].touched_rows;
        }
        ++panels_[static_cast<std::size_t>(panel)].pairs;
        is_touched_[static_cast<std::size_t>(column)] = 1;
      }
    }
    for (std::size_t panel = 0; panel < panels_.size(); ++panel) {
      PlanTile& counted = panels_[panel];
      if (counted.pairs == 0) continue;
      const std::int64_t begin = static_cast<std::int64_t>(panel) * width;
      const std::int64_t end = std::min(begin + width, pattern_.columns());
      counted.column_begin = static_cast<std::int32_t>(begin);
      counted.column_end = static_cast<std::int32_t>(end);
      std::int32_t touched = 0;
      for (std::int64_t column = begin; column < end; ++column) {
        touched += is_touched_[static_cast<std::size_t>(column)];
        is_touched_[static_cast<std::size_t>(column)] = 0;
      }
      counted.touched_columns = touched;
      tiles.push_back(counted);
      counted = {};
    }
  }

  void append_by_panels(Range rows, std::vector<PlanTile>& tiles) {
    classifier_.classify(pattern_.node(), rows.begin, rows.end, pattern_tiles_);
    for (const PatternTile& tile : pattern_tiles_) {
      const std::int64_t begin = tile.column_panel * cut_.column_panel;
      const std::int64_t end = std::min(begin + cut_.column_panel, pattern_.columns());
      PlanTile& added = tiles.emplace_back();
      added.column_begin = static_cast<std::int32_t>(begin);
      added.column_end = static_cast<std::int32_t>(end);
      added.pairs = tile.pairs;
    }
  }

  /// Calls visit(begin, end, height) for runs of columns, ascending, in each of which `height` > 0 runs stand.
  template <class Visit>
  void sweep_columns(Visit&& visit) {
    if (runs_.empty()) return;
    std::int32_t first = runs_.front().begin;
    std::int32_t last = runs_.front().end;
    for (const ColumnRun& run : runs_) {
      first = std::min(first, run.begin);
      last = std::max(last, run.end);
    }
    std::int64_t height = 0;
    std::int32_t from = first;
    const auto change_at = [&](std::int32_t column, std::int64_t change) {
      if (column > from && height > 0) visit(from, column, height);
      from = column;
      height += change;
    };
    // Looking at every column is cheaper than sorting unless runs are few and far between.
    constexpr std::int64_t kColumnsPerRun = 64;
    if (last - first <= kColumnsPerRun * static_cast<std::int64_t>(runs_.size())) {
      changes_.assign(static_cast<std::size_t>(last - first) + 1, 0);
      for (const ColumnRun& run : runs_) {
        ++changes_[static_cast<std::size_t>(run.begin - first)];
        --changes_[static_cast<std::size_t>(run.end - first)];
      }
      for (std::int32_t column = first; column <= last; ++column) {
        const std::int32_t change = changes_[static_cast<std::size_t>(column - first)];
        if (change != 0) change_at(column, change);
      }
      return;
    }
    events_.clear();
    for (const ColumnRun& run : runs_) {
      events_.emplace_back(run.begin, 1);
      events_.emplace_back(run.end, -1);
    }
    std::sort(events_.begin(), events_.end());
    for (const auto& [column, change] : events_) change_at(column, change);
  }

  void append_by_pairs(std::vector<PlanTile>& tiles) {
    const std::size_t first = tiles.size();
    sweep_columns([&](std::int32_t begin, std::int32_t end, std::int64_t height) {
      while (begin < end) {
        const bool open = tiles.size() > first;
        std::int64_t room = open ? (cut_.most_pairs - tiles.back().pairs) / height : 0;
        if (open) room = std::min(room, tiles.back().column_begin + cut_.column_panel - begin);
        if (room <= 0) {
          tiles.emplace_back().column_begin = begin;
          room = std::min(cut_.most_pairs / height, cut_.column_panel);
        }
        const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(room, end - begin));
        PlanTile& tile = tiles.back();
        begin += taken;
        tile.column_end = begin;
        tile.pairs += height * taken;
        tile.touched_columns += taken;
      }
    });
  }

  void append_gathered(std::vector<PlanTile>& tiles) {
    const std::size_t first = tiles.size();
    sweep_columns([&](std::int32_t begin, std::int32_t end, std::int64_t height) {
      while (begin < end) {
        if (tiles.size() == first || tiles.back().touched_columns == cut_.column_panel) {
          tiles.emplace_back().column_begin = begin;
        }
        PlanTile& tile = tiles.back();
        const std::int64_t room = cut_.column_panel - tile.touched_columns;
        const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(room, end - begin));
        begin += taken;
        tile.column_end = begin;
        tile.pairs += height * taken;
        tile.touched_columns += taken;
      }
    });
  }

  void count_touched_columns(std::span<PlanTile> tiles) {
    auto tile = tiles.begin();
    sweep_columns([&](std::int32_t begin, std::int32_t end, std::int64_t) {
      while (tile->column_end <= begin) ++tile;
      for (auto reached = tile; begin < end; ++reached) {
        const std::int32_t until = std::min(end, reached->column_end);
        reached->touched_columns += until - begin;
        begin = until;
        if (begin == reached->column_end) tile = reached;
      }
    });
  }

  void count_touched_rows(std::span<PlanTile> tiles) {
    for (std::size_t row = 0; row + 1 < row_first_.size(); ++row) {
      auto next = tiles.begin();  // the first tile that this row has not been counted in
      for (std::size_t index = row_first_[row]; index < row_first_[row + 1]; ++index) {
        const ColumnRun run = runs_[index];
        next =
            std::partition_point(next, tiles.end(), [&](const PlanTile& tile) { return tile.column_end <= run.begin; });
        for (; next != tiles.end() && next->column_begin < run.end; ++next) ++next->touched_rows;
      }
    }
  }

  const Pattern& pattern_;
  const TileCut& cut_;
  TileClassifier classifier_;
  std::vector<PatternTile> pattern_tiles_;
  std::vector<PlanTile> panels_;          ///< by column panel, what has been counted of stored rows
  std::vector<std::uint8_t> is_touched_;  ///< of each column
  std::vector<ColumnRun> runs_;
  std::vector<std::size_t> row_first_;
  std::vector<std::int32_t> changes_;
  std::vector<std::pair<std::int32_t, std::int32_t>> events_;
};

/// Lists the tiles by column panel, with a counting pass.
void list_by_columns(const TileCut& cut, std::int64_t columns, TileList& list) {
  const std::int64_t panels = divide_up(columns, cut.column_panel);
  const auto panel_of = [&](const PlanTile& tile) {
    return static_cast<std::size_t>(tile.column_begin / cut.column_panel);
  };
  list.column_offsets.assign(static_cast<std::size_t>(panels) + 1, 0);
  for (const PlanTile& tile : list.tiles) ++list.column_offsets[panel_of(tile) + 1];
  for (std::size_t panel = 1; panel < list.column_offsets.size(); ++panel) {
    list.column_offsets[panel] += list.column_offsets[panel - 1];
  }
  std::vector<std::int64_t> next(list.column_offsets.begin(), list.column_offsets.end());
  list.by_column.resize(list.tiles.size());
  const auto row_panels = static_cast<std::int64_t>(list.row_offsets.size()) - 1;
  for (std::int64_t row_panel = 0; row_panel < row_panels; ++row_panel) {
    const std::int64_t end = list.row_offsets[static_cast<std::size_t>(row_panel) + 1];
    for (std::int64_t tile = list.row_offsets[static_cast<std::size_t>(row_panel)]; tile < end; ++tile) {
      const std::size_t panel = panel_of(list.tiles[static_cast<std::size_t>(tile)]);
      list.by_column[static_cast<std::size_t>(next[panel]++)] = {row_panel, tile};
    }
  }
}

}  // namespace

std::int64_t TileList::memory_bytes() const noexcept {
  const std::size_t bytes = sizeof(TileList) +
                            (row_offsets.capacity() + column_offsets.capacity()) * sizeof(std::int64_t) +
                            tiles.capacity() * sizeof(PlanTile) + by_column.capacity() * sizeof(Reference);
  return static_cast<std::int64_t>(bytes);
}

TileList cut_tiles(const Pattern& pattern, const TileCut& cut) {
  const std::int64_t panels = divide_up(pattern.rows(), cut.row_panel);
  // Parts that make up for a cutter of their own.
  constexpr std::int64_t kLeastPanels = 8;
  constexpr std::int64_t kMostParts = 32;
  const std::int64_t part_panels = std::max(kLeastPanels, divide_up(panels, kMostParts));
  std::vector<TileList> parts(static_cast<std::size_t>(divide_up(panels, part_panels)));
  parallel_for(std::ssize(parts), [&](std::int64_t index) {
    TileList& part = parts[static_cast<std::size_t>(index)];
    TileCutter cutter(pattern, cut);
    const std::int64_t end = std::min((index + 1) * part_panels, panels);
    for (std::int64_t panel = index * part_panels; panel < end; ++panel) {
      const std::int64_t begin = panel * cut.row_panel;
      cutter.append({begin, std::min(begin + cut.row_panel, pattern.rows())}, part.tiles);
      part.row_offsets.push_back(static_cast<std::int64_t>(part.tiles.size()));
    }
  });
  TileList list;
  std::size_t tiles = 0;
  for (const TileList& part : parts) tiles += part.tiles.size();
  list.tiles.reserve(tiles);
  list.row_offsets.reserve(static_cast<std::size_t>(panels) + 1);
  list.row_offsets.push_back(0);
  for (const TileList& part : parts) {
    const auto before = static_cast<std::int64_t>(list.tiles.size());
    for (const std::int64_t offset : part.row_offsets) list.row_offsets.push_back(before + offset);
    list.tiles.insert(list.tiles.end(), part.tiles.begin(), part.tiles.end());
  }
  if (cut.by_columns) list_by_columns(cut, pattern.columns(), list);
  return list;
}

}  // namespace cobble::detail
