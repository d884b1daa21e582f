#include "plan/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/checked.hpp"
#include "core/parallel_for.hpp"
#include "pattern/pattern_node.hpp"

namespace cobble::detail {
namespace {

/// What the tiles of one product hold, all heads.
struct Tally {
  double dense_places = 0;  ///< of dense tiles, between the first and the last pair of each row
  double dense_area = 0;    ///< of dense tiles
  double masked_area = 0;   ///< of those that are not full
  double listed_pairs = 0;
  double listed_rows = 0;  ///< rows with a pair in a tile of a list, summed over the tiles
  double tiles = 0;
  double touched_rows = 0;    ///< of all tiles
  double copied_columns = 0;  ///< of tiles that gather, and of lists the keys that are written out in full
  double columns = 0;         ///< of all tiles

  void add(const Tally& other, double factor) {
    dense_places += factor * other.dense_places;
    dense_area += factor * other.dense_area;
    masked_area += factor * other.masked_area;
    listed_pairs += factor * other.listed_pairs;
    listed_rows += factor * other.listed_rows;
    tiles += factor * other.tiles;
    touched_rows += factor * other.touched_rows;
    copied_columns += factor * other.copied_columns;
    columns += factor * other.columns;
  }
};

/// One row panel's tiles, from its runs.
class PanelTally {
 public:
  PanelTally(const Pattern& pattern, const TileCut& cut, bool lists)
      : pattern_(pattern),
        // What is gathered is counted column by column.
        width_(cut.gathers ? 1 : std::max<std::int64_t>(cut.column_panel, 1)),
        gathered_(cut.gathers ? cut.column_panel : 0),
        lists_(lists) {
    entries_.resize(static_cast<std::size_t>(divide_up(pattern.columns(), width_)));
  }

  /// How many runs have been looked at.
  std::int64_t runs() const noexcept { return seen_runs_; }
  Tally count(Range rows) {
    touched_.clear();
    for (std::int64_t row = rows.begin; row < rows.end;) {
      runs_.clear();
      pattern_.append_runs(row, 0, pattern_.columns(), runs_);
      const std::int64_t next =
          std::min<std::int64_t>(pattern_.node().alike_until(static_cast<std::int32_t>(row)), rows.end);
      for (const ColumnRun run : runs_) add_run({row, next}, run);
      seen_runs_ += std::ssize(runs_);
      row = next;
    }
    if (gathered_ > 0) return count_gathered(rows);
    Tally tally;
    for (const std::int64_t panel : touched_) {
      Entry& entry = entries_[static_cast<std::size_t>(panel)];
      const std::int64_t width = std::min(width_, pattern_.columns() - panel * width_);
      const std::int64_t area = width * rows.size();
      // As TileMap decides.
      const bool listed =
          tile_layout(rows.size(), width, entry.pairs, lists_).compact || is_cheaper_listed(entry.pairs, entry.span);
      if (listed) {
        tally.listed_pairs += static_cast<double>(entry.pairs);
        tally.listed_rows += static_cast<double>(entry.rows);
      } else {
        tally.dense_places += static_cast<double>(entry.span);
        tally.dense_area += static_cast<double>(area);
        if (entry.pairs < area) tally.masked_area += static_cast<double>(area);
      }
      tally.tiles += 1;
      tally.touched_rows += static_cast<double>(entry.rows);
      tally.columns += static_cast<double>(width);
      entry = {};
    }
    return tally;
  }

 private:
  struct Entry {
    std::int64_t pairs = 0;
    std::int64_t span = 0;  ///< from the first to the last pair, summed over the rows
    std::int64_t rows = 0;
    std::int64_t last_row = -1;
    std::int64_t last_end = 0;
  };

