#include "pebble/pebble_machine.hpp"

#include <algorithm>
#include <string>

#include "cobble/error.hpp"
#include "pattern/pattern_node.hpp"

namespace cobble::detail {
namespace {

bool covers(Range outer, Range inner) { return outer.begin <= inner.begin && inner.end <= outer.end; }

bool belongs_to_keys(Operand operand) {
  return operand == Operand::key || operand == Operand::value || operand == Operand::grad_key ||
         operand == Operand::grad_value || operand == Operand::value_input || operand == Operand::value_weights ||
         operand == Operand::grad_value_weights;
}

bool same_head(Operand operand, const Head& a, const Head& b) {
  return a.batch == b.batch && (belongs_to_keys(operand) ? a.key_value == b.key_value : a.query == b.query);
}

std::string text(Range range) { return "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")"; }

std::string text(const Block& block) {
  return std::string(to_string(block.operand)) + " " + text(block.rows) + " x " + text(block.columns) + " of head " +
         std::to_string(block.head.query);
}

/// Columns that at least one of the runs covers.
std::int64_t union_size(std::vector<ColumnRun>& runs) {
  std::sort(runs.begin(), runs.end(), [](const ColumnRun& a, const ColumnRun& b) { return a.begin < b.begin; });
  std::int64_t size = 0;
  std::int32_t covered = 0;
  for (const ColumnRun& run : runs) {
    const std::int32_t begin = std::max(run.begin, covered);
    if (run.end > begin) size += run.end - begin;
    covered = std::max(covered, run.end);
  }
  return size;
}

/// Calls visit(index) for each word of a block of an operand that is `width` words wide.
template <class Visit>
void for_each_word(const Block& block, std::int64_t width, Visit&& visit) {
  for (std::int64_t row = block.rows.begin; row < block.rows.end; ++row) {
    for (std::int64_t column = block.columns.begin; column < block.columns.end; ++column) {
      visit(static_cast<std::size_t>(row * width + column));
    }
  }
}

}  // namespace

PebbleMachine::PebbleMachine(const PlanData& plan, Pass pass) : plan_(plan), pass_(pass) {}

void PebbleMachine::fail(const Block& block, const char* what) const {
  throw Error(ErrorCode::model_violation, text(block) + " " + what);
}

bool PebbleMachine::is_input(Operand operand) const noexcept {
  switch (operand) {
    case Operand::query:
    case Operand::value: return pass_ != Pass::parameter_gradients;  // there they are products
    case Operand::key:
    case Operand::grad_output:
    case Operand::query_input:
    case Operand::value_input:
    case Operand::score_weights:
    case Operand::value_weights: return true;
    case Operand::output:
    case Operand::lse: return pass_ == Pass::backward;
    default: return false;
  }
}

std::int64_t PebbleMachine::tokens_of(Operand operand) const noexcept {
  if (operand == Operand::grad_score_weights || operand == Operand::grad_value_weights) return plan_.problem.head_dim;
  return belongs_to_keys(operand) ? plan_.patterns.columns() : plan_.patterns.rows();
}

std::int64_t PebbleMachine::width_of(Operand operand) const noexcept {
  switch (operand) {
    case Operand::query:
    case Operand::grad_query:
    case Operand::grad_key:
    case Operand::grad_score_weights: return plan_.problem.head_dim;
    case Operand::value:
    case Operand::output:
    case Operand::grad_value:
    case Operand::grad_value_weights: return plan_.problem.value_dim;
    default: return 1;
  }
}

PebbleMachine::Stored& PebbleMachine::stored(const Block& block) {
  const bool keys = belongs_to_keys(block.operand);
  const std::int64_t heads = keys ? plan_.problem.key_value_heads : plan_.problem.query_heads;
  const std::int64_t head = block.head.batch * heads + (keys ? block.head.key_value : block.head.query);
  // Slices stand behind the heads.
  Stored& known = stored_[{block.operand, block.slice * plan_.problem.batch * heads + head}];
  if (known.width > 0 || is_pair_operand(block.operand)) return known;
  known.width = width_of(block.operand);
  known.words.assign(static_cast<std::size_t>(tokens_of(block.operand) * known.width), false);
  return known;
}

void PebbleMachine::require_stored(const Block& block) {
  if (is_input(block.operand)) return;
  const Stored& known = stored(block);
  if (is_pair_operand(block.operand)) {
    // Pairs are written in one phase and read in later ones: by then all of them are there.
    if (known.pairs < plan_.pattern_pairs[plan_.pattern_index(block.head)]) {
      fail(block, "is loaded before all pairs have been stored");
    }
    return;
  }
  if (block.tokens < block.rows.size()) return;  // which rows are meant follows from the tile
  for_each_word(block, known.width, [&](std::size_t word) {
    if (!known.words[word]) fail(block, "is loaded before it has been stored");
  });
}

void PebbleMachine::mark_stored(const Block& block) {
  Stored& known = stored(block);
  if (is_pair_operand(block.operand)) {
    known.pairs += block.pairs;
    return;
  }
  for_each_word(block, known.width, [&](std::size_t word) { known.words[word] = true; });
}

const PebbleMachine::TileFacts& PebbleMachine::facts(const Head& head, Range rows, Range keys) {
  const std::size_t pattern = plan_.pattern_index(head);
  for (const TileFacts& known : facts_) {
    if (known.pattern == pattern && known.rows == rows && known.keys == keys) return known;
  }
  TileFacts& fact = facts_[next_fact_];
  next_fact_ = (next_fact_ + 1) % facts_.size();
  fact = {pattern, rows, keys};
  runs_.clear();
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::size_t before = runs_.size();
    plan_.patterns.patterns()[pattern].append_runs(row, keys.begin, keys.end, runs_);
    if (runs_.size() > before) ++fact.touched_rows;
    for (std::size_t run = before; run < runs_.size(); ++run) fact.pairs += runs_[run].end - runs_[run].begin;
  }
  fact.touched_keys = union_size(runs_);
  return fact;
}

