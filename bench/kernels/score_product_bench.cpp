// The score product of compressed queries and keys alone, forward and backward, by the entries of the keys and with
// panels of them written out in full: score_product_bench --benchmark_filter=avx512. Arguments: entries of a token,
// features.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "cobble/aligned_buffer.hpp"
#include "cobble/csr.hpp"
#include "cobble/isa.hpp"
#include "kernels/tile_kernels.hpp"
#include "measured_kernels.hpp"
#include "storage/feature_panels.hpp"

namespace {

using namespace cobble;
using namespace cobble::kernels;

constexpr std::int64_t kQueries = 64;  // of the one panel of rows
constexpr std::int64_t kKeys = 64;     // of a panel of columns
constexpr std::int64_t kPanels = 9;    // of columns, which a panel of rows of a window of 512 meets

/// `tokens` tokens with `kept` of `features` features each.
template <class T>
CsrMatrix<T> random_matrix(std::int64_t tokens, std::int64_t kept, std::int64_t features) {
  std::mt19937 generator(1);
  std::normal_distribution<T> normal;
  CsrMatrix<T> matrix;
  matrix.rows = tokens;
  matrix.columns = features;
  std::vector<std::int32_t> all(static_cast<std::size_t>(features));
  std::iota(all.begin(), all.end(), 0);
  for (std::int64_t token = 0; token < tokens; ++token) {
    std::sample(all.begin(), all.end(), std::back_inserter(matrix.column_indices), kept, generator);
    matrix.row_offsets.push_back(static_cast<std::int64_t>(matrix.column_indices.size()));
  }
  matrix.values.resize(matrix.column_indices.size());
  for (T& value : matrix.values) value = normal(generator);
  return matrix;
}

/// A panel of queries, which both ways hold in full, and the keys that it meets.
template <class T>
struct Scores {
  explicit Scores(const benchmark::State& state)
      : kept(state.range(0)),
        features(state.range(1)),
        query(random_matrix<T>(kQueries, kept, features)),
        key(random_matrix<T>(kKeys * kPanels, kept, features)) {
    for (std::int64_t row = 0; row <= kKeys; ++row) offsets.push_back(static_cast<std::int32_t>(row * kept));
    detail::densify_rows(query.view(), 0, kQueries, queries.data(), features);
    detail::densify_rows_transposed(query.view(), 0, kQueries, transposed_queries.data(), kQueries);
  }

  PairTile entries(std::int64_t panel) const {
    return {kKeys, offsets.data(), key.column_indices.data() + panel * kKeys * kept};
  }
  const T* values(std::int64_t panel) const { return key.values.data() + panel * kKeys * kept; }
  void densify_keys(std::int64_t panel) {
    detail::densify_rows(key.view(), panel * kKeys, (panel + 1) * kKeys, keys.data(), features);
  }
  static double pairs() { return static_cast<double>(kQueries * kKeys * kPanels); }

