#include "compressed_inputs.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cobble/convert.hpp"
#include "random.hpp"

namespace cobble::program {
namespace {

constexpr std::int64_t kBlock = 16;
constexpr std::int64_t kPiece = 1024;  ///< tokens that are made together; whole blocks

template <class T>
void append(CsrMatrix<T>& matrix, const CsrMatrix<T>& piece) {
  const std::int64_t before = matrix.row_offsets.back();
  for (std::size_t row = 1; row < piece.row_offsets.size(); ++row) {
    matrix.row_offsets.push_back(before + piece.row_offsets[row]);
  }
  matrix.column_indices.insert(matrix.column_indices.end(), piece.column_indices.begin(), piece.column_indices.end());
  matrix.values.insert(matrix.values.end(), piece.values.begin(), piece.values.end());
  matrix.rows += piece.rows;
  matrix.columns = piece.columns;
}

template <class T>
void append(BsrMatrix<T>& matrix, const BsrMatrix<T>& piece) {
  const std::int64_t before = matrix.block_row_offsets.back();
  for (std::size_t row = 1; row < piece.block_row_offsets.size(); ++row) {
    matrix.block_row_offsets.push_back(before + piece.block_row_offsets[row]);
  }
  matrix.block_column_indices.insert(matrix.block_column_indices.end(), piece.block_column_indices.begin(),
                                     piece.block_column_indices.end());
  matrix.values.insert(matrix.values.end(), piece.values.begin(), piece.values.end());
  matrix.rows += piece.rows;
  matrix.columns = piece.columns;
  matrix.block_rows = piece.block_rows;
  matrix.block_columns = piece.block_columns;
}

/// One compressed tensor, piece by piece of its tokens. compress(dense piece) -> tensor of one matrix.
template <class Matrix, class T, class Compress>
CompressedTensor<Matrix> random_compressed(const TensorShape& shape, std::uint64_t seed, std::uint64_t stream,
                                           Compress compress) {
  constexpr std::uint64_t kStreams = 16;  // of the dense tensors
  std::vector<Matrix> matrices(static_cast<std::size_t>(shape.batch * shape.heads));
  std::uint64_t piece = 0;
  for (Matrix& matrix : matrices) {
    matrix.columns = shape.features;
    for (std::int64_t begin = 0; begin < shape.tokens; begin += kPiece, ++piece) {
      Tensor<T> dense({1, 1, std::min(kPiece, shape.tokens - begin), shape.features});
      fill_random(dense.values(), seed, stream + kStreams * (piece + 1));
      append(matrix, compress(dense.view()).at(0, 0));
    }
  }
  return {std::move(matrices), shape.batch, shape.heads};
}

template <class T>
Tensor<T> in_full(const ProblemInput<T>& input) {
  if (!input.compressed) {
    Tensor<T> copy(input.dense->shape);
    std::copy_n(input.dense->values.data(), input.dense->values.size(), copy.data());
    return copy;
  }
  if (const auto* csr = std::get_if<CsrTensor<T>>(input.compressed)) return to_dense(*csr);
  return to_dense(std::get<BsrTensor<T>>(*input.compressed));
}

/// Overwrites what the compressed tensor stores.
template <class T>
void overwrite(Tensor<T>& tensor, const Features<T>& features) {
  const auto write_rows = [&](const auto& compressed) {
    for (std::int64_t b = 0; b < tensor.shape().batch; ++b) {
      for (std::int64_t h = 0; h < tensor.shape().heads; ++h) {
        const CsrMatrix<T> rows = [&] {
          if constexpr (std::is_same_v<std::decay_t<decltype(compressed)>, BsrTensor<T>>) {
            return to_csr(compressed.at(b, h).view());
          } else {
            return compressed.at(b, h);
          }
        }();
        for (std::int64_t row = 0; row < rows.rows; ++row) {
          for (auto k = static_cast<std::size_t>(rows.row_offsets[static_cast<std::size_t>(row)]);
               k < static_cast<std::size_t>(rows.row_offsets[static_cast<std::size_t>(row) + 1]); ++k) {
            tensor(b, h, row, rows.column_indices[k]) = rows.values[k];
          }
        }
      }
    }
  };
  if (const auto* csr = std::get_if<CsrTensor<T>>(&features)) {
    write_rows(*csr);
  } else {
    write_rows(std::get<BsrTensor<T>>(features));
  }
}

/// A copy of a compressed input to hold its gradient, and where its values are.
template <class T>
FeatureGradientView<T> prepare_gradient(const ProblemInput<T>& input, std::optional<Features<T>>& gradient,
                                        Tensor<T>& dense) {
  if (!input.compressed) return dense.view();
  std::vector<std::span<T>> values;
  const auto copy = [&](auto tensor) {
    gradient.emplace(std::move(tensor));
    auto& copied = std::get<decltype(tensor)>(*gradient);
    for (std::int64_t b = 0; b < copied.shape().batch; ++b) {
      for (std::int64_t h = 0; h < copied.shape().heads; ++h) {
        values.push_back(copied.values(b, h));
        std::fill(values.back().begin(), values.back().end(), T{0});
      }
    }
  };
  if (const auto* csr = std::get_if<CsrTensor<T>>(input.compressed)) {
    copy(*csr);
  } else {
    copy(std::get<BsrTensor<T>>(*input.compressed));
  }
  return values;
}

}  // namespace

template <class T>
Features<T> random_features(const TensorShape& shape, std::int64_t kept, const std::string& storage, std::uint64_t seed,
                            std::uint64_t stream) {
  require_features({kept, storage}, shape.features);
  if (storage == "bsr") {
    const std::int64_t width = std::gcd(kept, kBlock);
    return random_compressed<BsrMatrix<T>, T>(shape, seed, stream, [&](const TensorView<const T>& piece) {
      return compress_top_k_blocks<T>(piece, kept / width, kBlock, static_cast<std::int32_t>(width));
    });
  }
  return random_compressed<CsrMatrix<T>, T>(
      shape, seed, stream, [&](const TensorView<const T>& piece) { return compress_top_k<T>(piece, kept); });
}

template <class T>
double entries_per_token(const ProblemInput<T>& input) {
  const FeaturesView<T> view = input.view();
  const TensorShape& shape = view.shape();
  const auto tokens = static_cast<double>(shape.batch * shape.heads * shape.tokens);
  return tokens > 0 ? static_cast<double>(view.nnz()) / tokens : 0;
}

template <class T>
std::int64_t storage_bytes(const ProblemInput<T>& input) {
  if (!input.compressed) return input.dense->shape.size() * static_cast<std::int64_t>(sizeof(T));
  const auto bytes_of = [](const auto& array) { return static_cast<std::int64_t>(array.size_bytes()); };
  std::int64_t bytes = 0;
  const FeaturesView<T> view = input.view();
  if (view.storage() == FeatureStorage::csr) {
    for (const CsrView<T>& matrix : view.csr().matrices()) {
      bytes += bytes_of(matrix.row_offsets) + bytes_of(matrix.column_indices) + bytes_of(matrix.values);
    }
  } else {
    for (const BsrView<T>& matrix : view.bsr().matrices()) {
      bytes += bytes_of(matrix.block_row_offsets) + bytes_of(matrix.block_column_indices) + bytes_of(matrix.values);
    }
  }
  return bytes;
}

template <class T>
ProblemTensors<T> densified(const ProblemTensors<T>& tensors) {
  const auto copy = [](const T* values, const TensorShape& shape) {
    OwnedTensor<T> owned{AlignedBuffer<T>(shape.size()), shape};
    std::copy_n(values, shape.size(), owned.values.data());
    return owned;
  };
  const auto full = [&copy](const ProblemInput<T>& input) {
    const Tensor<T> tensor = in_full(input);
    return copy(tensor.data(), tensor.shape());
  };
  ProblemTensors<T> result;
  result.problem = tensors.problem;
  result.query = full(tensors.query_input());
  result.key = full(tensors.key_input());
  result.value = full(tensors.value_input());
  result.grad_output = copy(tensors.grad_output.values.data(), tensors.grad_output.shape);
  if (tensors.grad_lse.values.size() > 0) {
    result.grad_lse = copy(tensors.grad_lse.values.data(), tensors.grad_lse.shape);
  }
  result.matrices = tensors.matrices;
  return result;
}

template <class T>
CompressedRun<T>::CompressedRun(const ProblemTensors<T>& tensors, Gradients<T>& gradients)
    : tensors_(tensors), gradients_(gradients) {
  view_.query = prepare_gradient(tensors.query_input(), query_, gradients.query);
  view_.key = prepare_gradient(tensors.key_input(), key_, gradients.key);
  view_.value = prepare_gradient(tensors.value_input(), value_, gradients.value);
  if (gradients.bias.data() != nullptr) view_.bias = gradients.bias.view();
  view_.sinks = gradients.sinks.values();
}

template <class T>
void CompressedRun<T>::forward(const Plan& plan, AttentionView<T> result, Workspace& workspace,
                               const ScoreTerms<T>& terms) const {
  cobble::forward<T>(plan, tensors_.query_input().view(), tensors_.key_input().view(), tensors_.value_input().view(),
                     result, workspace, terms);
}

template <class T>
void CompressedRun<T>::backward(const Plan& plan, const Attention<T>& result, Workspace& workspace,
                                const BackwardOptions<T>& options) const {
  cobble::backward<T>(plan, tensors_.query_input().view(), tensors_.key_input().view(), tensors_.value_input().view(),
                      result, tensors_.grad_output.view(), view_, workspace, options);
}

template <class T>
CheckResult CompressedRun<T>::check(const Plan& plan, const Pattern& pattern, const Attention<T>& result,
                                    const BackwardOptions<T>& options, std::uint64_t seed,
                                    std::int64_t full_check_tokens) const {
  const Tensor<T> query = in_full(tensors_.query_input());
  const Tensor<T> key = in_full(tensors_.key_input());
  const Tensor<T> value = in_full(tensors_.value_input());
  Gradients<T> full{Tensor<T>(query.shape()), Tensor<T>(key.shape()), Tensor<T>(value.shape())};
  Workspace workspace;
  cobble::backward<T>(plan, tensors_.query_input().view(), tensors_.key_input().view(), tensors_.value_input().view(),
                      result, tensors_.grad_output.view(),
                      FeatureGradientsView<T>{full.query.view(), full.key.view(), full.value.view()}, workspace,
                      options);
  const auto take = [](Tensor<T>& to, const std::optional<Features<T>>& compressed, const Tensor<T>& dense) {
    if (compressed) return overwrite(to, *compressed);
    std::copy(dense.values().begin(), dense.values().end(), to.values().begin());
  };
  take(full.query, query_, gradients_.query);
  take(full.key, key_, gradients_.key);
  take(full.value, value_, gradients_.value);
  GradientsView<const T> view = std::as_const(full).view();
  const GradientsView<const T> of_terms = std::as_const(gradients_).view();
  view.bias = of_terms.bias;
  view.sinks = of_terms.sinks;
  return check_against_reference<T>({pattern, query.view(), key.view(), value.view(), tensors_.grad_output.view(),
                                     tensors_.grad_lse.view(), plan.problem().scale, options.terms},
                                    result, view, seed, full_check_tokens);
}

template <class T>
void CompressedRun<T>::add_arrays(std::vector<NamedArray>& arrays) {
  saved_integers_.reserve(9);  // spans of them are kept
  saved_values_.reserve(3);
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, auto values, auto& store) {
    store.push_back(std::move(values));
    arrays.push_back({name, std::move(shape), std::span(std::as_const(store.back()))});
  };
  const auto add_rows = [&](const std::string& name, std::vector<std::int64_t> data_shape, std::vector<T> values,
                            std::vector<std::int64_t> indices, std::vector<std::int64_t> offsets,
                            const TensorShape& shape) {
    data_shape.insert(data_shape.begin(), std::ssize(indices));
    add(name + "_data", std::move(data_shape), std::move(values), saved_values_);
    const auto add_integers = [&](const char* what, std::vector<std::int64_t> integers) {
      const std::int64_t count = std::ssize(integers);
      add(name + what, {count}, std::move(integers), saved_integers_);
    };
    add_integers("_indices", std::move(indices));
    add_integers("_indptr", std::move(offsets));
    add_integers("_shape", {shape.batch * shape.heads * shape.tokens, shape.features});
  };
  const auto add_csr = [&](const std::string& name, const auto& tensor) {
    CsrMatrix<T> all;
    for (const auto& matrix : tensor.matrices()) {
      if constexpr (std::is_same_v<std::decay_t<decltype(matrix)>, BsrMatrix<T>>) {
        append(all, to_csr(matrix.view()));
      } else {
        append(all, matrix);
      }
    }
    add_rows(name, {}, std::move(all.values), {all.column_indices.begin(), all.column_indices.end()},
             std::move(all.row_offsets), tensor.shape());
  };
  const auto add_gradient = [&](const std::string& name, const std::optional<Features<T>>& gradient) {
    if (!gradient) return;
    if (const auto* csr = std::get_if<CsrTensor<T>>(&*gradient)) return add_csr(name, *csr);
    const auto& blocks = std::get<BsrTensor<T>>(*gradient);
    const BsrMatrix<T>& first = blocks.matrices().front();
    if (blocks.shape().tokens % first.block_rows != 0 || blocks.shape().features % first.block_columns != 0) {
      return add_csr(name, blocks);
    }
    BsrMatrix<T> all;
    for (const BsrMatrix<T>& matrix : blocks.matrices()) append(all, matrix);
    add_rows(name, {all.block_rows, all.block_columns}, std::move(all.values),
             {all.block_column_indices.begin(), all.block_column_indices.end()}, std::move(all.block_row_offsets),
             blocks.shape());
  };
  add_gradient("grad_query", query_);
  add_gradient("grad_key", key_);
  add_gradient("grad_value", value_);
}

#define COBBLE_INSTANTIATE(T)                                                                               \
  template Features<T> random_features(const TensorShape&, std::int64_t, const std::string&, std::uint64_t, \
                                       std::uint64_t);                                                      \
  template double entries_per_token(const ProblemInput<T>&);                                                \
  template std::int64_t storage_bytes(const ProblemInput<T>&);                                              \
  template ProblemTensors<T> densified(const ProblemTensors<T>&);                                           \
  template class CompressedRun<T>;
COBBLE_INSTANTIATE(float)
COBBLE_INSTANTIATE(double)
#undef COBBLE_INSTANTIATE
template double entries_per_token(const ProblemInput<bfloat16>&);
template double entries_per_token(const ProblemInput<float16>&);
template std::int64_t storage_bytes(const ProblemInput<bfloat16>&);
template std::int64_t storage_bytes(const ProblemInput<float16>&);

}  // namespace cobble::program
