#pragma once

#include <cstdint>
#include <vector>

#include "pattern/pattern_node.hpp"

namespace cobble::detail {

/// Cuts row panels of patterns with `columns` columns into tiles. Made once and reused for every row panel: its
/// buffers (O(columns / column_panel)) are clean between calls, and a call takes O(runs of the rows + tiles found).
class TileClassifier {
 public:
  /// columns in [0, 2^31 - 1], column_panel >= 1.
  TileClassifier(std::int64_t columns, std::int64_t column_panel);

  /// Replaces `tiles` by the non-empty tiles of rows [row_begin, row_end), in ascending order, classified exactly. The
  /// node has this classifier's number of columns.
  void classify(const PatternNode& node, std::int64_t row_begin, std::int64_t row_end, std::vector<PatternTile>& tiles);

 private:
  /// What the runs add to a tile.
  struct Entry {
    std::int64_t pairs = 0;       ///< of runs that begin or end in it
    std::int64_t whole_rows = 0;  ///< rows that cover all of it, as the difference to the tile before
  };

  void add_rows(const PatternNode& node, std::int64_t row_begin, std::int64_t row_end);
  /// Of so many rows.
  void add_run(std::int64_t begin, std::int64_t end, std::int64_t rows);
  void touch(std::int64_t panel) {
    std::uint64_t& word = touched_[static_cast<std::size_t>(panel >> 6)];
    if (word == 0) {
      std::uint64_t& group = touched_words_[static_cast<std::size_t>(panel >> 12)];
      if (group == 0) touched_groups_[static_cast<std::size_t>(panel >> 18)] |= std::uint64_t{1} << (panel >> 12 & 63);
      group |= std::uint64_t{1} << (panel >> 6 & 63);
    }
    word |= std::uint64_t{1} << (panel & 63);
  }
  /// Appends tiles [next_panel, panel), each of which `whole_rows` rows cover, and tile `panel`, which is touched.
  void emit(std::int64_t panel, std::int64_t height, std::vector<PatternTile>& tiles);
  void append_tile(std::int64_t panel, std::int64_t pairs, std::int64_t height, std::vector<PatternTile>& tiles);
  void clear();
  std::int64_t panel_of(std::int64_t column) const noexcept {
    return shift_ >= 0 ? column >> shift_ : static_cast<std::int64_t>(static_cast<std::uint32_t>(column) / divisor_);
  }

  std::int64_t columns_;
  std::int64_t column_panel_;
  std::int64_t column_panels_;
  std::uint32_t divisor_;
  int shift_ = -1;  ///< log2 of column_panel when that is a power of two
  std::vector<Entry> entries_;
  // Which entries are touched, as a tree of bits: a bit of a level says that a word of the level below is not 0.
  std::vector<std::uint64_t> touched_;
  std::vector<std::uint64_t> touched_words_;
  std::vector<std::uint64_t> touched_groups_;
  std::vector<ColumnRun> runs_;
  std::int64_t next_panel_ = 0;
  std::int64_t whole_rows_ = 0;
};

}  // namespace cobble::detail
