#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cobble/compressed.hpp"
#include "cobble/convert.hpp"
#include "cobble/error.hpp"
#include "cobble/files.hpp"
#include "files/entries.hpp"
#include "files/file_bytes.hpp"
#include "files/file_format.hpp"
#include "files/numpy_array.hpp"
#include "files/scipy_npz.hpp"

namespace cobble {
namespace {

template <class T>
std::vector<T> rounded(std::vector<double> values) {
  if constexpr (std::is_same_v<T, double>) {
    return values;
  } else {
    std::vector<T> result(values.size());
    std::transform(values.begin(), values.end(), result.begin(), [](double value) { return static_cast<T>(value); });
    return result;
  }
}

template <class T>
CsrTensor<T> csr_features(CsrMatrix<double> matrix) {
  std::vector<T> values = rounded<T>(std::move(matrix.values));
  return CsrTensor<T>(CsrMatrix<T>{static_cast<CsrPattern&&>(matrix), std::move(values)});
}

template <class T>
BsrTensor<T> bsr_features(BsrMatrix<double> matrix) {
  std::vector<T> values = rounded<T>(std::move(matrix.values));
  return BsrTensor<T>(BsrMatrix<T>{static_cast<BsrPattern&&>(matrix), std::move(values)});
}

[[noreturn]] void fail_format(const std::filesystem::path& path, const char* what) {
  throw Error(ErrorCode::invalid_argument, path.string() + ": " + what);
}

template <class T>
void write_dense(const std::filesystem::path& path, const TensorView<const T>& tensor) {
  if (detail::format_to_write(path) != FileFormat::npy) fail_format(path, "dense features are written to .npy");
  const TensorShape& shape = tensor.shape();
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(shape.size()));
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      for (std::int64_t token = 0; token < shape.tokens; ++token) {
        for (std::int64_t feature = 0; feature < shape.features; ++feature) {
          values.push_back(tensor(batch, head, token, feature));
        }
      }
    }
  }
  std::vector<std::int64_t> axes{shape.batch, shape.heads, shape.tokens, shape.features};
  if (shape.batch == 1 && shape.heads == 1) axes.erase(axes.begin(), axes.begin() + 2);
  write_npy(path, {"", std::move(axes), std::span<const T>(values)});
}

/// The one matrix that a sparse file can hold.
template <class View>
const View& only_matrix(const CompressedTensorView<View>& tensor) {
  if (tensor.matrices().size() == 1) return tensor.matrices().front();
  throw Error(ErrorCode::unsupported, std::to_string(tensor.matrices().size()) +
                                          " compressed matrices, expected one batch entry and head in a sparse file");
}

template <class T>
void write_blocks(const std::filesystem::path& path, const BsrView<T>& matrix) {
  const bool divides = matrix.rows % matrix.block_rows == 0 && matrix.columns % matrix.block_columns == 0;
  if (divides && detail::format_to_write(path) == FileFormat::npz) {
    detail::write_scipy_npz(path, matrix);
  } else {
    write_csr(path, to_csr(matrix));
  }
}

}  // namespace

template <class T>
Features<T> read_features_from_memory(std::span<const std::byte> bytes, const std::string& name,
                                      const ReadOptions& options, ReadReport* report) {
  ReadReport met;
  met.format = detail::detect_format(bytes, name);
  Features<T> features;
  if (met.format == FileFormat::npy) {
    if (options.padded_lists) {
      throw FileError(ErrorCode::file_format, name, 0, 0, "padded lists are a pattern, expected features");
    }
    Tensor<T> tensor = detail::read_tensor_from_memory<T>(bytes, name);
    met.stored_entries = tensor.shape().size();
    features = std::move(tensor);
  } else if (met.format == FileFormat::npz) {
    auto content = detail::read_scipy_npz(bytes, name, detail::ValuesWanted::exact);
    if (auto* blocks = std::get_if<detail::FileBlocks>(&content)) {
      features = bsr_features<T>(detail::canonical_blocks(std::move(*blocks), name, options, met));
    } else {
      auto& entries = std::get<detail::FileEntries>(content);
      features = csr_features<T>(detail::canonical_matrix(std::move(entries), name, options, met));
    }
  } else {
    features = csr_features<T>(read_csr_from_memory(bytes, name, options, &met));
  }
  if (report != nullptr) *report = met;
  return features;
}

template <class T>
Features<T> read_features(const std::filesystem::path& path, const ReadOptions& options, ReadReport* report) {
  const detail::FileBytes file(path);
  return read_features_from_memory<T>(file.bytes(), path.string(), options, report);
}

template <class T>
void write_features(const std::filesystem::path& path, const FeaturesView<T>& features) {
  switch (features.storage()) {
    case FeatureStorage::dense: write_dense(path, features.dense()); return;
    case FeatureStorage::csr: write_csr(path, only_matrix(features.csr())); return;
    case FeatureStorage::bsr: write_blocks(path, only_matrix(features.bsr())); return;
  }
}

#define COBBLE_INSTANTIATE(T)                                                                                        \
  template Features<T> read_features(const std::filesystem::path&, const ReadOptions&, ReadReport*);                 \
  template Features<T> read_features_from_memory(std::span<const std::byte>, const std::string&, const ReadOptions&, \
                                                 ReadReport*);                                                       \
  template void write_features(const std::filesystem::path&, const FeaturesView<T>&);
COBBLE_INSTANTIATE(float)
COBBLE_INSTANTIATE(double)
#undef COBBLE_INSTANTIATE

}  // namespace cobble
