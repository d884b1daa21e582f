#include "problem_tensors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <type_traits>
#include <utility>
#include <vector>

#include "cobble/compressed_attention.hpp"
#include "cobble/error.hpp"
#include "cobble/files.hpp"
#include "compressed_inputs.hpp"
#include "progress.hpp"
#include "random.hpp"

namespace cobble::program {
namespace {

/// A size that flags and files must agree on.
class SharedSize {
 public:
  SharedSize(std::string name, std::string flag, std::optional<std::int64_t> given) : name_(std::move(name)) {
    if (given) settle(*given, flag);
  }

  /// Throws unless the size is still open or the same.
  void settle(std::int64_t size, const std::string& source) {
    if (size_ && *size_ != size) {
      throw Error(ErrorCode::shape_mismatch,
                  fmt::format("{}: {} from {}, but {} from {}", name_, size, source, *size_, source_));
    }
    if (!size_) source_ = source;
    size_ = size;
  }
  std::int64_t or_default(std::int64_t size) const { return size_.value_or(size); }

 private:
  std::string name_;
  std::optional<std::int64_t> size_;
  std::string source_;
};

/// A tensor file under the flag that names it.
template <class T>
struct TensorFile {
  std::string source;  ///< for messages
  std::size_t axes = 0;
  OwnedTensor<T> tensor;
  std::optional<Features<T>> compressed = {};  ///< then only the shape of the other
};

std::string join_sizes(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "a single number" : text;
}

/// `per_token` also accepts the shapes without features, (tokens) and (batch, heads, tokens).
template <class T>
TensorFile<T> read_tensor_file(const std::string& flag, const std::string& path, bool per_token) {
  TensorFile<T> file{flag + " " + path, 0, {}};
  if (path.empty()) return file;
  const Progress progress("reading " + path);
  NumpyArray<T> array = read_npy<T>(path);
  std::vector<std::int64_t> shape = array.shape;
  if (per_token && (shape.size() == 1 || shape.size() == 3)) shape.push_back(1);
  if (shape.size() == 2) {
    file.tensor.shape = {1, 1, shape[0], shape[1]};
  } else if (shape.size() == 4) {
    file.tensor.shape = {shape[0], shape[1], shape[2], shape[3]};
  } else {
    throw Error(
        ErrorCode::shape_mismatch,
        fmt::format("{}: the array is {}, expected {} or batch x heads x {}", file.source, join_sizes(array.shape),
                    per_token ? "tokens" : "tokens x features", per_token ? "tokens" : "tokens x features"));
  }
  file.axes = shape.size();
  file.tensor.values = std::move(array.values);
  return file;
}

/// The same, or a matrix in a file that is no .npy.
template <class T>
TensorFile<T> read_features_file(const std::string& flag, const std::string& path) {
  if (path.empty() || std::filesystem::path(path).extension() == ".npy") {
    return read_tensor_file<T>(flag, path, false);
  }
  if constexpr (std::is_floating_point_v<T>) {
    TensorFile<T> file{flag + " " + path, 2, {}};
    const Progress progress("reading " + path);
    Features<T> features = read_features<T>(path);
    if (FeaturesView<T>(features).storage() == FeatureStorage::dense) return read_tensor_file<T>(flag, path, false);
    file.tensor.shape = FeaturesView<T>(features).shape();
    file.compressed = std::move(features);
    return file;
  } else {
    throw Error(ErrorCode::unsupported, flag + " " + path + ": compressed features are f32 or f64");
  }
}

template <class T>
void require_tokens(const TensorFile<T>& file, std::int64_t tokens, const char* axis) {
  if (file.axes == 0 || file.tensor.shape.tokens == tokens) return;
  throw Error(ErrorCode::shape_mismatch, fmt::format("{}: {} tokens, but the pattern has {} {}", file.source,
                                                     file.tensor.shape.tokens, tokens, axis));
}

template <class T>
void settle(const TensorFile<T>& file, SharedSize& batch, SharedSize& heads, SharedSize* features) {
  if (file.axes == 0) return;
  batch.settle(file.tensor.shape.batch, file.source);
  heads.settle(file.tensor.shape.heads, file.source);
  if (features != nullptr) {
    features->settle(file.tensor.shape.features, file.source);
  } else if (file.tensor.shape.features != 1) {
    throw Error(ErrorCode::shape_mismatch,
                fmt::format("{}: {} numbers a token, expected 1", file.source, file.tensor.shape.features));
  }
}

template <class T>
OwnedTensor<T> take_or_fill(TensorFile<T> file, const TensorShape& shape, std::uint64_t seed, std::uint64_t stream) {
  if (file.axes != 0) return std::move(file.tensor);
  OwnedTensor<T> tensor{AlignedBuffer<T>(shape.size()), shape};
  fill_random(std::span<T>(tensor.values.data(), static_cast<std::size_t>(tensor.values.size())), seed, stream);
  return tensor;
}

/// Fills in a dense or a compressed input; `features` are kept of what is random.
template <class T>
void take_or_fill(TensorFile<T> file, const TensorShape& shape, const ProblemArguments& arguments,
                  std::optional<std::int64_t> features, std::uint64_t stream, OwnedTensor<T>& dense,
                  std::optional<Features<T>>& compressed) {
  if (file.compressed) {
    compressed = std::move(file.compressed);
  } else if (file.axes != 0 || !features) {
    dense = take_or_fill(std::move(file), shape, arguments.seed, stream);
  } else if constexpr (std::is_floating_point_v<T>) {
    compressed = random_features<T>(shape, *features, arguments.features.storage, arguments.seed, stream);
  } else {
    throw Error(ErrorCode::unsupported, "--features: compressed features are f32 or f64");
  }
}

}  // namespace

template <class T>
ProblemTensors<T> make_problem_tensors(const Pattern& pattern, const ProblemArguments& arguments) {
  SharedSize batch("batch", "--batch", arguments.batch);
  SharedSize heads("query heads", "--heads", arguments.heads);
  SharedSize kv_heads("key/value heads", "--kv-heads", arguments.kv_heads);
  SharedSize head_dim("head dimension", "--head-dim", arguments.head_dim);
  SharedSize value_dim("value dimension", "--value-dim", arguments.value_dim);

  auto query = read_features_file<T>("--query", arguments.query_file);
  require_tokens(query, pattern.rows(), "rows");
  settle(query, batch, heads, &head_dim);
  auto key = read_features_file<T>("--key", arguments.key_file);
  require_tokens(key, pattern.columns(), "columns");
  settle(key, batch, kv_heads, &head_dim);
  auto value = read_features_file<T>("--value", arguments.value_file);
  require_tokens(value, pattern.columns(), "columns");
  settle(value, batch, kv_heads, &value_dim);
  auto grad_output = read_tensor_file<T>("--grad-output", arguments.grad_output_file, false);
  require_tokens(grad_output, pattern.rows(), "rows");
  settle(grad_output, batch, heads, &value_dim);
  auto grad_lse = read_tensor_file<ComputeType<T>>("--grad-lse", arguments.grad_lse_file, true);
  require_tokens(grad_lse, pattern.rows(), "rows");
  settle(grad_lse, batch, heads, nullptr);

  ProblemTensors<T> tensors;
  Problem& problem = tensors.problem;
  problem.batch = batch.or_default(1);
  problem.query_heads = heads.or_default(kv_heads.or_default(1));
  problem.key_value_heads = kv_heads.or_default(problem.query_heads);
  problem.head_dim = head_dim.or_default(64);
  problem.value_dim = value_dim.or_default(problem.head_dim);

  tensors.matrices = std::max({query.axes, key.axes, value.axes, grad_output.axes, grad_lse.axes}) == 2;

  const TensorShape output_shape{problem.batch, problem.query_heads, pattern.rows(), problem.value_dim};
  take_or_fill(std::move(query), {problem.batch, problem.query_heads, pattern.rows(), problem.head_dim}, arguments,
               arguments.features.features, 1, tensors.query, tensors.compressed_query);
  take_or_fill(std::move(key), {problem.batch, problem.key_value_heads, pattern.columns(), problem.head_dim}, arguments,
               arguments.features.features, 2, tensors.key, tensors.compressed_key);
  take_or_fill(std::move(value), {problem.batch, problem.key_value_heads, pattern.columns(), problem.value_dim},
               arguments, {}, 3, tensors.value, tensors.compressed_value);
  tensors.grad_output = take_or_fill(std::move(grad_output), output_shape, arguments.seed, 4);
  if (grad_lse.axes != 0) tensors.grad_lse = std::move(grad_lse.tensor);
  if constexpr (std::is_same_v<T, ComputeType<T>>) {
    if (tensors.compressed()) {
      problem = with_entries<T>(problem, tensors.query_input().view(), tensors.key_input().view(),
                                tensors.value_input().view());
    }
  }
  return tensors;
}

template ProblemTensors<float> make_problem_tensors(const Pattern&, const ProblemArguments&);
template ProblemTensors<double> make_problem_tensors(const Pattern&, const ProblemArguments&);
template ProblemTensors<bfloat16> make_problem_tensors(const Pattern&, const ProblemArguments&);
template ProblemTensors<float16> make_problem_tensors(const Pattern&, const ProblemArguments&);

}  // namespace cobble::program
