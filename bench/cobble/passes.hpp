#pragma once

#include <cstdint>
#include <optional>

#include "bench_suites.hpp"
#include "check.hpp"
#include "cobble/attention.hpp"
#include "cobble/plan.hpp"
#include "compressed_inputs.hpp"
#include "problem_tensors.hpp"

// Forward and backward of a case of `cobble bench`, ready to be timed.

namespace cobble::program {

/// Random tensors, a plan, and memory for results and scratch. T is float, double, bfloat16 or float16.
template <class T>
class Passes {
 public:
  Passes(const Pattern& pattern, const BenchCase& measured, std::uint64_t seed);
  Passes(const Pattern& pattern, ProblemTensors<T> tensors, ReorderMethod reorder = ReorderMethod::identity);
  Passes(const Passes&) = delete;  // what is compressed refers to the tensors
  Passes& operator=(const Passes&) = delete;

  const Plan& plan() const noexcept { return plan_; }
  const ProblemTensors<T>& tensors() const noexcept { return tensors_; }
  const Attention<T>& result() const noexcept { return result_; }
  /// Of dense inputs.
  const Gradients<T>& gradients() const noexcept { return gradients_; }
  const Pattern& pattern() const noexcept { return pattern_; }

  /// Those of the plan.
  PlanOptions plan_options() const { return {.reorder = reorder_}; }
  /// A plan with other wishes.
  Plan make_plan(PlanOptions options) const;
  void forward() { forward(plan_); }
  void backward() { backward(plan_); }
  void forward(const Plan& plan);
  /// After forward.
  void backward(const Plan& plan);

  /// Of all inputs, outputs and gradients, each in its storage.
  std::int64_t tensor_bytes() const;
  std::int64_t workspace_bytes() const { return workspace_.bytes(); }
  /// What the last forward and backward left, against the double reference.
  CheckResult check(std::uint64_t seed, std::int64_t full_check_tokens) const;

 private:
  Pattern pattern_;
  ProblemTensors<T> tensors_;
  ReorderMethod reorder_;
  Plan plan_;
  Attention<T> result_;
  Gradients<T> gradients_;
  std::optional<MaybeCompressedRun<T>> compressed_;
  Workspace workspace_;
};

}  // namespace cobble::program