  /// Of rows that are alike.
  void add_run(Range rows, ColumnRun run) {
    for (std::int64_t begin = run.begin; begin < run.end;) {
      const std::int64_t panel = begin / width_;
      const std::int64_t end = std::min<std::int64_t>(run.end, (panel + 1) * width_);
      Entry& entry = entries_[static_cast<std::size_t>(panel)];
      if (entry.pairs == 0) touched_.push_back(panel);
      const bool is_new = entry.last_row != rows.begin;
      entry.rows += is_new ? rows.size() : 0;
      entry.span += (end - (is_new ? begin : entry.last_end)) * rows.size();
      entry.pairs += (end - begin) * rows.size();
      entry.last_row = rows.begin;
      entry.last_end = end;
      begin = end;
    }
  }

  Tally count_gathered(Range rows) {
    std::int64_t pairs = 0;
    for (const std::int64_t column : touched_) {
      pairs += entries_[static_cast<std::size_t>(column)].pairs;
      entries_[static_cast<std::size_t>(column)] = {};
    }
    const auto columns = static_cast<double>(touched_.size());
    Tally tally;
    tally.dense_places = tally.dense_area = columns * static_cast<double>(rows.size());
    tally.masked_area = static_cast<double>(pairs) < tally.dense_area ? tally.dense_area : 0;
    tally.tiles = std::ceil(columns / static_cast<double>(gathered_));
    tally.touched_rows = tally.tiles * static_cast<double>(rows.size());
    tally.columns = tally.copied_columns = columns;
    return tally;
  }

  const Pattern& pattern_;
  std::int64_t width_;
  std::int64_t gathered_;  ///< columns to a tile, or 0
  bool lists_;
  std::vector<Entry> entries_;
  std::vector<std::int64_t> touched_;
  std::vector<ColumnRun> runs_;
  std::int64_t seen_runs_ = 0;
};

/// From up to kSamples row panels of each pattern, of a long panel its first rows; fewer where these have many pairs.
Tally sample(const PlanData& plan, const TileCut& cut, bool lists) {
  constexpr std::int64_t kSamples = 16;
  constexpr std::int64_t kEnoughSamples = 2;
  constexpr std::int64_t kRows = 64;
  // Many cuts are sampled; of a short pattern all of it would take longer than forward.
  const std::int64_t pairs_of_head = plan.total_pairs / (plan.problem.batch * plan.problem.query_heads);
  const std::int64_t enough_runs = std::clamp<std::int64_t>(pairs_of_head / 32, 1 << 10, 1 << 14);
  const std::int64_t rows = plan.patterns.rows();
  if (rows == 0) return {};
  const std::int64_t panels = divide_up(rows, cut.row_panel);
  std::vector<Tally> of_pattern;
  for (const Pattern& pattern : plan.patterns.patterns()) {
    PanelTally panel_tally(pattern, cut, lists);
    Tally sum;
    std::int64_t sampled_rows = 0;
    std::int64_t sampled_panels = 0;
    for (std::int64_t turn = 0; turn < kSamples; ++turn) {
      const std::int64_t index = turn * 7 % kSamples;  // all over the rows from the start
      if (panels < kSamples && index >= panels) continue;
      const std::int64_t panel = panels < kSamples ? index : panels * (2 * index + 1) / (2 * kSamples);
      const std::int64_t begin = panel * cut.row_panel;
      const std::int64_t end = std::min({begin + cut.row_panel, begin + kRows, rows});
      sum.add(panel_tally.count({begin, end}), 1);
      sampled_rows += end - begin;
      if (++sampled_panels >= kEnoughSamples && panel_tally.runs() > enough_runs) break;
    }
    Tally& total = of_pattern.emplace_back();
    total.add(sum, static_cast<double>(rows) / static_cast<double>(sampled_rows));
    // A long panel has as many tiles as the rows looked at, and a few more.
    const double whole = static_cast<double>(panels) / static_cast<double>(sampled_panels);
    total.tiles = sum.tiles * whole;
    total.columns = sum.columns * whole;
    total.copied_columns = sum.copied_columns * whole;
  }
  Tally total;
  for (std::int64_t batch = 0; batch < plan.problem.batch; ++batch) {
    for (std::int64_t head = 0; head < plan.problem.query_heads; ++head) {
      total.add(of_pattern[static_cast<std::size_t>(plan.patterns.index(batch, head))], 1);
    }
  }
  return total;
}

/// What samples held, one of each cut that candidates use.
class Samples {
 public:
  Samples(const PlanData& plan, std::span<const CandidatePlan> candidates) {
    for (const CandidatePlan& candidate : candidates) {
      for (const TileCut& cut : candidate.cuts) {
        if (find(candidate, cut) == taken_.end()) taken_.push_back({cut, has_lists(candidate, cut), {}});
      }
    }
    parallel_for(std::ssize(taken_), [&](std::int64_t index) {
      Taken& taken = taken_[static_cast<std::size_t>(index)];
      taken.tally = sample(plan, taken.cut, taken.lists);
    });
  }

