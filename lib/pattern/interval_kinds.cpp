#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pattern/arguments.hpp"
#include "pattern/closed_sums.hpp"
#include "pattern/pattern_node.hpp"

// Kinds with at most one run in each row.

namespace cobble {
namespace detail {
namespace {

/// Columns [begin, end), which may reach beyond the matrix; nothing when begin >= end.
struct Interval {
  std::int64_t begin;
  std::int64_t end;
};

/// A kind says `Interval interval(row)`, `pairs(row_begin, row_end)`, `describe()` and has `rows` and `columns`.
template <class Kind>
class IntervalNode final : public PatternNode {
 public:
  explicit IntervalNode(Kind kind) : PatternNode(kind.rows, kind.columns), kind_(std::move(kind)) {}

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    const Interval interval = kind_.interval(row);
    const std::int64_t first = std::max<std::int64_t>(interval.begin, begin);
    const std::int64_t last = std::min<std::int64_t>(interval.end, end);
    if (first < last) runs.push_back({static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)});
  }
  std::uint64_t bits(std::int32_t row, std::int32_t column) const override {
    const Interval interval = kind_.interval(row);
    return interval_bits(interval.begin, std::min<std::int64_t>(interval.end, columns()), column);
  }
  bool single_runs(std::int32_t row_begin, std::int32_t row_end, std::int32_t begin, std::int32_t end,
                   ColumnRun* runs) const override {
    for (std::int32_t row = row_begin; row < row_end; ++row) {
      const Interval interval = kind_.interval(row);
      const std::int64_t first = std::max<std::int64_t>(interval.begin, begin);
      const std::int64_t last = std::min<std::int64_t>(interval.end, end);
      *runs++ =
          first < last ? ColumnRun{static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)} : ColumnRun{0, 0};
    }
    return true;
  }
  std::int64_t pairs(std::int32_t row_begin, std::int32_t row_end) const override {
    return kind_.pairs(row_begin, row_end);
  }
  std::string describe() const override { return kind_.describe(); }

 private:
  Kind kind_;
};

template <class Kind>
Pattern interval_pattern(Kind kind) {
  return Pattern(std::make_shared<IntervalNode<Kind>>(std::move(kind)));
}

/// Columns [i + begin_shift, i + end_shift), begin_shift < end_shift: full, causal and window.
struct Band {
  std::int32_t rows;
  std::int32_t columns;
  std::int64_t begin_shift;
  std::int64_t end_shift;
  std::string text;

  Interval interval(std::int32_t row) const { return {row + begin_shift, row + end_shift}; }
  std::int64_t pairs(std::int64_t row_begin, std::int64_t row_end) const {
    return sum_clamped(row_begin + end_shift, row_end + end_shift, columns) -
           sum_clamped(row_begin + begin_shift, row_end + begin_shift, columns);
  }
  std::string describe() const { return text; }
};

/// A band of `left` columns before and `right` after each row's position.
Pattern band(std::int64_t n_q, std::int64_t n_k, std::int64_t left, std::int64_t right, std::string text) {
  const std::int32_t rows = checked_index(n_q, "n_q");
  const std::int32_t columns = checked_index(n_k, "n_k");
  const std::int64_t everything = n_q + n_k;  // reaches past either edge from every row
  return interval_pattern(Band{rows, columns, n_k - n_q - std::min(left, everything),
                               n_k - n_q + std::min(right, everything) + 1, std::move(text)});
}

struct LeadingTokens {
  std::int32_t rows;
  std::int32_t columns;
  std::int64_t count;

  Interval interval(std::int32_t) const { return {0, count}; }
  std::int64_t pairs(std::int64_t row_begin, std::int64_t row_end) const {
    return (row_end - row_begin) * std::min<std::int64_t>(count, columns);
  }
  std::string describe() const {
    return "leading_tokens(" + size_text(rows, columns) + "," + std::to_string(count) + ")";
  }
};

struct Prefix {
  std::int32_t rows;
  std::int32_t columns;
  std::int64_t prefix;

  Interval interval(std::int32_t row) const { return {0, std::max<std::int64_t>(row + std::int64_t{1}, prefix)}; }
  std::int64_t pairs(std::int64_t row_begin, std::int64_t row_end) const {
    return sum_clamped(row_begin + 1, row_end + 1, std::min<std::int64_t>(prefix, columns), columns);
  }
  std::string describe() const { return "prefix(" + std::to_string(rows) + "," + std::to_string(prefix) + ")"; }
};

/// Rows [query_offsets[k], query_offsets[k + 1]) see columns [key_offsets[k], key_offsets[k + 1]).
struct Documents {
  std::int32_t rows;
  std::int32_t columns;
  std::vector<std::int32_t> query_offsets;
  std::vector<std::int32_t> key_offsets;
  std::vector<std::int64_t> pairs_before;  ///< in the rows of earlier documents

  std::size_t document(std::int64_t row) const {
    const auto next = std::upper_bound(query_offsets.begin(), query_offsets.end(), row);
    return static_cast<std::size_t>(next - query_offsets.begin()) - 1;
  }
  Interval interval(std::int32_t row) const {
    const std::size_t k = document(row);
    return {key_offsets[k], key_offsets[k + 1]};
  }
  std::int64_t pairs_up_to(std::int64_t row) const {
    if (row == rows) return pairs_before.back();
    const std::size_t k = document(row);
    return pairs_before[k] + (row - query_offsets[k]) * std::int64_t{key_offsets[k + 1] - key_offsets[k]};
  }
  std::int64_t pairs(std::int64_t row_begin, std::int64_t row_end) const {
    return row_begin >= row_end ? 0 : pairs_up_to(row_end) - pairs_up_to(row_begin);
  }
  std::string describe() const {
    constexpr std::size_t kLongest = 64;
    const std::size_t documents = query_offsets.size() - 1;
    if (documents > kLongest) {
      return "documents(" + size_text(rows, columns) + ", " + std::to_string(documents) + " documents)";
    }
    std::string text = "documents(";
    for (std::size_t k = 0; k < documents; ++k) {
      if (k > 0) text += ",";
      text += size_text(query_offsets[k + 1] - query_offsets[k], key_offsets[k + 1] - key_offsets[k]);
    }
    return text + ")";
  }
};

