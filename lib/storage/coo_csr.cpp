#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "cobble/convert.hpp"
#include "core/checked.hpp"
#include "storage/allocate.hpp"

namespace cobble {
namespace {

/// Stands for the value of an entry that has none.
struct NoValue {};

template <class Value>
struct Entry {
  std::int32_t row;
  std::int32_t column;
  [[no_unique_address]] Value value;
};

Entry<NoValue> entry_at(const CooPattern& matrix, std::size_t k) {
  return {matrix.row_indices[k], matrix.column_indices[k], {}};
}
template <class T>
Entry<T> entry_at(const CooMatrix<T>& matrix, std::size_t k) {
  return {matrix.row_indices[k], matrix.column_indices[k], matrix.values[k]};
}

bool is_row_major(const CooPattern& matrix) {
  for (std::size_t k = 1; k < matrix.row_indices.size(); ++k) {
    const bool ordered =
        matrix.row_indices[k - 1] < matrix.row_indices[k] || (matrix.row_indices[k - 1] == matrix.row_indices[k] &&
                                                              matrix.column_indices[k - 1] <= matrix.column_indices[k]);
    if (!ordered) return false;
  }
  return true;
}

// A digit's counters stay in the first-level cache, and the memory does not depend on the number of columns.
constexpr int kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

/// Sorts stably by an index in [0, bound): one counting pass for each digit of bound - 1.
template <class Value>
void sort_by(std::int32_t Entry<Value>::*index, std::int64_t bound, std::vector<Entry<Value>>& entries,
             std::vector<Entry<Value>>& scratch) {
  for (int shift = 0; (bound - 1) >> shift > 0; shift += kDigitBits) {
    const auto digit = [&](const Entry<Value>& entry) {
      return static_cast<std::size_t>(entry.*index >> shift) % kDigits;
    };
    std::array<std::size_t, kDigits + 1> next{};
    for (const auto& entry : entries) ++next[digit(entry) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (const auto& entry : entries) scratch[next[digit(entry)]++] = entry;
    entries.swap(scratch);
  }
}

template <class Value, class Matrix>
std::vector<Entry<Value>> sorted_entries(const Matrix& matrix) {
  auto entries = allocate_vector<Entry<Value>>({matrix.entries()}, "entries to sort");
  auto scratch = allocate_vector<Entry<Value>>({matrix.entries()}, "entries to sort");
  bool column_major = true;
  for (std::size_t k = 0; k < entries.size(); ++k) {
    entries[k] = entry_at(matrix, k);
    column_major = column_major && (k == 0 || entries[k - 1].column <= entries[k].column);
  }
  if (!column_major) sort_by(&Entry<Value>::column, matrix.columns, entries, scratch);
  sort_by(&Entry<Value>::row, matrix.rows, entries, scratch);
  return entries;
}

void append_value(CsrPattern& /*result*/, NoValue /*value*/) {}
template <class T>
void append_value(CsrMatrix<T>& result, T value) {
  result.values.push_back(value);
}
void add_to_last_value(CsrPattern& /*result*/, NoValue /*value*/) {}
template <class T>
void add_to_last_value(CsrMatrix<T>& result, T value) {
  result.values.back() += value;
}

/// `entry(k)` gives the entries in row-major order. Returns how many were merged.
template <class Result, class GetEntry>
std::int64_t append_rows(std::int64_t entries, GetEntry entry, Duplicates duplicates, Result& result) {
  std::int64_t merged = 0;
  std::int32_t last_row = -1;
  for (std::int64_t k = 0; k < entries; ++k) {
    const auto next = entry(static_cast<std::size_t>(k));
    if (next.row == last_row && next.column == result.column_indices.back()) {
      if (duplicates == Duplicates::reject) {
        throw Error(ErrorCode::invalid_structure, "the entry at row " + std::to_string(next.row) + ", column " +
                                                      std::to_string(next.column) + " stands more than once");
      }
      add_to_last_value(result, next.value);
      ++merged;
      continue;
    }
    last_row = next.row;
    ++result.row_offsets[static_cast<std::size_t>(next.row) + 1];
    result.column_indices.push_back(next.column);
    append_value(result, next.value);
  }
  std::partial_sum(result.row_offsets.begin(), result.row_offsets.end(), result.row_offsets.begin());
  return merged;
}

template <class Result, class Matrix>
Result coo_to_csr(const Matrix& matrix, Duplicates duplicates, CanonicalReport* report) {
  validate(matrix);
  Result result;
  result.rows = matrix.rows;
  result.columns = matrix.columns;
  result.row_offsets = allocate_vector<std::int64_t>({matrix.rows + 1}, "row_offsets");
  result.column_indices.reserve(matrix.row_indices.size());
  if constexpr (!std::is_same_v<Result, CsrPattern>) result.values.reserve(matrix.row_indices.size());

  CanonicalReport found;
  found.sorted_rows = !is_row_major(matrix);
  if (found.sorted_rows) {
    const auto entries = sorted_entries<decltype(entry_at(matrix, 0).value)>(matrix);
    found.duplicates_merged = append_rows(
        matrix.entries(), [&](std::size_t k) { return entries[k]; }, duplicates, result);
  } else {
    found.duplicates_merged = append_rows(
        matrix.entries(), [&](std::size_t k) { return entry_at(matrix, k); }, duplicates, result);
  }
  if (report != nullptr) *report = found;
  return result;
}

void expand_rows(const CsrPatternView& matrix, CooPattern& result) {
  result.rows = matrix.rows;
  result.columns = matrix.columns;
  result.column_indices.assign(matrix.column_indices.begin(), matrix.column_indices.end());
  result.row_indices.reserve(matrix.column_indices.size());
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    result.row_indices.insert(result.row_indices.end(), matrix.row(row).size(), static_cast<std::int32_t>(row));
  }
}

}  // namespace

CsrPattern to_csr(const CooPattern& matrix, Duplicates duplicates, CanonicalReport* report) {
  return coo_to_csr<CsrPattern>(matrix, duplicates, report);
}
template <class T>
CsrMatrix<T> to_csr(const CooMatrix<T>& matrix, Duplicates duplicates, CanonicalReport* report) {
  return coo_to_csr<CsrMatrix<T>>(matrix, duplicates, report);
}
template CsrMatrix<float> to_csr(const CooMatrix<float>&, Duplicates, CanonicalReport*);
template CsrMatrix<double> to_csr(const CooMatrix<double>&, Duplicates, CanonicalReport*);

CooPattern to_coo(const CsrPatternView& matrix) {
  validate(matrix);
  CooPattern result;
  expand_rows(matrix, result);
  return result;
}
template <class T>
CooMatrix<T> to_coo(const CsrView<T>& matrix) {
  validate(matrix);
  CooMatrix<T> result;
  expand_rows(matrix, result);
  result.values.assign(matrix.values.begin(), matrix.values.end());
  return result;
}
template CooMatrix<float> to_coo(const CsrView<float>&);
template CooMatrix<double> to_coo(const CsrView<double>&);

}  // namespace cobble