  const Tally& of(const CandidatePlan& candidate, const TileCut& cut) const { return find(candidate, cut)->tally; }

 private:
  struct Taken {
    TileCut cut;
    bool lists;
    Tally tally;
  };

  static bool has_lists(const CandidatePlan& candidate, const TileCut& cut) {
    return candidate.lists || cut.most_pairs > 0;
  }
  std::vector<Taken>::const_iterator find(const CandidatePlan& candidate, const TileCut& cut) const {
    return std::find_if(taken_.begin(), taken_.end(), [&, lists = has_lists(candidate, cut)](const Taken& taken) {
      return taken.cut == cut && taken.lists == lists;
    });
  }

  std::vector<Taken> taken_;
};

/// Floating-point operations of a pair in a dense tile, those in a list by keys in full, and entries in a list.
struct PairFlop {
  double dense = 0;
  double listed = 0;
  double listed_entries = 0;
};
PairFlop operator+(const PairFlop& a, const PairFlop& b) {
  return {a.dense + b.dense, a.listed + b.listed, a.listed_entries + b.listed_entries};
}
PairFlop operator*(double times, const PairFlop& flop) {
  return {times * flop.dense, times * flop.listed, times * flop.listed_entries};
}

/// Of one product by `features` of which a share is stored. Entry by entry a dense tile runs at half the rate of whole
/// panels.
PairFlop product_flop(double features, double share, bool in_blocks, bool whole_panels) {
  constexpr double kEntryCost = 2;
  const bool whole = whole_panels || share == 1;
  const bool in_full = whole || !lists_take_entries(share, in_blocks);
  return {2 * features * (whole ? 1 : kEntryCost * share), in_full ? 2 * features : 0, in_full ? 0 : features * share};
}

/// Whether a list's products take the operand in full though it is compressed.
bool is_copied_for_lists(double share, bool in_blocks) { return share < 1 && !lists_take_entries(share, in_blocks); }

class Estimate {
 public:
  Estimate(const PlanData& plan, const PlanOptions& options, const CandidatePlan& candidate, const Samples& samples)
      : plan_(plan), cost_(plan.cost_model), element_bytes_(options.element_bytes), candidate_(candidate) {
    const bool copies = is_copied_for_lists(stored_share(plan.problem, Operand::key), plan.problem.key_in_blocks) ||
                        is_copied_for_lists(stored_share(plan.problem, Operand::value), plan.problem.value_in_blocks);
    for (const TileCut& cut : candidate.cuts) {
      Tally& tally = tallies_.emplace_back(samples.of(candidate, cut));
      if (candidate.lists && copies) tally.copied_columns += std::min(tally.columns, tally.listed_pairs);
    }
  }

