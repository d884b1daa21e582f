#include "reorder/graph_orderings.hpp"

#include <metis.h>

#if __has_include(<amd.h>)
#include <amd.h>
#include <colamd.h>
#else
#include <suitesparse/amd.h>
#include <suitesparse/colamd.h>
#endif

#include <cstddef>
#include <limits>
#include <mutex>
#include <string>

#include "cobble/convert.hpp"
#include "cobble/error.hpp"

namespace cobble::detail {
namespace {

std::vector<SuiteSparse_long> widened(std::span<const std::int32_t> indices) {
  return {indices.begin(), indices.end()};
}

std::vector<std::int32_t> narrowed(std::span<const SuiteSparse_long> order) {
  std::vector<std::int32_t> result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) result[i] = static_cast<std::int32_t>(order[i]);
  return result;
}

void require(bool success, const char* function, std::int64_t status) {
  if (success) return;
  throw Error(ErrorCode::overflow, std::string(function) + " fails with status " + std::to_string(status));
}

}  // namespace

std::vector<std::int32_t> amd_order(const CsrPatternView& graph) {
  if (graph.rows == 0) return {};
  const std::vector<SuiteSparse_long> offsets(graph.row_offsets.begin(), graph.row_offsets.end());
  std::vector<SuiteSparse_long> indices = widened(graph.column_indices);
  indices.resize(indices.size() + 1);  // never a null pointer
  std::vector<SuiteSparse_long> order(static_cast<std::size_t>(graph.rows));
  const auto status = amd_l_order(graph.rows, offsets.data(), indices.data(), order.data(), nullptr, nullptr);
  require(status >= AMD_OK, "amd_l_order", status);
  return narrowed(order);
}

std::vector<std::int32_t> nested_dissection_order(const CsrPatternView& graph) {
  if (graph.rows == 0) return {};
  if (graph.entries() > std::numeric_limits<idx_t>::max()) {
    throw Error(ErrorCode::unsupported, "the graph has " + std::to_string(graph.entries()) +
                                            " pairs, nested_dissection takes up to " +
                                            std::to_string(std::numeric_limits<idx_t>::max()));
  }
  std::vector<idx_t> offsets = {0};
  std::vector<idx_t> neighbours;
  neighbours.reserve(graph.column_indices.size() + 1);
  for (std::int64_t row = 0; row < graph.rows; ++row) {
    for (const std::int32_t column : graph.row(row)) {
      if (column != row) neighbours.push_back(column);  // METIS knows no loops
    }
    offsets.push_back(static_cast<idx_t>(neighbours.size()));
  }
  auto size = static_cast<idx_t>(graph.rows);
  std::vector<idx_t> order(static_cast<std::size_t>(size));
  std::vector<idx_t> places(static_cast<std::size_t>(size));
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  // METIS keeps the state of its random numbers for the whole process.
  static std::mutex metis_runs;
  const std::lock_guard<std::mutex> lock(metis_runs);
  const int status =
      METIS_NodeND(&size, offsets.data(), neighbours.data(), nullptr, options, order.data(), places.data());
  require(status == METIS_OK, "METIS_NodeND", status);
  return {order.begin(), order.end()};
}

std::vector<std::int32_t> colamd_column_order(const CsrPatternView& matrix) {
  if (matrix.columns == 0) return {};
  const CsrPattern columns = transpose(matrix);
  std::vector<SuiteSparse_long> order(columns.row_offsets.begin(), columns.row_offsets.end());
  std::vector<SuiteSparse_long> rows = widened(columns.column_indices);
  const std::size_t length = colamd_l_recommended(matrix.entries(), matrix.rows, matrix.columns);
  if (length == 0) throw Error(ErrorCode::overflow, "colamd_l: the matrix is too large");
  rows.resize(length);
  SuiteSparse_long statistics[COLAMD_STATS];
  const bool success = colamd_l(matrix.rows, matrix.columns, static_cast<SuiteSparse_long>(length), rows.data(),
                                order.data(), nullptr, statistics) != 0;
  require(success, "colamd_l", statistics[COLAMD_STATUS]);
  return narrowed(std::span(order).first(static_cast<std::size_t>(matrix.columns)));
}

}  // namespace cobble::detail
