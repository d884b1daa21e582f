#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "cobble/compressed_attention.hpp"
#include "cobble/files.hpp"
#include "problem_tensors.hpp"

// What `cobble run` and `cobble bench` do where Q, K or V is compressed. T is float or double.

namespace cobble::program {

/// Random features of which each token keeps `kept`, those with the largest values; of BSR in whole blocks of 16 tokens
/// x as many features as divide `kept`, at most 16. Made a piece at a time, never in full.
template <class T>
Features<T> random_features(const TensorShape& shape, std::int64_t kept, const std::string& storage, std::uint64_t seed,
                            std::uint64_t stream);

/// Stored entries per token.
template <class T>
double entries_per_token(const ProblemInput<T>& input);

/// Values, offsets and indices.
template <class T>
std::int64_t storage_bytes(const ProblemInput<T>& input);

/// The same tensors with every input in full.
template <class T>
ProblemTensors<T> densified(const ProblemTensors<T>& tensors);

/// What forward and backward take and give, each in its storage.
template <class T>
class CompressedRun {
 public:
  /// Keeps a reference to the tensors. Gradients of dense inputs go to `gradients`.
  CompressedRun(const ProblemTensors<T>& tensors, Gradients<T>& gradients);

  void forward(const Plan& plan, AttentionView<T> result, Workspace& workspace, const ScoreTerms<T>& terms) const;
  void backward(const Plan& plan, const Attention<T>& result, Workspace& workspace,
                const BackwardOptions<T>& options) const;
  /// The reference takes inputs and gradients in full; what compressed gradients do not store comes from a backward
  /// that gives them dense.
  CheckResult check(const Plan& plan, const Pattern& pattern, const Attention<T>& result,
                    const BackwardOptions<T>& options, std::uint64_t seed,
                    std::int64_t full_check_tokens = kFullCheckTokens) const;
  /// NAME_data, NAME_indices, NAME_indptr and NAME_shape, as SciPy's CSR or BSR has them, of the gradients that are
  /// compressed; matrices of several batch entries and heads stand one below another. BSR whose blocks do not divide
  /// the tokens and features goes as CSR.
  void add_arrays(std::vector<NamedArray>& arrays);

 private:
  const ProblemTensors<T>& tensors_;
  Gradients<T>& gradients_;
  std::optional<Features<T>> query_;
  std::optional<Features<T>> key_;
  std::optional<Features<T>> value_;
  FeatureGradientsView<T> view_;
  std::vector<std::vector<std::int64_t>> saved_integers_;
  std::vector<std::vector<T>> saved_values_;
};

/// Of halves, which are never compressed.
template <class T>
struct NoCompressedRun {
  NoCompressedRun(const ProblemTensors<T>&, Gradients<T>&) {}

  void forward(const Plan&, AttentionView<T>, Workspace&, const ScoreTerms<T>&) const {}
  void backward(const Plan&, const Attention<T>&, Workspace&, const BackwardOptions<T>&) const {}
  CheckResult check(const Plan&, const Pattern&, const Attention<T>&, const BackwardOptions<T>&, std::uint64_t,
                    std::int64_t = kFullCheckTokens) const {
    return {};
  }
  void add_arrays(std::vector<NamedArray>&) {}
};
template <class T>
using MaybeCompressedRun = std::conditional_t<std::is_same_v<T, ComputeType<T>>, CompressedRun<T>, NoCompressedRun<T>>;

}  // namespace cobble::program