  const Tally& tally(Product product) const {
    return tallies_[static_cast<std::size_t>(candidate_.product(product).cut)];
  }
  /// The time of products of `flop` a pair in all, `exponentials` a pair and `visits` of every row and tile.
  double seconds(Product product, const PairFlop& flop, double exponentials, double visits) const {
    const Tally& held = tally(product);
    const TileCut& cut = candidate_.cut(product);
    const double features = static_cast<double>(std::max(plan_.problem.head_dim, plan_.problem.value_dim));
    const double panel = static_cast<double>(std::min(cut.column_panel, plan_.patterns.columns())) * features *
                         static_cast<double>(element_bytes_);
    const auto fast_bytes = static_cast<double>(plan_.fast_memory_words * element_bytes_);
    // Of a panel larger than a cache, so large a share is found there.
    const auto blend = [](double held_bytes, double bytes, double rate, double rate_beyond) {
      const double share = std::min(1.0, held_bytes / bytes);
      return 1 / (share / rate + (1 - share) / rate_beyond);
    };
    const double pair_rate =
        panel <= static_cast<double>(cost_.near_bytes) ? cost_.near_pair_flop_per_second
        : panel <= static_cast<double>(cost_.far_bytes) / 4
            ? blend(2 * fast_bytes, panel, cost_.middle_pair_flop_per_second, cost_.far_pair_flop_per_second)
            : blend(static_cast<double>(cost_.far_bytes) / 4, panel, cost_.far_pair_flop_per_second,
                    cost_.memory_pair_flop_per_second);
    // A register tile of fewer than four vectors of queries waits for its sums.
    const std::int64_t height = std::min(cut.row_panel, plan_.patterns.rows());
    const double dense_rate = cost_.dense_flop_per_second * (height <= 16 ? 0.6 : height <= 32 ? 0.85 : 1.0);
    // One entry after another takes as long as so much of whole keys in L1, wherever the keys are: 0.9 ns measured.
    constexpr double kFlopPerEntry = 54;
    const double entry_rate = cost_.near_pair_flop_per_second / kFlopPerEntry;
    return held.dense_places * flop.dense / dense_rate + held.listed_pairs * flop.listed / pair_rate +
           held.listed_pairs * flop.listed_entries / entry_rate +
           (held.dense_area + held.listed_pairs) * exponentials / cost_.exponential_per_second +
           held.masked_area * cost_.seconds_per_masked_place +
           (held.listed_rows + held.copied_columns) * visits * cost_.seconds_per_row +
           held.tiles * visits / 2 * cost_.seconds_per_tile;
  }
  /// Of words between fast and slow memory.
  double traffic_seconds(double words) const {
    return words * static_cast<double>(element_bytes_) / cost_.bytes_per_second;
  }
  /// What all row panels of a product take on the plan's threads, `heads` of them side by side.
  double rows_on_threads(Product product, double seconds, std::int64_t heads) const {
    return seconds_of_tasks(seconds, heads * row_tasks(product, seconds / static_cast<double>(heads)), plan_.threads);
  }
  double columns_on_threads(Product product, double seconds, std::int64_t heads) const {
    const std::int64_t panels =
        divide_up(plan_.patterns.columns(), std::max<std::int64_t>(candidate_.cut(product).column_panel, 1));
    return seconds_of_tasks(seconds, heads * panels, plan_.threads);
  }
  /// The same of a backward in one pass, in as many slices as cut_slices() would make for few threads, and how many
  /// values its slots hold. `features`: stored of a key.
  struct Sliced {
    double seconds = 0;
    double slot_values = 0;
  };
  Sliced slices_on_threads(double seconds, double features) const {
    const std::int64_t groups = plan_.problem.batch * plan_.problem.key_value_heads;
    const std::int64_t heads = plan_.heads_per_group();
    const double of_head = seconds / static_cast<double>(groups * heads);
    const std::int64_t items = heads * row_tasks(Product::backward_rows, of_head);
    const std::int64_t count =
        std::min({divide_up(plan_.threads, groups), items, tasks_within(of_head * static_cast<double>(heads))});
    const Sliced whole = {seconds_of_tasks(seconds, groups, plan_.threads)};
    if (count < 2) return whole;
    const double touched = tally(Product::backward_rows).columns / static_cast<double>(groups * count);
    const double slots = static_cast<double>(groups * (count - 1)) * features *
                         std::min(touched, static_cast<double>(plan_.patterns.columns()));
    const double all_seconds = seconds + slot_seconds(cost_, slots, element_bytes_);
    const Sliced cut = {seconds_of_tasks(all_seconds, groups * count, plan_.threads), slots};
    return cut.seconds < whole.seconds ? cut : whole;
  }

