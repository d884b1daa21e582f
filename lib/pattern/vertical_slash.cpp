#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pattern/arguments.hpp"
#include "pattern/column_sets.hpp"
#include "pattern/pattern_node.hpp"

namespace cobble {
namespace detail {
namespace {

/// Causal pairs on chosen columns (verticals) and chosen diagonals (slashes).
class VerticalSlashNode final : public PatternNode {
 public:
  VerticalSlashNode(std::int32_t n, std::vector<std::int32_t> verticals, std::vector<std::int32_t> slashes)
      : PatternNode(n, n),
        verticals_(std::move(verticals)),
        slashes_(std::move(slashes)),
        vertical_runs_(runs_of(verticals_)),
        slash_runs_(runs_of(slashes_)) {}

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    const std::size_t first = runs.size();
    const std::int32_t causal_end = std::min(end, row + 1);
    auto vertical = first_ending_after(vertical_runs_, begin);
    // Distances [b, e) of a slash run are columns [row - e + 1, row - b + 1): ascending columns are descending
    // distances, from the last slash run that begins at a distance no longer than row - begin.
    auto slash = std::partition_point(slash_runs_.begin(), slash_runs_.end(),
                                      [&](ColumnRun run) { return run.begin <= row - begin; });
    const auto slash_columns = [row](ColumnRun run) { return ColumnRun{row - run.end + 1, row - run.begin + 1}; };
    for (;;) {
      const bool has_vertical = vertical != vertical_runs_.end() && vertical->begin < causal_end;
      const bool has_slash = slash != slash_runs_.begin() && slash_columns(slash[-1]).begin < causal_end;
      if (!has_vertical && !has_slash) return;
      ColumnRun next{};
      if (has_vertical && (!has_slash || vertical->begin <= slash_columns(slash[-1]).begin)) {
        next = *vertical++;
      } else {
        next = slash_columns(*--slash);
      }
      append_clipped(next.begin, next.end, begin, causal_end, first, runs);
    }
  }
  std::string describe() const override {
    return "vertical_slash(" + std::to_string(rows()) + "," + list_text(verticals_) + "," + list_text(slashes_) + ")";
  }

 private:
  std::vector<std::int32_t> verticals_;
  std::vector<std::int32_t> slashes_;
  std::vector<ColumnRun> vertical_runs_;
  std::vector<ColumnRun> slash_runs_;
};

}  // namespace
}  // namespace detail

Pattern vertical_slash(std::int64_t n, std::vector<std::int32_t> verticals, std::vector<std::int32_t> slashes) {
  const std::int32_t size = checked_index(n, "n");
  detail::require_distinct_positions(verticals, n, "verticals");
  detail::require_distinct_positions(slashes, n, "slashes");
  return Pattern(std::make_shared<detail::VerticalSlashNode>(size, std::move(verticals), std::move(slashes)));
}

}  // namespace cobble
