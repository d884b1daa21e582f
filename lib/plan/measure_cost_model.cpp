#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "cobble/aligned_buffer.hpp"
#include "cobble/cost_model.hpp"
#include "cobble/error.hpp"
#include "cobble/fast_memory.hpp"
#include "core/checked.hpp"
#include "kernels/tile_kernels.hpp"

namespace cobble {
namespace {

/// The median time of a call, in seconds, of some within about a hundredth of a second.
template <class Call>
double median_seconds(Call&& call) {
  using Clock = std::chrono::steady_clock;
  call();
  std::vector<double> times;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(8);
  while (times.size() < 3 || (Clock::now() < end && times.size() < 1000)) {
    const Clock::time_point begin = Clock::now();
    call();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return std::max(times[times.size() / 2], 1e-9);
}

template <class T>
AlignedBuffer<T> filled(std::int64_t size) {
  AlignedBuffer<T> buffer(size);
  std::fill_n(buffer.data(), size, T{0.5});
  return buffer;
}

template <class T>
class Measurement {
 public:
  explicit Measurement(std::int64_t features) : features_(round_up(features, kernels::kPaddedElements)) {}

  double dense_flop_per_second() const {
    const AlignedBuffer<T> keys = filled<T>(kKeys * features_);
    const AlignedBuffer<T> queries = filled<T>(kRows * features_);
    AlignedBuffer<T> tile(kKeys * kRows);
    const double seconds = median_seconds([&] {
      kernels_.multiply({.rows = kKeys,
                         .columns = kRows,
                         .inner = features_,
                         .a = keys.data(),
                         .a_stride = features_,
                         .b = queries.data(),
                         .b_stride = kRows,
                         .c = tile.data(),
                         .c_stride = kRows});
    });
    return 2.0 * static_cast<double>(kKeys * kRows * features_) / seconds;
  }

  double exponential_per_second() const {
    AlignedBuffer<T> tile = filled<T>(kKeys * kRows);
    const AlignedBuffer<T> shift = filled<T>(kRows);
    const kernels::DenseTile<T> dense = {.queries = kRows, .keys = kKeys, .values = tile.data(), .stride = kRows};
    return static_cast<double>(kKeys * kRows) / median_seconds([&] { kernels_.probabilities(dense, shift.data()); });
  }

  /// With a panel of keys of so many bytes, each row's pairs spread over it: what forward and backward do to a pair.
  double pair_flop_per_second(std::int64_t panel_bytes) const {
    constexpr std::int64_t kPairsOfRow = 32;
    const std::int64_t panel =
        std::max<std::int64_t>(1, panel_bytes / static_cast<std::int64_t>(sizeof(T)) / features_);
    std::vector<std::int32_t> offsets = {0};
    std::vector<std::int32_t> columns;
    std::uint64_t state = 1;
    // As many as make it likely that a call finds nothing of the one before in a smaller cache.
    constexpr std::int64_t kMostRows = 1 << 14;
    const std::int64_t count = std::clamp(panel / kPairsOfRow, kRows, kMostRows);
    for (std::int64_t row = 0; row < count; ++row) {
      const auto first = static_cast<std::int64_t>(columns.size());
      for (std::int64_t pair = 0; pair < kPairsOfRow; ++pair) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        columns.push_back(static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(panel)));
      }
      std::sort(columns.begin() + first, columns.end());
      offsets.push_back(static_cast<std::int32_t>(columns.size()));
    }
    const kernels::PairTile pairs = {count, offsets.data(), columns.data()};
    AlignedBuffer<T> keys = filled<T>(panel * features_);
    AlignedBuffer<T> rows = filled<T>(count * features_);
    AlignedBuffer<T> values = filled<T>(count * kPairsOfRow);
    const kernels::FeatureRows<const T> key_rows = {keys.data(), features_};
    const kernels::FeatureRows<const T> row_rows = {rows.data(), features_};
    const auto products = [&] {
      kernels_.pair_products(pairs, features_, T{1}, row_rows, key_rows, values.data(), false);
    };
    const auto to_rows = [&] {
      kernels_.pairs_to_rows(pairs, features_, T{0}, values.data(), key_rows, {rows.data(), features_});
    };
    const auto to_keys = [&] {
      kernels_.pairs_to_keys(pairs, features_, T{0}, values.data(), row_rows, {keys.data(), features_});
    };
    // S and O; S, dP, dQ, dK and dV.
    const double seconds = 3 * median_seconds(products) + 2 * median_seconds(to_rows) + 2 * median_seconds(to_keys);
    return 7 * 2.0 * static_cast<double>(count * kPairsOfRow * features_) / seconds;
  }

 private:
  static constexpr std::int64_t kRows = 64;
  static constexpr std::int64_t kKeys = 128;

  const kernels::TileKernels<T>& kernels_ = kernels::tile_kernels<T>();
  std::int64_t features_;
};

double copied_bytes_per_second() {
  constexpr std::int64_t kBytes = 32 << 20;
  const AlignedBuffer<double> from = filled<double>(kBytes / 8);
  AlignedBuffer<double> to = filled<double>(kBytes / 8);
  return 2.0 * kBytes / median_seconds([&] { std::copy_n(from.data(), kBytes / 8, to.data()); });
}

template <class T>
CostModel measure(std::int64_t features) {
  const Measurement<T> measurement(features);
  CostModel model;
  std::int64_t middle_bytes = default_fast_memory_bytes();
  for (const CacheLevel& level : cache_levels()) {
    if (level.level == 1) model.near_bytes = level.bytes_per_core() * 5 / 6;
    if (level.level == 3) model.far_bytes = level.bytes / 2;
  }
  model.dense_flop_per_second = measurement.dense_flop_per_second();
  model.exponential_per_second = measurement.exponential_per_second();
  model.near_pair_flop_per_second = measurement.pair_flop_per_second(model.near_bytes);
  model.middle_pair_flop_per_second = measurement.pair_flop_per_second(middle_bytes);
  // Of keys, values and both gradients one at a time; what is twice as large as the last cache is in none.
  model.far_pair_flop_per_second = measurement.pair_flop_per_second(std::max(model.far_bytes / 2, 4 * middle_bytes));
  constexpr std::int64_t kMostBytes = 256 << 20;
  model.memory_pair_flop_per_second = measurement.pair_flop_per_second(std::min(4 * model.far_bytes, kMostBytes));
  model.bytes_per_second = copied_bytes_per_second();
  return model;
}

}  // namespace

CostModel measure_cost_model(std::int64_t element_bytes, std::int64_t features) {
  if (features < 1 || features > 65536) {
    throw Error(ErrorCode::invalid_argument,
                "features = " + std::to_string(features) + ", expected one to 65536 to measure with");
  }
  if (element_bytes == static_cast<std::int64_t>(sizeof(double))) return measure<double>(features);
  if (element_bytes == static_cast<std::int64_t>(sizeof(float))) return measure<float>(features);
  throw Error(ErrorCode::invalid_argument,
              "element_bytes = " + std::to_string(element_bytes) + ", expected 4 or 8 to measure with");
}

}  // namespace cobble
