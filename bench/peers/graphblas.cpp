// Attention composed of SuiteSparse:GraphBLAS's products: scores on the pattern by a masked product, softmax over the
// stored values, then products with a sparse matrix. A peer of `cobble bench`; bench/cobble/peers.hpp says how it is
// called.

// GraphBLAS.h must stand within extern "C", what it includes itself must not.
#include <cmath>
#include <complex>
#include <cstdbool>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
extern "C" {
#include <GraphBLAS.h>
}

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "cobble/files.hpp"
#include "statistics.hpp"

namespace {

using namespace cobble;
using program::measure;
using program::median;

void require(GrB_Info info, const char* function) {
  if (info != GrB_SUCCESS) throw std::runtime_error(std::string(function) + " returns " + std::to_string(info));
}

template <class T>
GrB_Type type_of() {
  return std::is_same_v<T, float> ? GrB_FP32 : GrB_FP64;
}
template <class T>
GrB_Semiring plus_times() {
  return std::is_same_v<T, float> ? GrB_PLUS_TIMES_SEMIRING_FP32 : GrB_PLUS_TIMES_SEMIRING_FP64;
}

class Matrix {
 public:
  Matrix() = default;
  Matrix(GrB_Type type, std::int64_t rows, std::int64_t columns) {
    require(GrB_Matrix_new(&matrix_, type, static_cast<GrB_Index>(rows), static_cast<GrB_Index>(columns)),
            "GrB_Matrix_new");
  }
  Matrix(Matrix&& other) noexcept { std::swap(matrix_, other.matrix_); }
  Matrix& operator=(Matrix&& other) noexcept {
    std::swap(matrix_, other.matrix_);
    return *this;
  }
  ~Matrix() { GrB_Matrix_free(&matrix_); }

  GrB_Matrix get() const { return matrix_; }

 private:
  GrB_Matrix matrix_ = nullptr;
};

/// rows x columns at `values`, copied.
template <class T>
Matrix dense_matrix(const T* values, std::int64_t rows, std::int64_t columns) {
  Matrix matrix(type_of<T>(), rows, columns);
  const auto bytes = static_cast<GrB_Index>(rows * columns) * sizeof(T);
  void* copy = std::malloc(std::max<std::size_t>(bytes, sizeof(T)));  // GraphBLAS frees it
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, values, bytes);
  require(GxB_Matrix_pack_FullR(matrix.get(), &copy, bytes, false, nullptr), "GxB_Matrix_pack_FullR");
  return matrix;
}

Matrix pattern_matrix(const CsrPattern& pattern) {
  Matrix matrix(GrB_BOOL, pattern.rows, pattern.columns);
  const std::vector<GrB_Index> columns(pattern.column_indices.begin(), pattern.column_indices.end());
  std::vector<GrB_Index> rows(columns.size());
  for (std::size_t row = 0; row + 1 < pattern.row_offsets.size(); ++row) {
    std::fill(rows.begin() + pattern.row_offsets[row], rows.begin() + pattern.row_offsets[row + 1], row);
  }
  GrB_Scalar yes = nullptr;
  require(GrB_Scalar_new(&yes, GrB_BOOL), "GrB_Scalar_new");
  require(GrB_Scalar_setElement_BOOL(yes, true), "GrB_Scalar_setElement");
  const GrB_Info info = GxB_Matrix_build_Scalar(matrix.get(), rows.data(), columns.data(), yes, rows.size());
  GrB_Scalar_free(&yes);
  require(info, "GxB_Matrix_build_Scalar");
  return matrix;
}

/// result<mask> = a b, with operands transposed as the descriptor says; finished when this returns.
template <class T>
void multiply(const Matrix& result, GrB_Matrix mask, const Matrix& a, const Matrix& b, GrB_Descriptor descriptor) {
  require(GrB_mxm(result.get(), mask, nullptr, plus_times<T>(), a.get(), b.get(), descriptor), "GrB_mxm");
  require(GrB_Matrix_wait(result.get(), GrB_MATERIALIZE), "GrB_Matrix_wait");
}