  std::int64_t kept;
  std::int64_t features;
  CsrMatrix<T> query;
  CsrMatrix<T> key;
  std::vector<std::int32_t> offsets;  ///< of the entries of a panel of keys
  AlignedBuffer<T> queries{kQueries * features};
  AlignedBuffer<T> transposed_queries{kQueries * features};
  AlignedBuffer<T> keys{kKeys * features};
  AlignedBuffer<T> tile = random_buffer<T>(kKeys * kQueries);  ///< keys x queries
  AlignedBuffer<T> grad_query{kQueries * features};
  AlignedBuffer<T> grad_keys{kKeys * features};
  std::vector<T> grad_key_values = std::vector<T>(key.values.size());
};

template <class T>
void forward_by_entries(benchmark::State& state) {
  Scores<T> scores(state);
  for (auto step : state) {
    for (std::int64_t panel = 0; panel < kPanels; ++panel) {
      std::fill(scores.tile.begin(), scores.tile.end(), T{0});
      tile_kernels<T>().pairs_to_rows(scores.entries(panel), kQueries, T{1}, scores.values(panel),
                                      {scores.transposed_queries.data(), kQueries}, {scores.tile.data(), kQueries});
      benchmark::ClobberMemory();
    }
  }
  count(state, "pairs/s", Scores<T>::pairs());
}

template <class T>
void forward_densified(benchmark::State& state) {
  Scores<T> scores(state);
  Product<T> product;
  product.rows = kKeys;
  product.columns = product.b_stride = product.c_stride = kQueries;
  product.inner = product.a_stride = scores.features;
  product.a = scores.keys.data();
  product.b = scores.transposed_queries.data();
  product.c = scores.tile.data();
  for (auto step : state) {
    for (std::int64_t panel = 0; panel < kPanels; ++panel) {
      scores.densify_keys(panel);
      tile_kernels<T>().multiply(product);
      benchmark::ClobberMemory();
    }
  }
  count(state, "pairs/s", Scores<T>::pairs());
}

/// dQ^T and the entries of dK.
template <class T>
void backward_by_entries(benchmark::State& state) {
  Scores<T> scores(state);
  std::fill(scores.grad_query.begin(), scores.grad_query.end(), T{0});
  for (auto step : state) {
    for (std::int64_t panel = 0; panel < kPanels; ++panel) {
      tile_kernels<T>().pairs_to_keys(scores.entries(panel), kQueries, T{1}, scores.values(panel),
                                      {scores.tile.data(), kQueries}, {scores.grad_query.data(), kQueries});
      tile_kernels<T>().pair_products(scores.entries(panel), kQueries, T{1}, {scores.tile.data(), kQueries},
                                      {scores.transposed_queries.data(), kQueries},
                                      scores.grad_key_values.data() + panel * kKeys * scores.kept, true);
      benchmark::ClobberMemory();
    }
  }
  count(state, "pairs/s", Scores<T>::pairs());
}

/// dQ, and dK in full, of which the entries are taken.
template <class T>
void backward_densified(benchmark::State& state) {
  Scores<T> scores(state);
  std::fill(scores.grad_query.begin(), scores.grad_query.end(), T{0});
  Product<T> of_queries;
  of_queries.rows = kQueries;
  of_queries.columns = of_queries.b_stride = of_queries.c_stride = scores.features;
  of_queries.inner = kKeys;
  of_queries.a_inner_stride = kQueries;
  of_queries.a_stride = 1;
  of_queries.a = scores.tile.data();
  of_queries.b = scores.keys.data();
  of_queries.c = scores.grad_query.data();
  of_queries.add = true;
  Product<T> of_keys;
  of_keys.rows = kKeys;
  of_keys.columns = of_keys.b_stride = of_keys.c_stride = scores.features;
  of_keys.inner = of_keys.a_stride = kQueries;
  of_keys.a = scores.tile.data();
  of_keys.b = scores.queries.data();
  of_keys.c = scores.grad_keys.data();
  for (auto step : state) {
    for (std::int64_t panel = 0; panel < kPanels; ++panel) {
      scores.densify_keys(panel);
      tile_kernels<T>().multiply(of_queries);
      tile_kernels<T>().multiply(of_keys);
      detail::gather_rows(scores.key.view(), panel * kKeys, (panel + 1) * kKeys, scores.grad_keys.data(),
                          scores.features, scores.grad_key_values.data());
      benchmark::ClobberMemory();
    }
  }
  count(state, "pairs/s", Scores<T>::pairs());
}

template <class T>
void register_all(Isa chosen) {
  const auto add = [chosen](const char* name, void (*work)(benchmark::State&)) {
    register_benchmark<T>(name, chosen, work)
        ->Args({4, 64})
        ->Args({8, 128})
        ->Args({16, 128})
        ->Args({8, 256})
        ->Args({16, 256});
  };
  add("forward_by_entries", forward_by_entries<T>);
  add("forward_densified", forward_densified<T>);
  add("backward_by_entries", backward_by_entries<T>);
  add("backward_densified", backward_densified<T>);
}

}  // namespace

int main(int argument_count, char** arguments) {
  return run_benchmarks(argument_count, arguments, [](Isa available) {
    register_all<float>(available);
    register_all<double>(available);
  });
}
