#include "yardstick.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include "random.hpp"
#include "statistics.hpp"

namespace cobble::program {

template <class T>
struct Yardstick::Matrices {
  AlignedBuffer<T> a{kGemmSize * kGemmSize};
  AlignedBuffer<T> b{kGemmSize * kGemmSize};
  AlignedBuffer<T> c{kGemmSize * kGemmSize};
};

Yardstick::Yardstick() : cleared_environment_(clear_openblas_environment()), openblas_(OpenBlas::load()) {
  if (!openblas_) return;
  const std::optional<std::string> core = better_openblas_core(openblas_->core());
  std::unique_ptr<OpenBlas> better = core ? OpenBlas::load_again(*core) : nullptr;
  if (!better) return;
  detected_ = std::move(openblas_);
  openblas_ = std::move(better);
}
Yardstick::~Yardstick() = default;

std::vector<double> Yardstick::gemm_gflops(const std::string& dtype, int threads, int count) {
  if (!openblas_) return {};
  return dtype == "f64" ? rates(*openblas_, double_matrices_, threads, count)
                        : rates(*openblas_, float_matrices_, threads, count);
}

std::optional<double> Yardstick::detected_gemm_gflops(const std::string& dtype, int threads, int count) {
  const OpenBlas* openblas = detected_openblas();
  if (openblas == nullptr) return std::nullopt;
  return median(dtype == "f64" ? rates(*openblas, double_matrices_, threads, count)
                               : rates(*openblas, float_matrices_, threads, count));
}

template <class T>
std::vector<double> Yardstick::rates(const OpenBlas& openblas, std::unique_ptr<Matrices<T>>& matrices, int threads,
                                     int count) {
  openblas.set_threads(threads);
  const auto product = [&] {
    openblas.multiply({false, false, kGemmSize, kGemmSize, kGemmSize}, T{1}, matrices->a.data(), matrices->b.data(),
                      T{0}, matrices->c.data());
  };
  if (!matrices) {
    matrices = std::make_unique<Matrices<T>>();
    const auto fill = [](AlignedBuffer<T>& buffer, std::uint64_t stream) {
      fill_random(std::span<T>(buffer.data(), static_cast<std::size_t>(buffer.size())), 0, stream);
    };
    fill(matrices->a, 1);
    fill(matrices->b, 2);
    product();
  }
  constexpr double kFlop = 2.0 * kGemmSize * kGemmSize * kGemmSize;
  std::vector<double> gflops;
  for (int i = 0; i < count; ++i) gflops.push_back(kFlop / (milliseconds_of(product) * 1e6));
  // OpenBLAS's threads look for work for 2^26 cycles before they sleep.
  if (threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(60));
  return gflops;
}

double copy_bytes_per_second() {
  constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  constexpr int kRepetitions = 5;
  AlignedBuffer<std::uint8_t> from(kBytes);
  AlignedBuffer<std::uint8_t> to(kBytes);
  const std::int64_t parts = tbb::this_task_arena::max_concurrency();
  const auto part_begin = [parts](std::int64_t part) { return kBytes / parts * part; };
  const auto in_parallel = [&](const auto& work) {
    tbb::parallel_for(std::int64_t{0}, parts, [&](std::int64_t part) {
      const std::int64_t begin = part_begin(part);
      work(begin, static_cast<std::size_t>((part + 1 == parts ? kBytes : part_begin(part + 1)) - begin));
    });
  };
  in_parallel([&](std::int64_t begin, std::size_t size) {
    std::memset(from.data() + begin, 1, size);
    std::memset(to.data() + begin, 2, size);
  });
  double best_ms = 0;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const double ms = milliseconds_of([&] {
      in_parallel(
          [&](std::int64_t begin, std::size_t size) { std::memcpy(to.data() + begin, from.data() + begin, size); });
    });
    best_ms = repetition == 0 ? ms : std::min(best_ms, ms);
  }
  return 2.0 * static_cast<double>(kBytes) / (best_ms * 1e-3);
}

}  // namespace cobble::program