/// The arrays of a matrix by rows, with sorted columns, taken out of it and put back at the end. Iso values (all the
/// same, as of a pattern with one pair a row after softmax) are spread.
template <class T>
class Arrays {
 public:
  explicit Arrays(const Matrix& matrix) : matrix_(matrix) {
    bool iso = false;
    void* values = nullptr;
    require(GxB_Matrix_unpack_CSR(matrix.get(), &offsets_, &columns_, &values, &offsets_size_, &columns_size_,
                                  &values_size_, &iso, nullptr, nullptr),
            "GxB_Matrix_unpack_CSR");
    values_ = static_cast<T*>(values);
    if (iso) spread();
  }
  ~Arrays() {
    void* values = values_;
    GxB_Matrix_pack_CSR(matrix_.get(), &offsets_, &columns_, &values, offsets_size_, columns_size_, values_size_, false,
                        false, nullptr);
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  GrB_Index begin(std::int64_t row) const { return offsets_[row]; }
  GrB_Index end(std::int64_t row) const { return offsets_[row + 1]; }
  T* values() { return values_; }

 private:
  void spread() {
    const GrB_Index entries = columns_size_ / sizeof(GrB_Index);
    void* values = std::malloc(entries * sizeof(T));
    if (values == nullptr) throw std::bad_alloc();
    std::fill_n(static_cast<T*>(values), entries, values_[0]);
    std::free(values_);
    values_ = static_cast<T*>(values);
    values_size_ = entries * sizeof(T);
  }

  const Matrix& matrix_;
  GrB_Index* offsets_ = nullptr;
  GrB_Index* columns_ = nullptr;
  T* values_ = nullptr;
  GrB_Index offsets_size_ = 0;
  GrB_Index columns_size_ = 0;
  GrB_Index values_size_ = 0;
};

/// A dense copy; what is not stored is 0.
template <class T>
void copy_dense(const Matrix& matrix, std::int64_t columns, T* to, std::int64_t size) {
  GrB_Index entries = 0;
  require(GrB_Matrix_nvals(&entries, matrix.get()), "GrB_Matrix_nvals");
  std::vector<GrB_Index> row(entries);
  std::vector<GrB_Index> column(entries);
  std::vector<T> values(entries);
  if constexpr (std::is_same_v<T, float>) {
    require(GrB_Matrix_extractTuples_FP32(row.data(), column.data(), values.data(), &entries, matrix.get()),
            "GrB_Matrix_extractTuples");
  } else {
    require(GrB_Matrix_extractTuples_FP64(row.data(), column.data(), values.data(), &entries, matrix.get()),
            "GrB_Matrix_extractTuples");
  }
  std::fill_n(to, size, T{0});
  for (std::size_t i = 0; i < entries; ++i)
    to[static_cast<std::int64_t>(row[i]) * columns + static_cast<std::int64_t>(column[i])] = values[i];
}

/// One head.
template <class T>
struct Head {
  std::int64_t rows;
  std::int64_t columns;
  T scale;
  GrB_Matrix pattern;
  Matrix query;
  Matrix key;
  Matrix value;
  Matrix grad_output;
  Matrix probabilities;
  Matrix score_gradients;
  Matrix output;
  Matrix grad_query;
  Matrix grad_key;
  Matrix grad_value;

  void forward() {
    multiply<T>(probabilities, pattern, query, key, GrB_DESC_RST1);
    {
      Arrays<T> scores(probabilities);
      for (std::int64_t row = 0; row < rows; ++row) softmax(scores.values(), scores.begin(row), scores.end(row));
    }
    multiply<T>(output, nullptr, probabilities, value, nullptr);
  }

  void backward() {
    multiply<T>(grad_value, nullptr, probabilities, grad_output, GrB_DESC_T0);
    multiply<T>(score_gradients, pattern, grad_output, value, GrB_DESC_RST1);
    {
      Arrays<T> gradients(score_gradients);
      Arrays<T> weights(probabilities);
      for (std::int64_t row = 0; row < rows; ++row) {
        const T* p = weights.values();
        T* ds = gradients.values();
        T delta = 0;
        for (GrB_Index i = weights.begin(row); i < weights.end(row); ++i) delta += p[i] * ds[i];
        for (GrB_Index i = weights.begin(row); i < weights.end(row); ++i) ds[i] = scale * p[i] * (ds[i] - delta);
      }
    }
    multiply<T>(grad_query, nullptr, score_gradients, key, nullptr);
    multiply<T>(grad_key, nullptr, score_gradients, query, GrB_DESC_T0);
  }