 private:
  static std::int64_t tasks_within(double seconds) {
    constexpr std::int64_t kMany = 1000000;
    return seconds < kLeastTaskSeconds * kMany ? static_cast<std::int64_t>(seconds / kLeastTaskSeconds) : kMany;
  }
  /// Row panels of a head, and the parts of those that are shared out.
  std::int64_t row_tasks(Product product, double seconds) const {
    const std::int64_t panels =
        divide_up(plan_.patterns.rows(), std::max<std::int64_t>(candidate_.cut(product).row_panel, 1));
    const bool shares = candidate_.summary.schedule == Schedule::recompute && !candidate_.product(product).rows_pass &&
                        candidate_.summary.backward_passes == BackwardPasses::one;
    return std::max(panels, shares ? tasks_within(seconds) : 0);
  }

  const PlanData& plan_;
  const CostModel& cost_;
  std::int64_t element_bytes_;
  const CandidatePlan& candidate_;
  std::vector<Tally> tallies_;
};

void estimate_one(const PlanData& plan, const PlanOptions& options, const Samples& samples, CandidatePlan& candidate) {
  const auto d = static_cast<double>(plan.problem.head_dim);
  const auto d_v = static_cast<double>(plan.problem.value_dim);
  const double query_share = stored_share(plan.problem, Operand::query);
  const double key_share = stored_share(plan.problem, Operand::key);
  const double value_share = stored_share(plan.problem, Operand::value);
  // S and dQ take the entries of K, and dK has them; O and dP those of V, and dV has them.
  const PairFlop by_key = product_flop(d, key_share, plan.problem.key_in_blocks, candidate.whole_panels);
  const PairFlop by_value = product_flop(d_v, value_share, plan.problem.value_in_blocks, candidate.whole_panels);
  const double q = d * query_share;  // words of a token
  const double k = d * key_share;
  const double v = d_v * value_share;
  const Estimate cost(plan, options, candidate, samples);
  PlanCandidate& summary = candidate.summary;
  const auto chunks = [&](Product product, double features) {
    return std::ceil(features / static_cast<double>(std::max<std::int64_t>(candidate.product(product).features, 1)));
  };
  double forward_words = 0;
  double backward_words = 0;
  const std::int64_t all_heads = plan.problem.batch * plan.problem.query_heads;
  const auto heads = static_cast<double>(all_heads);
  const double rows = heads * static_cast<double>(plan.patterns.rows());
  if (summary.schedule == Schedule::recompute) {
    const bool two = summary.backward_passes == BackwardPasses::two;
    double forward_seconds = cost.seconds(Product::forward, by_key + by_value, 1, 2);
    double backward_seconds =
        cost.seconds(Product::backward_rows, two ? 2 * by_key + by_value : 3 * by_key + 2 * by_value, 1, two ? 3 : 5);
    const Tally& forward = cost.tally(Product::forward);
    const Tally& backward = cost.tally(Product::backward_rows);
    // Rates of products pair by pair are measured with keys where these are, so they hold most of what keys that
    // stream past would take by themselves; medians over random patterns.
    constexpr double kStreamedInRates = 0.75;
    const auto keys_moved = [&](Product product, const Tally& held) {
      return candidate.product(product).streamed > 0 ? std::min(held.columns, held.listed_pairs) : held.columns;
    };
    double forward_in_rates = 0;
    double backward_in_rates = 0;
    if (candidate.product(Product::forward).rows_pass) {
      forward_words = forward.columns * (k + v) + forward.touched_rows * (q + 4 * d_v + 4) + rows * (2 * d_v + 6);
    } else {
      const double keys = keys_moved(Product::forward, forward) * (k + v);
      forward_words = keys + rows * (q + d_v + 1);
      if (candidate.product(Product::forward).streamed > 0) forward_in_rates = kStreamedInRates * keys;
      if (candidate.product(Product::forward).panel_by_panel) {
        forward_words += forward.touched_rows * (q + 2 * d_v + 4);
      }
    }
    if (candidate.product(Product::backward_rows).rows_pass) {
      backward_words =
          backward.columns * 3 * (k + v) + backward.touched_rows * (4 * q + 2 * d_v + 2) + rows * (2 * q + 2 * d_v);
    } else {
      const bool streams = candidate.product(Product::backward_rows).streamed > 0;
      const double keys = keys_moved(Product::backward_rows, backward) * (streams ? 4 : 3) * (k + v);
      backward_words = keys + rows * (2 * q + 2 * d_v + 2);
      if (streams) backward_in_rates = kStreamedInRates * keys;
      if (candidate.product(Product::backward_rows).panel_by_panel) {
        backward_words += backward.touched_rows * (3 * q + d_v + 2) + rows * (d_v + 1);
      }
    }
    forward_seconds += cost.traffic_seconds(forward_words - forward_in_rates);
    backward_seconds += cost.traffic_seconds(backward_words - backward_in_rates);
    summary.seconds = cost.rows_on_threads(Product::forward, forward_seconds, all_heads);
    if (two) {
      const double column_words = cost.tally(Product::backward_columns).touched_rows * (q + d_v + 2);
      const double column_seconds =
          cost.seconds(Product::backward_columns, 2 * by_key + 2 * by_value, 1, 4) + cost.traffic_seconds(column_words);
      backward_words += column_words;
      summary.seconds += cost.rows_on_threads(Product::backward_rows, backward_seconds, all_heads) +
                         cost.columns_on_threads(Product::backward_columns, column_seconds, all_heads);
    } else {
      const Estimate::Sliced sliced = cost.slices_on_threads(backward_seconds, k + v);
      summary.seconds += sliced.seconds;
      backward_words += 4 * sliced.slot_values;  // begun, and read to be added to others, which are read and written
    }
    candidate.backward_seconds = backward_seconds;
  } else {
    // One head after another.
    double seconds = 0;
    double on_threads = 0;
    const auto add = [&](Product product, const PairFlop& flop, double exponentials, double visits) {
      const double of_product = cost.seconds(product, flop, exponentials, visits);
      const bool of_keys = product == Product::grad_key || product == Product::grad_value;
      seconds += of_product;
      on_threads +=
          of_keys ? cost.columns_on_threads(product, of_product, 1) : cost.rows_on_threads(product, of_product, 1);
    };
    // S in both passes, its exponentials for the sums, for O (once a chunk) and for P.
    add(Product::scores, 2 * by_key, 2, 2 * chunks(Product::scores, d));
    add(Product::output, by_value, chunks(Product::output, d_v), chunks(Product::output, d_v));
    add(Product::grad_probabilities, by_value, 0, chunks(Product::grad_probabilities, d_v));
    add(Product::grad_query, by_key, 0, chunks(Product::grad_query, d));
    add(Product::grad_key, by_key, 0, chunks(Product::grad_key, d));
    add(Product::grad_value, by_value, 0, chunks(Product::grad_value, d_v));
    // Each product lists the pairs of its tiles anew and copies their values from and to slow memory; measured with
    // up to 4 million pairs a head in the last cache, and 33 million beyond it.
    const auto pairs = static_cast<double>(plan.total_pairs);
    const double stored_bytes = pairs / heads * static_cast<double>(options.element_bytes);
    const double seconds_per_copied_pair =
        stored_bytes <= 2 * static_cast<double>(plan.cost_model.far_bytes) ? 1e-8 : 2e-8;
    constexpr double kProducts = 8;
    forward_words = summary.forward_formula_words;
    backward_words = summary.backward_formula_words;
    const double moved =
        kProducts * seconds_per_copied_pair * pairs + cost.traffic_seconds(forward_words + backward_words);
    summary.seconds = seconds > 0 ? (seconds + moved) * on_threads / seconds : moved;
  }
  if (summary.forward_words == 0) {
    summary.forward_words = static_cast<std::int64_t>(forward_words);
    summary.backward_words = static_cast<std::int64_t>(backward_words);
  }
}

}  // namespace

void estimate(const PlanData& plan, const PlanOptions& options, std::span<CandidatePlan> candidates) {
  const Samples samples(plan, candidates);
  for (CandidatePlan& candidate : candidates) estimate_one(plan, options, samples, candidate);
}

}  // namespace cobble::detail
