#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "cobble/pattern.hpp"

// One walk, two visitors. A schedule is a sequence of phases with a barrier between two; a phase is a number of
// independent tasks; a task is a walk over tiles that says what it brings into fast memory, computes, writes back and
// forgets. The numeric executor (lib/attention) does the arithmetic; the pebble machine (lib/pebble) counts.

namespace cobble::detail {

/// A half-open range of tokens or features.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const noexcept { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Whose turn it is: one query head of one batch entry, with the key/value head that it uses.
struct Head {
  std::int64_t batch = 0;
  std::int64_t query = 0;
  std::int64_t key_value = 0;

  bool operator==(const Head&) const = default;
};

enum class Operand : std::uint8_t {
  query,
  key,
  value,
  output,
  lse,
  row_maximum,  ///< of the scores met so far
  row_sum,      ///< of exp(score - row_maximum) met so far
  grad_output,
  delta,  ///< <grad_output, output> - grad_lse; an optional grad_lse is not counted
  grad_query,
  grad_key,
  grad_value,
  query_input,         ///< A1 of the parameter gradients; Q = A1 X
  value_input,         ///< A3; V = A3 Y
  score_weights,       ///< X
  value_weights,       ///< Y
  grad_score_weights,  ///< dX, in slices that are added up at the end
  grad_value_weights,  ///< dY, likewise
  score,               ///< on the pattern; becomes the probability in place
  grad_score,
};
inline constexpr std::size_t kOperandCount = 20;
std::string_view to_string(Operand operand) noexcept;

/// Whether an operand holds one value a pair, rather than one a token and feature.
constexpr bool is_pair_operand(Operand operand) noexcept {
  return operand == Operand::score || operand == Operand::grad_score;
}

/// A rectangle of one operand: tokens x features, or for pair operands queries x keys.
struct Block {
  Operand operand{};
  Head head;
  Range rows;
  Range columns;
  /// How many of the rows are moved; the others have no pair. Of a pair operand: how many columns the tile holds.
  std::int64_t tokens = 0;
  std::int64_t pairs = 0;           ///< of a pair operand: how many values the rectangle holds
  TileKind kind = TileKind::empty;  ///< of a pair operand
  std::int64_t slice = 0;           ///< of sums: which part of them, where they are shared out; 0: the whole
};

/// How many words of the model a block occupies.
inline std::int64_t words(const Block& block) noexcept {
  return is_pair_operand(block.operand) ? block.pairs : block.tokens * block.columns.size();
}

/// What a step of a walk computes; every operand it names is in fast memory. I are the tile's queries, J its keys, F
/// the features of the chunk.
enum class Operation : std::uint8_t {
  scores,                  ///< S[I,J] += scale Q[I,F] K[J,F]^T
  online_softmax,          ///< row_maximum, row_sum and output[I] rescaled; S[I,J] becomes exp(S - row_maximum)
  row_statistics,          ///< row_maximum and row_sum; S stays
  accumulate_output,       ///< O[I,F] += P[I,J] V[J,F]
  finish_output,           ///< O[I] /= row_sum; lse[I] = row_maximum + log row_sum
  finish_lse,              ///< lse[I] = row_maximum + log row_sum
  delta,                   ///< delta[I] = <dO[I], O[I]> - dlse[I]
  probabilities,           ///< S[I,J] becomes P = exp(S - lse)
  grad_probabilities,      ///< grad_score[I,J] += dP = dO[I,F] V[J,F]^T
  grad_scores,             ///< grad_score[I,J] becomes dS = P (dP - delta)
  grad_query,              ///< dQ[I,F] += scale dS[I,J] K[J,F]
  finish_grad_query,       ///< dQ[I] is complete, where rows pass by
  grad_key,                ///< dK[J,F] += scale dS[I,J]^T Q[I,F]
  grad_value,              ///< dV[J,F] += P[I,J]^T dO[I,F]
  project_query,           ///< Q[I,J] += A1[I,F] X[F,J], J features of Q
  project_value,           ///< V[I,J] += A3[I,F] Y[F,J], I keys
  fold_query,              ///< a slice of dX[:,F] += A1[I]^T dQ[I,F]
  fold_value,              ///< a slice of dY[:,F] += A3[J]^T dV[J,F]
  add_score_weight_slice,  ///< dX += a slice
  add_value_weight_slice,  ///< dY += a slice
  add_key_slice,           ///< dK[J,F] += a slice
  add_value_slice,         ///< dV[J,F] += a slice
  add_output_part,         ///< output[I], row_maximum and row_sum take up those of a part of the row's pairs
  add_query_part,          ///< dQ[I] += that of a part of the row's pairs
};
std::string_view to_string(Operation operation) noexcept;

struct Step {
  Operation operation{};
  Head head;
  Range rows;
  Range keys;
  Range features;
  std::int64_t pairs = 0;
  TileKind kind = TileKind::empty;
};

/// Which way a streamed block goes.
enum class Stream : std::uint8_t {
  in,      ///< read
  out,     ///< written
  in_out,  ///< read and written back
};

class WalkVisitor {
 public:
  WalkVisitor() = default;
  virtual ~WalkVisitor() = default;
  WalkVisitor(const WalkVisitor&) = delete;
  WalkVisitor& operator=(const WalkVisitor&) = delete;

  /// Copies a block from slow to fast memory.
  virtual void load(const Block& block) = 0;
  /// Makes room for a block in fast memory; its values are 0 (row_maximum: -infinity). Of scores, nothing yet: the
  /// first chunk of features sets them.
  virtual void create(const Block& block) = 0;
  /// Lets a block pass through `window` words of fast memory during the steps that follow, until it is dropped.
  virtual void stream(const Block& block, std::int64_t window, Stream direction) = 0;
  virtual void compute(const Step& step) = 0;
  /// Copies a block from fast to slow memory; it stays in fast memory until dropped.
  virtual void store(const Block& block) = 0;
  virtual void drop(const Block& block) = 0;

  /// Whether it makes use of expect().
  virtual bool looks_ahead() const noexcept { return false; }
  /// Hints at blocks that are loaded or streamed soon, after the steps at hand. What was expected before no longer is.
  virtual void expect(std::span<const Block>) {}
};

struct Phase {
  std::string_view name;
  std::int64_t tasks = 0;
  std::function<void(std::int64_t task, WalkVisitor& visitor)> walk;
};
using PhaseConsumer = std::function<void(const Phase& phase)>;

}  // namespace cobble::detail
