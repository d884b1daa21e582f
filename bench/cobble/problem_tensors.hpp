#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cobble/aligned_buffer.hpp"
#include "cobble/compressed.hpp"
#include "cobble/half.hpp"
#include "cobble/pattern.hpp"
#include "cobble/plan.hpp"
#include "cobble/tensor.hpp"
#include "feature_options.hpp"

// The tensors of `cobble run`: the caller's files, and seeded random numbers in place of those not given.

namespace cobble::program {

/// What the command line says: sizes where given, files where the name is not empty.
struct ProblemArguments {
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> heads;
  std::optional<std::int64_t> kv_heads;
  std::optional<std::int64_t> head_dim;
  std::optional<std::int64_t> value_dim;
  std::string query_file;
  std::string key_file;
  std::string value_file;
  std::string grad_output_file;
  std::string grad_lse_file;
  std::uint64_t seed = 0;
  FeatureOptions features;  ///< of random Q and K
};

/// A dense tensor in C order; empty when there is none.
template <class T>
struct OwnedTensor {
  AlignedBuffer<T> values;
  TensorShape shape;

  TensorView<const T> view() const {
    return values.size() == 0 && shape == TensorShape{} ? TensorView<const T>()
                                                        : TensorView<const T>(values.data(), shape);
  }
};

/// Q, K or V; one of the two. T is float or double where it is compressed.
template <class T>
struct ProblemInput {
  const OwnedTensor<T>* dense = nullptr;
  const Features<T>* compressed = nullptr;

  FeaturesView<T> view() const { return compressed != nullptr ? FeaturesView<T>(*compressed) : dense->view(); }
};

/// The inputs of forward and backward.
template <class T>
struct ProblemTensors {
  Problem problem;
  OwnedTensor<T> query;
  OwnedTensor<T> key;
  OwnedTensor<T> value;
  std::optional<Features<T>> compressed_query;  ///< in the place of the dense ones
  std::optional<Features<T>> compressed_key;
  std::optional<Features<T>> compressed_value;
  OwnedTensor<T> grad_output;
  OwnedTensor<ComputeType<T>> grad_lse;  ///< empty unless its file is given
  /// Every file given has one matrix, tokens x features, and no axes for batch and heads.
  bool matrices = false;

  bool compressed() const { return compressed_query || compressed_key || compressed_value; }
  ProblemInput<T> query_input() const { return {&query, compressed_query ? &*compressed_query : nullptr}; }
  ProblemInput<T> key_input() const { return {&key, compressed_key ? &*compressed_key : nullptr}; }
  ProblemInput<T> value_input() const { return {&value, compressed_value ? &*compressed_value : nullptr}; }
};

/// Reads the files, settles the sizes that flags, files and pattern must agree on, and fills the rest with random
/// numbers. Throws Error that names the two that do not fit.
template <class T>
ProblemTensors<T> make_problem_tensors(const Pattern& pattern, const ProblemArguments& arguments);

}  // namespace cobble::program