/// Throws unless the offsets start at 0 and never decrease.
std::vector<std::int32_t> checked_offsets(std::span<const std::int64_t> offsets, const std::string& name) {
  if (offsets.empty()) throw Error(ErrorCode::invalid_argument, name + " is empty, expected at least the offset 0");
  std::vector<std::int32_t> checked;
  checked.reserve(offsets.size());
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    const std::string entry = name + "[" + std::to_string(k) + "]";
    const std::int64_t before = k == 0 ? 0 : offsets[k - 1];
    if (k == 0 && offsets[0] != 0) {
      throw Error(ErrorCode::invalid_argument, entry + " = " + std::to_string(offsets[0]) + ", expected 0");
    }
    if (offsets[k] < before) {
      throw Error(ErrorCode::invalid_argument, entry + " = " + std::to_string(offsets[k]) + " is less than " + name +
                                                   "[" + std::to_string(k - 1) + "] = " + std::to_string(before));
    }
    checked.push_back(checked_index(offsets[k], entry));
  }
  return checked;
}

Pattern documents_between(std::vector<std::int32_t> query_offsets, std::vector<std::int32_t> key_offsets) {
  std::vector<std::int64_t> pairs_before{0};
  pairs_before.reserve(query_offsets.size());
  for (std::size_t k = 0; k + 1 < query_offsets.size(); ++k) {
    pairs_before.push_back(pairs_before.back() + std::int64_t{query_offsets[k + 1] - query_offsets[k]} *
                                                     (key_offsets[k + 1] - key_offsets[k]));
  }
  const std::int32_t rows = query_offsets.back();
  const std::int32_t columns = key_offsets.back();
  return interval_pattern(
      Documents{rows, columns, std::move(query_offsets), std::move(key_offsets), std::move(pairs_before)});
}

}  // namespace
}  // namespace detail

using detail::checked_offsets;
using detail::require_at_least;
using detail::size_text;

Pattern full(std::int64_t n) { return full(checked_index(n, "n"), n); }
Pattern full(std::int64_t n_q, std::int64_t n_k) {
  const std::int64_t everything = std::int64_t{1} << 32;
  return detail::band(n_q, n_k, everything, everything, "full(" + size_text(n_q, n_k) + ")");
}

Pattern causal(std::int64_t n) { return causal(checked_index(n, "n"), n); }
Pattern causal(std::int64_t n_q, std::int64_t n_k) {
  const std::int64_t everything = std::int64_t{1} << 32;
  return detail::band(n_q, n_k, everything, 0, "causal(" + size_text(n_q, n_k) + ")");
}

Pattern window(std::int64_t n, std::int64_t left, std::int64_t right) {
  return window(checked_index(n, "n"), n, left, right);
}
Pattern window(std::int64_t n_q, std::int64_t n_k, std::int64_t left, std::int64_t right) {
  require_at_least(left, 0, "left");
  require_at_least(right, 0, "right");
  return detail::band(n_q, n_k, left, right,
                      "window(" + size_text(n_q, n_k) + "," + std::to_string(left) + "," + std::to_string(right) + ")");
}

Pattern leading_tokens(std::int64_t n, std::int64_t count) { return leading_tokens(checked_index(n, "n"), n, count); }
Pattern leading_tokens(std::int64_t n_q, std::int64_t n_k, std::int64_t count) {
  require_at_least(count, 0, "count");
  return detail::interval_pattern(detail::LeadingTokens{checked_index(n_q, "n_q"), checked_index(n_k, "n_k"), count});
}

Pattern prefix(std::int64_t n, std::int64_t prefix) {
  require_at_least(prefix, 0, "prefix");
  const std::int32_t size = checked_index(n, "n");
  return detail::interval_pattern(detail::Prefix{size, size, prefix});
}

Pattern documents(std::span<const std::int64_t> lengths) {
  std::vector<std::int32_t> offsets{0};
  offsets.reserve(lengths.size() + 1);
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    const std::string entry = "lengths[" + std::to_string(k) + "]";
    require_at_least(lengths[k], 0, entry);
    const std::int64_t next = checked_sum(offsets.back(), lengths[k], "the sum of lengths");
    offsets.push_back(checked_index(next, "the sum of lengths"));
  }
  return detail::documents_between(offsets, offsets);
}

Pattern documents_from_offsets(std::span<const std::int64_t> query_offsets, std::span<const std::int64_t> key_offsets) {
  std::vector<std::int32_t> queries = checked_offsets(query_offsets, "query_offsets");
  std::vector<std::int32_t> keys = checked_offsets(key_offsets, "key_offsets");
  if (queries.size() != keys.size()) {
    throw Error(ErrorCode::shape_mismatch, "query_offsets has " + std::to_string(queries.size()) +
                                               " entries, key_offsets " + std::to_string(keys.size()));
  }
  return detail::documents_between(std::move(queries), std::move(keys));
}

}  // namespace cobble