void PebbleMachine::check_pairs(const Block& block) {
  if (!is_pair_operand(block.operand)) return;
  if (facts(block.head, block.rows, block.columns).pairs != block.pairs) {
    fail(block, "does not hold as many pairs as the pattern");
  }
  const PatternNode& node = plan_.patterns.at(block.head.batch, block.head.query).node();
  count_.index_words += node.index_words(block.pairs);
}

std::vector<PebbleMachine::Resident>::iterator PebbleMachine::find(const Block& block) {
  return std::find_if(board_.begin(), board_.end(), [&](const Resident& resident) {
    return resident.block.operand == block.operand && resident.block.rows == block.rows &&
           resident.block.columns == block.columns && resident.block.tokens == block.tokens &&
           resident.block.slice == block.slice && same_head(block.operand, resident.block.head, block.head);
  });
}

void PebbleMachine::place(const Block& block, std::int64_t pebbles, std::optional<Stream> stream) {
  if (find(block) != board_.end()) fail(block, "is in fast memory already");
  check_pairs(block);
  board_.push_back({block, pebbles, stream, 0});
  on_board_ += pebbles;
  count_.peak_resident = std::max(count_.peak_resident, on_board_);
  if (on_board_ > plan_.fast_memory_words) {
    throw Error(ErrorCode::model_violation, text(block) + " brings fast memory to " + std::to_string(on_board_) +
                                                " words; it has " + std::to_string(plan_.fast_memory_words));
  }
}

void PebbleMachine::load(const Block& block) {
  require_stored(block);
  place(block, words(block), std::nullopt);
  count_.loads += moved_words(plan_, block);
}

void PebbleMachine::create(const Block& block) { place(block, words(block), std::nullopt); }

void PebbleMachine::stream(const Block& block, std::int64_t window, Stream direction) {
  if (window < 1) fail(block, "is streamed through no word at all");
  if (direction != Stream::out) {
    require_stored(block);
    count_.loads += moved_words(plan_, block);
  }
  place(block, std::min(window, words(block)), direction);
}

void PebbleMachine::store(const Block& block) {
  const auto resident = find(block);
  if (resident == board_.end() || resident->stream) fail(block, "is stored and not in fast memory");
  count_.stores += moved_words(plan_, block);
  mark_stored(block);
}

void PebbleMachine::drop(const Block& block) {
  const auto resident = find(block);
  if (resident == board_.end()) fail(block, "is dropped and not in fast memory");
  if (resident->stream && *resident->stream != Stream::in) {
    count_.stores += moved_words(plan_, block);
    mark_stored(block);
  }
  on_board_ -= resident->pebbles;
  board_.erase(resident);
}

void PebbleMachine::require(const Step& step, Operand operand, Range rows, Range columns) {
  const auto resident = std::find_if(board_.begin(), board_.end(), [&](const Resident& candidate) {
    const Block& block = candidate.block;
    return block.operand == operand && same_head(operand, block.head, step.head) && covers(block.rows, rows) &&
           covers(block.columns, columns);
  });
  if (resident == board_.end()) {
    throw Error(ErrorCode::model_violation, std::string(to_string(step.operation)) + " needs " +
                                                std::string(to_string(operand)) + " " + text(rows) + " x " +
                                                text(columns) + ", which is not in fast memory");
  }
  const Block& block = resident->block;
  // Pairs may be turned into probabilities on their way; of tokens a second step would find nothing left.
  const bool passed = resident->stream && !is_pair_operand(operand) && resident->step > 0 && resident->step < step_;
  if (passed) fail(block, "has passed by with an earlier step");
  resident->step = step_;
  if (is_pair_operand(operand) || block.tokens >= block.rows.size()) return;
  const TileFacts& fact = facts(step.head, step.rows, step.keys);
  if (block.tokens < (belongs_to_keys(operand) ? fact.touched_keys : fact.touched_rows)) {
    fail(block, "lacks tokens that have a pair in the tile");
  }
}

