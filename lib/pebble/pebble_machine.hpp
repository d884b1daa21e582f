#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cobble/pebble.hpp"
#include "plan/plan_data.hpp"

namespace cobble::detail {

/// The visitor that moves pebbles.
class PebbleMachine final : public WalkVisitor {
 public:
  enum class Pass : std::uint8_t { forward, backward, parameter_gradients };

  PebbleMachine(const PlanData& plan, Pass pass);

  void load(const Block& block) override;
  void create(const Block& block) override;
  void stream(const Block& block, std::int64_t window, Stream direction) override;
  void compute(const Step& step) override;
  void store(const Block& block) override;
  void drop(const Block& block) override;

  /// The board must be empty between tasks.
  void end_task() const;
  /// Every word of every result must have been stored.
  void end_pass() const;
  const PebbleCount& count() const noexcept { return count_; }

 private:
  struct Resident {
    Block block;
    std::int64_t pebbles = 0;
    std::optional<Stream> stream;
    std::int64_t step = 0;  ///< that took it last
  };
  /// What the pattern says about a rectangle.
  struct TileFacts {
    std::size_t pattern = 0;
    Range rows;
    Range keys;
    std::int64_t pairs = 0;
    std::int64_t touched_rows = 0;
    std::int64_t touched_keys = 0;
  };
  /// One head's operand in slow memory that is no input: which of its words have been stored.
  struct Stored {
    std::vector<bool> words;
    std::int64_t width = 0;
    std::int64_t pairs = 0;
  };
  using StoredKey = std::pair<Operand, std::int64_t>;

  bool is_input(Operand operand) const noexcept;
  /// Rows and columns of one head's operand in slow memory.
  std::int64_t tokens_of(Operand operand) const noexcept;
  std::int64_t width_of(Operand operand) const noexcept;
  Stored& stored(const Block& block);
  void place(const Block& block, std::int64_t pebbles, std::optional<Stream> stream);
  void require_stored(const Block& block);
  void mark_stored(const Block& block);
  void check_pairs(const Block& block);
  const TileFacts& facts(const Head& head, Range rows, Range keys);
  /// The operand's block on the board must cover the rectangle, with all tokens that have a pair in the step's tile.
  void require(const Step& step, Operand operand, Range rows, Range columns);
  std::vector<Resident>::iterator find(const Block& block);
  [[noreturn]] void fail(const Block& block, const char* what) const;

  const PlanData& plan_;
  Pass pass_;
  PebbleCount count_;
  std::int64_t on_board_ = 0;
  std::int64_t step_ = 0;  ///< how many there have been
  std::vector<Resident> board_;
  std::map<StoredKey, Stored> stored_;
  std::array<TileFacts, 4> facts_ = {};
  std::size_t next_fact_ = 0;
  std::vector<ColumnRun> runs_;
};

}  // namespace cobble::detail