 private:
  void softmax(T* values, GrB_Index begin, GrB_Index end) const {
    if (begin == end) return;
    const T largest = *std::max_element(values + begin, values + end);
    T sum = 0;
    for (GrB_Index i = begin; i < end; ++i) sum += values[i] = std::exp(scale * (values[i] - largest));
    for (GrB_Index i = begin; i < end; ++i) values[i] /= sum;
  }
};

template <class T>
void run(const std::filesystem::path& folder, const nlohmann::json& problem) {
  const Tensor<T> query = read_tensor<T>(folder / "query.npy");
  const Tensor<T> key = read_tensor<T>(folder / "key.npy");
  const Tensor<T> value = read_tensor<T>(folder / "value.npy");
  const Tensor<T> grad_output = read_tensor<T>(folder / "grad_output.npy");
  const Matrix pattern = pattern_matrix(read_pattern(folder / "pattern.npz").to_csr());
  const std::int64_t rows = query.shape().tokens;
  const std::int64_t columns = key.shape().tokens;
  const std::int64_t d = query.shape().features;
  const std::int64_t value_dim = value.shape().features;
  const GrB_Type type = type_of<T>();

  std::vector<Head<T>> heads;
  for (std::int64_t h = 0; h < query.shape().batch * query.shape().heads; ++h) {
    heads.push_back({rows, columns, problem.at("scale").get<T>(), pattern.get(),
                     dense_matrix(query.data() + h * rows * d, rows, d),
                     dense_matrix(key.data() + h * columns * d, columns, d),
                     dense_matrix(value.data() + h * columns * value_dim, columns, value_dim),
                     dense_matrix(grad_output.data() + h * rows * value_dim, rows, value_dim),
                     Matrix(type, rows, columns), Matrix(type, rows, columns), Matrix(type, rows, value_dim),
                     Matrix(type, rows, d), Matrix(type, columns, d), Matrix(type, columns, value_dim)});
  }
  const program::Repetition repetition{problem.at("seconds").get<double>()};
  nlohmann::json times;
  times["forward_ms"] = median(measure(repetition, [&] {
    for (Head<T>& head : heads) head.forward();
  }));
  times["backward_ms"] = median(measure(repetition, [&] {
    for (Head<T>& head : heads) head.backward();
  }));

  const auto save = [&](const char* name, const TensorShape& shape, Matrix Head<T>::*result) {
    Tensor<T> tensor(shape);
    const std::int64_t size = shape.tokens * shape.features;
    for (std::size_t h = 0; h < heads.size(); ++h) {
      copy_dense(heads[h].*result, shape.features, tensor.data() + static_cast<std::int64_t>(h) * size, size);
    }
    const std::span<const T> values = std::as_const(tensor).values();
    write_npy(folder / name, {"", {shape.batch, shape.heads, shape.tokens, shape.features}, values});
  };
  save("output.npy", grad_output.shape(), &Head<T>::output);
  save("grad_query.npy", query.shape(), &Head<T>::grad_query);
  save("grad_key.npy", key.shape(), &Head<T>::grad_key);
  save("grad_value.npy", value.shape(), &Head<T>::grad_value);
  std::printf("%s\n", times.dump().c_str());
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::fprintf(stderr, "usage: %s --version | FOLDER\n", arguments[0]);
    return 2;
  }
  if (std::string(arguments[1]) == "--version") {
    std::printf("%d.%d.%d\n", GxB_IMPLEMENTATION_MAJOR, GxB_IMPLEMENTATION_MINOR, GxB_IMPLEMENTATION_SUB);
    return 0;
  }
  try {
    require(GrB_init(GrB_BLOCKING), "GrB_init");
    const std::filesystem::path folder = arguments[1];
    const nlohmann::json problem = nlohmann::json::parse(std::ifstream(folder / "problem.json"));
    require(GxB_Global_Option_set_INT32(GxB_GLOBAL_NTHREADS, problem.at("threads").get<int>()),
            "GxB_Global_Option_set_INT32");
    problem.at("dtype") == "f64" ? run<double>(folder, problem) : run<float>(folder, problem);
    GrB_finalize();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
