#include "dense_openblas.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "statistics.hpp"

namespace cobble::program {
namespace {

template <class T>
class DenseAttention {
 public:
  DenseAttention(const OpenBlas& openblas, const Passes<T>& passes, PeerTensors<T>& results)
      : openblas_(openblas),
        tensors_(passes.tensors()),
        results_(results),
        rows_(passes.pattern().rows()),
        columns_(passes.pattern().columns()),
        mask_(rows_ * columns_),
        probabilities_(tensors_.problem.batch * tensors_.problem.query_heads * rows_ * columns_),
        score_gradients_(rows_ * columns_) {
    std::fill(mask_.begin(), mask_.end(), std::uint8_t{0});
    std::vector<ColumnRun> runs;
    for (std::int64_t row = 0; row < rows_; ++row) {
      runs.clear();
      passes.pattern().append_runs(row, 0, columns_, runs);
      for (const ColumnRun& run : runs) {
        std::fill(mask_.data() + row * columns_ + run.begin, mask_.data() + row * columns_ + run.end, std::uint8_t{1});
      }
    }
  }

  void forward() {
    for_each_head([this](const Head& head) {
      openblas_.multiply({false, true, rows_, columns_, d()}, scale(), head.query, head.key, T{0}, head.probabilities);
      for_each_row(
          [&](std::int64_t row) { softmax(head.probabilities + row * columns_, mask_.data() + row * columns_); });
      openblas_.multiply({false, false, rows_, value_dim(), columns_}, T{1}, head.probabilities, head.value, T{0},
                         head.output);
    });
  }

  void backward() {
    for_each_head([this](const Head& head) {
      T* const gradients = score_gradients_.data();
      openblas_.multiply({true, false, columns_, value_dim(), rows_}, T{1}, head.probabilities, head.grad_output, T{0},
                         head.grad_value);
      openblas_.multiply({false, true, rows_, columns_, value_dim()}, T{1}, head.grad_output, head.value, T{0},
                         gradients);
      for_each_row([&](std::int64_t row) {
        const T delta =
            (Map(head.grad_output + row * value_dim(), value_dim()) * Map(head.output + row * value_dim(), value_dim()))
                .sum();
        Map gradient(gradients + row * columns_, columns_);
        gradient = Map(head.probabilities + row * columns_, columns_) * (gradient - delta);
      });
      openblas_.multiply({false, false, rows_, d(), columns_}, scale(), gradients, head.key, T{0}, head.grad_query);
      openblas_.multiply({true, false, columns_, d(), rows_}, scale(), gradients, head.query, T{0}, head.grad_key);
    });
  }

 private:
  using Map = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;

  struct Head {
    const T* query;
    const T* key;
    const T* value;
    T* output;
    T* grad_output;
    T* probabilities;
    T* grad_query;
    T* grad_key;
    T* grad_value;
  };

  std::int64_t d() const { return tensors_.problem.head_dim; }
  std::int64_t value_dim() const { return tensors_.problem.value_dim; }
  T scale() const { return static_cast<T>(tensors_.problem.scale.value_or(1 / std::sqrt(static_cast<double>(d())))); }

  template <class Work>
  void for_each_head(const Work& work) {
    const std::int64_t heads = tensors_.problem.batch * tensors_.problem.query_heads;
    for (std::int64_t h = 0; h < heads; ++h) {
      work(Head{
          tensors_.query.values.data() + h * rows_ * d(), tensors_.key.values.data() + h * columns_ * d(),
          tensors_.value.values.data() + h * columns_ * value_dim(), results_.output.data() + h * rows_ * value_dim(),
          const_cast<T*>(tensors_.grad_output.values.data()) + h * rows_ * value_dim(),  // Map is of mutable ones
          probabilities_.data() + h * rows_ * columns_, results_.grad_query.data() + h * rows_ * d(),
          results_.grad_key.data() + h * columns_ * d(), results_.grad_value.data() + h * columns_ * value_dim()});
    }
  }

  template <class Work>
  void for_each_row(const Work& work) {
    tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, rows_, 16), [&work](const auto& range) {
      for (std::int64_t row = range.begin(); row != range.end(); ++row) work(row);
    });
  }

  void softmax(T* scores, const std::uint8_t* mask) const {
    Map row(scores, columns_);
    T largest = std::numeric_limits<T>::lowest();
    for (std::int64_t j = 0; j < columns_; ++j) largest = std::max(largest, mask[j] != 0 ? scores[j] : largest);
    // Masked ones become 1 and then 0: Eigen's exp makes a denormal number of -infinity, and is slow about it.
    for (std::int64_t j = 0; j < columns_; ++j) scores[j] = mask[j] != 0 ? scores[j] - largest : T{0};
    row = row.exp();
    for (std::int64_t j = 0; j < columns_; ++j) scores[j] = mask[j] != 0 ? scores[j] : T{0};
    const T sum = row.sum();
    if (sum > 0) row *= 1 / sum;  // a row without pairs stays 0
  }

  const OpenBlas& openblas_;
  const ProblemTensors<T>& tensors_;
  PeerTensors<T>& results_;
  std::int64_t rows_;
  std::int64_t columns_;
  AlignedBuffer<std::uint8_t> mask_;
  AlignedBuffer<T> probabilities_;
  AlignedBuffer<T> score_gradients_;
};

}  // namespace

template <class T>
PeerTimes run_dense_openblas(const OpenBlas& openblas, const Passes<T>& passes, int threads, double seconds,
                             PeerTensors<T>& results) {
  openblas.set_threads(threads);
  DenseAttention<T> attention(openblas, passes, results);
  PeerTimes times;
  times.forward_ms = median(measure({seconds}, [&] { attention.forward(); }));
  times.backward_ms = median(measure({seconds}, [&] { attention.backward(); }));
  return times;
}

template PeerTimes run_dense_openblas(const OpenBlas&, const Passes<float>&, int, double, PeerTensors<float>&);
template PeerTimes run_dense_openblas(const OpenBlas&, const Passes<double>&, int, double, PeerTensors<double>&);

}  // namespace cobble::program