void PebbleMachine::compute(const Step& step) {
  ++step_;
  const auto rows = [&](Operand operand, Range columns) { require(step, operand, step.rows, columns); };
  const auto keys = [&](Operand operand) { require(step, operand, step.keys, step.features); };
  const Range one = {0, 1};
  const Range all_features = {0, plan_.problem.head_dim};
  const Range all_values = {0, plan_.problem.value_dim};
  switch (step.operation) {
    case Operation::scores:
      rows(Operand::query, step.features);
      keys(Operand::key);
      return rows(Operand::score, step.keys);
    case Operation::online_softmax: rows(Operand::output, all_values); [[fallthrough]];
    case Operation::row_statistics:
      rows(Operand::score, step.keys);
      rows(Operand::row_maximum, one);
      return rows(Operand::row_sum, one);
    case Operation::accumulate_output:
      rows(Operand::score, step.keys);
      keys(Operand::value);
      return rows(Operand::output, step.features);
    case Operation::finish_output: rows(Operand::output, all_values); [[fallthrough]];
    case Operation::finish_lse:
      rows(Operand::row_maximum, one);
      rows(Operand::row_sum, one);
      return rows(Operand::lse, one);
    case Operation::delta:
      rows(Operand::grad_output, all_values);
      rows(Operand::output, all_values);
      return rows(Operand::delta, one);
    case Operation::probabilities: rows(Operand::score, step.keys); return rows(Operand::lse, one);
    case Operation::grad_probabilities:
      rows(Operand::grad_output, step.features);
      keys(Operand::value);
      return rows(Operand::grad_score, step.keys);
    case Operation::grad_scores:
      rows(Operand::score, step.keys);
      rows(Operand::grad_score, step.keys);
      return rows(Operand::delta, one);
    case Operation::grad_query:
      rows(Operand::grad_score, step.keys);
      keys(Operand::key);
      return rows(Operand::grad_query, step.features);
    case Operation::finish_grad_query: return rows(Operand::grad_query, all_features);
    case Operation::grad_key:
      rows(Operand::grad_score, step.keys);
      rows(Operand::query, step.features);
      return keys(Operand::grad_key);
    case Operation::grad_value:
      rows(Operand::score, step.keys);
      rows(Operand::grad_output, step.features);
      return keys(Operand::grad_value);
    case Operation::project_query:
      rows(Operand::query_input, step.features);
      require(step, Operand::score_weights, step.features, step.keys);
      return rows(Operand::query, step.keys);
    case Operation::project_value:
      rows(Operand::value_input, step.features);
      require(step, Operand::value_weights, step.features, step.keys);
      return rows(Operand::value, step.keys);
    case Operation::fold_query:
      rows(Operand::query_input, all_features);
      rows(Operand::grad_query, step.features);
      return require(step, Operand::grad_score_weights, all_features, step.features);
    case Operation::fold_value:
      require(step, Operand::value_input, step.keys, all_features);
      keys(Operand::grad_value);
      return require(step, Operand::grad_value_weights, all_features, step.features);
    case Operation::add_score_weight_slice: return require(step, Operand::grad_score_weights, step.rows, step.features);
    case Operation::add_value_weight_slice: return require(step, Operand::grad_value_weights, step.rows, step.features);
    case Operation::add_output_part:
      rows(Operand::output, all_values);
      rows(Operand::row_maximum, one);
      return rows(Operand::row_sum, one);
    case Operation::add_query_part: return rows(Operand::grad_query, all_features);
    case Operation::add_key_slice: return keys(Operand::grad_key);
    case Operation::add_value_slice: return keys(Operand::grad_value);
  }
}

void PebbleMachine::end_task() const {
  if (!board_.empty()) fail(board_.front().block, "is left in fast memory at the end of a task");
}

void PebbleMachine::end_pass() const {
  const auto require_complete = [&](Operand operand) {
    const std::int64_t heads = belongs_to_keys(operand) ? plan_.problem.key_value_heads : plan_.problem.query_heads;
    for (std::int64_t head = 0; head < plan_.problem.batch * heads; ++head) {
      const auto known = stored_.find({operand, head});
      const bool none = known == stored_.end();
      if (none
              ? tokens_of(operand) > 0
              : std::find(known->second.words.begin(), known->second.words.end(), false) != known->second.words.end()) {
        throw Error(ErrorCode::model_violation, std::string(to_string(operand)) + " of head " + std::to_string(head) +
                                                    " has not been stored completely");
      }
    }
  };
  switch (pass_) {
    case Pass::forward:
      for (const Operand operand : {Operand::output, Operand::lse}) require_complete(operand);
      return;
    case Pass::backward:
      for (const Operand operand : {Operand::grad_query, Operand::grad_key, Operand::grad_value}) {
        require_complete(operand);
      }
      return;
    case Pass::parameter_gradients:
      if (plan_.patterns.rows() > 0) require_complete(Operand::grad_score_weights);
      if (plan_.patterns.columns() > 0) require_complete(Operand::grad_value_weights);
      return;
  }
}

}  // namespace cobble::detail
