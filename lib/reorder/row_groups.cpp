#include "reorder/row_groups.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

namespace cobble::detail {
namespace {

constexpr std::size_t kHashes = 16;
constexpr std::size_t kComparedCandidates = 4;
constexpr double kLeastSimilarity = 0.5;
constexpr std::int32_t kNone = -1;

using Signature = std::array<std::uint32_t, kHashes>;

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

std::vector<Signature> hash_columns(std::int64_t columns) {
  std::vector<Signature> hashes(static_cast<std::size_t>(columns));
  for (std::size_t column = 0; column < hashes.size(); ++column) {
    for (std::size_t k = 0; k < kHashes; ++k) {
      hashes[column][k] = static_cast<std::uint32_t>(mixed(column * kHashes + k) >> 32);
    }
  }
  return hashes;
}

Signature min_hash(std::span<const std::int32_t> columns, const std::vector<Signature>& hashes) {
  Signature signature;
  signature.fill(std::numeric_limits<std::uint32_t>::max());
  for (const std::int32_t column : columns) {
    const Signature& hash = hashes[static_cast<std::size_t>(column)];
    for (std::size_t k = 0; k < kHashes; ++k) signature[k] = std::min(signature[k], hash[k]);
  }
  return signature;
}

/// The number of columns that two sorted lists share.
std::int64_t count_shared(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  std::int64_t shared = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    shared += a[i] == b[j] ? 1 : 0;
    const bool step_a = a[i] <= b[j];
    const bool step_b = b[j] <= a[i];
    i += step_a ? 1 : 0;
    j += step_b ? 1 : 0;
  }
  return shared;
}

double similarity(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const std::int64_t shared = count_shared(a, b);
  const auto united = static_cast<std::int64_t>(a.size() + b.size()) - shared;
  return static_cast<double>(shared) / static_cast<double>(united);
}

/// For each pair of neighbouring hashes the last group that had a row with these values. By single hashes, groups that
/// share an eighth of their columns would keep displacing one another. Places may be shared by chance: a group found
/// here is a candidate, no more.
class GroupTable {
 public:
  explicit GroupTable(std::size_t rows)
      : mask_(std::bit_ceil(std::max<std::size_t>(64, 2 * kHashes * rows)) - 1), groups_(mask_ + 1, kNone) {}

  std::int32_t& at(const Signature& signature, std::size_t k) {
    const std::uint64_t values = std::uint64_t{signature[k]} << 32 | signature[(k + 1) % kHashes];
    return groups_[static_cast<std::size_t>(mixed(values + k)) & mask_];
  }

 private:
  std::size_t mask_;
  std::vector<std::int32_t> groups_;
};

struct Candidate {
  std::int32_t group = kNone;
  int votes = 0;
};

/// The groups that the hashes point to, those with most votes first.
std::span<const Candidate> find_candidates(GroupTable& table, const Signature& signature,
                                           std::array<Candidate, kHashes>& candidates) {
  std::size_t found = 0;
  for (std::size_t k = 0; k < kHashes; ++k) {
    const std::int32_t group = table.at(signature, k);
    if (group == kNone) continue;
    auto* const end = candidates.data() + found;
    auto* const known =
        std::find_if(candidates.data(), end, [group](const Candidate& candidate) { return candidate.group == group; });
    if (known == end) candidates[found++] = {group, 0};
    ++known->votes;
  }
  std::stable_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(found),
                   [](const Candidate& a, const Candidate& b) { return a.votes > b.votes; });
  return {candidates.data(), std::min(found, kComparedCandidates)};
}

class Grouping {
 public:
  explicit Grouping(const CsrPatternView& matrix) : matrix_(matrix), table_(static_cast<std::size_t>(matrix.rows)) {
    const std::vector<Signature> hashes = hash_columns(matrix.columns);
    signatures_.reserve(static_cast<std::size_t>(matrix.rows));
    for (std::int64_t row = 0; row < matrix.rows; ++row) signatures_.push_back(min_hash(matrix.row(row), hashes));
    result_.group_of.assign(static_cast<std::size_t>(matrix.rows), kNone);
  }

  /// Each row joins the most similar of the groups found so far, or founds one.
  void assign() {
    for (std::int64_t row = 0; row < matrix_.rows; ++row) {
      if (!matrix_.row(row).empty()) assign(row);
    }
  }
  RowGroups take_result() { return std::move(result_); }

 private:
  void assign(std::int64_t row) {
    const Signature& signature = signatures_[static_cast<std::size_t>(row)];
    std::int32_t& group = result_.group_of[static_cast<std::size_t>(row)];
    double best = group == kNone ? 0 : similarity_to(group, row);
    std::array<Candidate, kHashes> candidates;
    for (const Candidate& candidate : find_candidates(table_, signature, candidates)) {
      const double found = similarity_to(candidate.group, row);
      if (found < kLeastSimilarity || found <= best) continue;
      group = candidate.group;
      best = found;
    }
    if (group == kNone) {
      group = result_.groups++;
      first_rows_.push_back(row);
    }
    for (std::size_t k = 0; k < kHashes; ++k) table_.at(signature, k) = group;
  }
  double similarity_to(std::int32_t group, std::int64_t row) const {
    return similarity(matrix_.row(row), matrix_.row(first_rows_[static_cast<std::size_t>(group)]));
  }

  CsrPatternView matrix_;
  GroupTable table_;
  std::vector<Signature> signatures_;
  std::vector<std::int64_t> first_rows_;
  RowGroups result_;
};

}  // namespace

RowGroups group_similar_rows(const CsrPatternView& matrix) {
  Grouping grouping(matrix);
  grouping.assign();
  // Once more, as better groups may have been founded after a row chose; who founded one stays.
  grouping.assign();
  return grouping.take_result();
}

}  // namespace cobble::detail
