// The kernels alone, on operands in the nearest cache unless said otherwise, for every instruction set that the
// processor has: tile_kernels_bench --benchmark_filter=multiply.*avx512

#include "kernels/tile_kernels.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "cobble/aligned_buffer.hpp"
#include "cobble/isa.hpp"
#include "measured_kernels.hpp"

namespace {

using namespace cobble;
using namespace cobble::kernels;

constexpr std::int64_t kFeatures = 64;

/// Scores of a tile of size x size from transposed queries: inner product over the features.
template <class T>
void multiply(benchmark::State& state) {
  const std::int64_t size = state.range(0);
  const std::int64_t inner = state.range(1);
  const AlignedBuffer<T> a = random_buffer<T>(size * inner);
  const AlignedBuffer<T> b = random_buffer<T>(inner * size);
  AlignedBuffer<T> c(size * size);
  Product<T> product;
  product.rows = product.columns = size;
  product.inner = inner;
  product.a = a.data();
  product.a_stride = inner;
  product.b = b.data();
  product.b_stride = product.c_stride = size;
  product.c = c.data();
  for (auto step : state) {
    tile_kernels<T>().multiply(product);
    benchmark::ClobberMemory();
  }
  count(state, "flop/s", 2.0 * static_cast<double>(size * size * inner));
}

template <class T>
void transpose(benchmark::State& state) {
  const std::int64_t size = state.range(0);
  const AlignedBuffer<T> from = random_buffer<T>(size * kFeatures);
  AlignedBuffer<T> to(size * kFeatures);
  for (auto step : state) {
    tile_kernels<T>().transpose(size, kFeatures, T{1}, from.data(), kFeatures, 1, to.data(), size);
    benchmark::ClobberMemory();
  }
  count(state, "elements/s", static_cast<double>(size * kFeatures));
}

/// Online softmax of a full tile. The scores are written back each time, which costs a copy of the tile.
template <class T>
void online_softmax(benchmark::State& state) {
  const std::int64_t size = state.range(0);
  const AlignedBuffer<T> scores = random_buffer<T>(size * size);
  AlignedBuffer<T> values(size * size);
  AlignedBuffer<T> maximum(size);
  AlignedBuffer<T> sum(size);
  AlignedBuffer<T> rescale(size);
  DenseTile<T> tile;
  tile.queries = tile.keys = tile.stride = size;
  tile.values = values.data();
  for (auto step : state) {
    std::copy(scores.begin(), scores.end(), values.begin());
    std::fill(maximum.begin(), maximum.end(), T{-10});
    std::fill(sum.begin(), sum.end(), T{1});
    benchmark::DoNotOptimize(tile_kernels<T>().online_softmax(tile, maximum.data(), sum.data(), rescale.data()));
  }
  count(state, "exp/s", static_cast<double>(size * size));
}

/// dS from dP and P of a full tile.
template <class T>
void grad_scores(benchmark::State& state) {
  const std::int64_t size = state.range(0);
  const AlignedBuffer<T> gradients = random_buffer<T>(size * size);
  const AlignedBuffer<T> probability = random_buffer<T>(size * size);
  const AlignedBuffer<T> shift = random_buffer<T>(size);
  const AlignedBuffer<T> delta = random_buffer<T>(size);
  AlignedBuffer<T> values(size * size);
  DenseTile<T> tile;
  tile.queries = tile.keys = tile.stride = size;
  tile.values = values.data();
  for (auto step : state) {
    std::copy(gradients.begin(), gradients.end(), values.begin());
    tile_kernels<T>().grad_scores(tile, probability.data(), shift.data(), delta.data(), T{1});
    benchmark::ClobberMemory();
  }
  count(state, "pairs/s", static_cast<double>(size * size));
}

/// 64 rows of 256 pairs each with random keys: `keys` of them decide which cache serves.
template <class T>
struct RandomPairs {
  static constexpr std::int64_t kRows = 64;
  static constexpr std::int64_t kPairsPerRow = 256;

  explicit RandomPairs(std::int64_t key_count)
      : queries(random_buffer<T>(kRows * kFeatures)), keys(random_buffer<T>(key_count * kFeatures)) {
    std::mt19937 generator(2);
    std::uniform_int_distribution<std::int32_t> any(0, static_cast<std::int32_t>(key_count) - 1);
    for (std::int64_t row = 0; row <= kRows; ++row) offsets.push_back(static_cast<std::int32_t>(row * kPairsPerRow));
    for (std::int64_t pair = 0; pair < kRows * kPairsPerRow; ++pair) columns.push_back(any(generator));
  }

  PairTile tile() const { return {kRows, offsets.data(), columns.data()}; }
  static double pairs() { return static_cast<double>(kRows * kPairsPerRow); }

  AlignedBuffer<T> queries;
  AlignedBuffer<T> keys;
  std::vector<std::int32_t> offsets;
  std::vector<std::int32_t> columns;
  AlignedBuffer<T> values = random_buffer<T>(kRows * kPairsPerRow);
};

template <class T>
void pair_products(benchmark::State& state) {
  RandomPairs<T> pairs(state.range(0));
  for (auto step : state) {
    tile_kernels<T>().pair_products(pairs.tile(), kFeatures, T{1}, {pairs.queries.data(), kFeatures},
                                    {pairs.keys.data(), kFeatures}, pairs.values.data(), false);
    benchmark::ClobberMemory();
  }
  count(state, "pairs/s", pairs.pairs());
}

template <class T>
void pairs_to_rows(benchmark::State& state) {
  RandomPairs<T> pairs(state.range(0));
  for (auto step : state) {
    tile_kernels<T>().pairs_to_rows(pairs.tile(), kFeatures, T{1}, pairs.values.data(), {pairs.keys.data(), kFeatures},
                                    {pairs.queries.data(), kFeatures});
    benchmark::ClobberMemory();
  }
  count(state, "pairs/s", pairs.pairs());
}

template <class T>
void pairs_to_keys(benchmark::State& state) {
  RandomPairs<T> pairs(state.range(0));
  for (auto step : state) {
    tile_kernels<T>().pairs_to_keys(pairs.tile(), kFeatures, T{1}, pairs.values.data(),
                                    {pairs.queries.data(), kFeatures}, {pairs.keys.data(), kFeatures});
    benchmark::ClobberMemory();
  }
  count(state, "pairs/s", pairs.pairs());
}

template <class T>
void register_all(Isa chosen) {
  const auto add = [chosen](const char* name, void (*work)(benchmark::State&)) {
    return register_benchmark<T>(name, chosen, work);
  };
  add("multiply", multiply<T>)->Args({64, 64})->Args({128, 64})->Args({64, 128})->Args({64, 40});
  add("transpose", transpose<T>)->Arg(64);
  add("online_softmax", online_softmax<T>)->Arg(64);
  add("grad_scores", grad_scores<T>)->Arg(64);
  add("pair_products", pair_products<T>)->Arg(1024)->Arg(131072);
  add("pairs_to_rows", pairs_to_rows<T>)->Arg(1024)->Arg(131072);
  add("pairs_to_keys", pairs_to_keys<T>)->Arg(1024)->Arg(131072);
}

}  // namespace

int main(int argument_count, char** arguments) {
  return run_benchmarks(argument_count, arguments, [](Isa available) {
    register_all<float>(available);
    register_all<double>(available);
  });
}
