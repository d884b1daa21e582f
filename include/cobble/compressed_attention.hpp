#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "cobble/attention.hpp"
#include "cobble/compressed.hpp"

// forward and backward where Q, K or V is compressed, in any combination. The plan is the same, and so are all rules of
// attention.hpp; what is not stored is 0. No tensor is ever written out in full. T is float or double:
//
//   Plan plan = make_plan(pattern, with_entries<float>({.head_dim = 256}, compressed_query, compressed_key, value));
//   Attention<float> result = forward<float>(plan, compressed_query, compressed_key, value);
//   FeatureGradients<float> gradients = backward<float>(plan, compressed_query, compressed_key, value, result,
//   grad_output);
//
// A plan that reorders tokens copies compressed inputs as CSR, BSR too, whose blocks need not stay together.
//
// Where inputs are finite, a sum takes the stored entries alone: if it overflows, features that are not stored stay
// apart from that.

namespace cobble {

/// The problem with the entries that a token of these inputs stores on average, for make_plan(); dense ones leave 0.
template <class T>
Problem with_entries(Problem problem, const FeaturesView<T>& query, const FeaturesView<T>& key,
                     const FeaturesView<T>& value);

/// How the gradient of a compressed input comes back; that of a dense one is dense.
enum class GradientStorage {
  as_input,  ///< on the input's own entries, in its storage
  dense,
};

/// The result of backward.
template <class T>
struct FeatureGradients {
  Features<T> query;  ///< batch x H_q x n_q x d
  Features<T> key;    ///< batch x H_kv x n_k x d
  Features<T> value;  ///< batch x H_kv x n_k x d_v
  Tensor<T> bias = {};
  Tensor<T> sinks = {};
};

/// Where backward writes the gradient of one input: to a dense tensor or, of a compressed input, to one value for each
/// of its values, batch entry by batch entry and head by head. Padding of ragged blocks is left alone.
template <class T>
using FeatureGradientView = std::variant<TensorView<T>, std::vector<std::span<T>>>;

template <class T>
struct FeatureGradientsView {
  FeatureGradientView<T> query;
  FeatureGradientView<T> key;
  FeatureGradientView<T> value;
  TensorView<T> bias = {};
  std::span<T> sinks = {};
};

/// query: batch x H_q x n_q x d; key: batch x H_kv x n_k x d; value: batch x H_kv x n_k x d_v.
template <class T>
Attention<T> forward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                     const FeaturesView<T>& value, const ScoreTerms<T>& terms = {});
/// The same into the caller's memory.
template <class T>
void forward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key, const FeaturesView<T>& value,
             AttentionView<T> result, Workspace& workspace, const ScoreTerms<T>& terms = {});

/// `result` is what forward returned for the same plan and inputs; grad_output: batch x H_q x n_q x d_v.
template <class T>
FeatureGradients<T> backward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key,
                             const FeaturesView<T>& value, AttentionView<const T> result,
                             TensorView<const T> grad_output, const BackwardOptions<T>& options = {},
                             GradientStorage storage = GradientStorage::as_input);
/// The same into the caller's memory. Gradients are overwritten, not added to.
template <class T>
void backward(const Plan& plan, const FeaturesView<T>& query, const FeaturesView<T>& key, const FeaturesView<T>& value,
              AttentionView<const T> result, TensorView<const T> grad_output, const FeatureGradientsView<T>& gradients,
              Workspace& workspace, const BackwardOptions<T>& options = {});

}  // namespace cobble
