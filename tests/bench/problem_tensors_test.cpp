#include "problem_tensors.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "cobble/files.hpp"
#include "support/error_of.hpp"

using namespace cobble;
using namespace cobble::program;
using cobble::test::error_of;

namespace {

/// A .npy file of increasing numbers, removed at the end.
class TensorFile {
 public:
  explicit TensorFile(std::vector<std::int64_t> shape)
      : path_((std::filesystem::temp_directory_path() / ("cobble_tensor_" + std::to_string(count_++) + ".npy"))
                  .string()) {
    std::size_t size = 1;
    for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
    std::vector<double> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<double>(i);
    write_npy(path_, {"", std::move(shape), std::span<const double>(values)});
  }
  ~TensorFile() { std::filesystem::remove(path_); }
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::string path_;
};

std::string error_with(const ProblemArguments& arguments, const Pattern& pattern = full(6, 9)) {
  return error_of([&] { make_problem_tensors<float>(pattern, arguments); });
}

}  // namespace

TEST_CASE("sizes that nothing settles have their defaults") {
  const ProblemTensors<float> tensors = make_problem_tensors<float>(full(6, 9), {});
  CHECK(tensors.query.shape == TensorShape{1, 1, 6, 64});
  CHECK(tensors.value.shape == TensorShape{1, 1, 9, 64});
  CHECK(tensors.grad_lse.view().data() == nullptr);
  CHECK_FALSE(tensors.matrices);
}

TEST_CASE("sizes come from files, and flags may repeat them") {
  const TensorFile query({2, 4, 6, 8}), value({2, 2, 9, 5});
  ProblemArguments arguments;
  arguments.query_file = query.path();
  arguments.value_file = value.path();
  arguments.heads = 4;
  const ProblemTensors<float> tensors = make_problem_tensors<float>(full(6, 9), arguments);
  CHECK(tensors.key.shape == TensorShape{2, 2, 9, 8});
  CHECK(tensors.grad_output.shape == TensorShape{2, 4, 6, 5});
  CHECK(tensors.query.view()(1, 3, 5, 7) == 2 * 4 * 6 * 8 - 1);
  CHECK_FALSE(tensors.matrices);
}

TEST_CASE("two-dimensional files make a problem of matrices; the gradient of lse needs no axis of features") {
  const TensorFile query({6, 8}), grad_lse({6});
  ProblemArguments arguments;
  arguments.query_file = query.path();
  arguments.grad_lse_file = grad_lse.path();
  const ProblemTensors<float> tensors = make_problem_tensors<float>(full(6, 9), arguments);
  CHECK(tensors.matrices);
  CHECK(tensors.grad_lse.shape == TensorShape{1, 1, 6, 1});
}

TEST_CASE("what does not fit is an error that names both sides") {
  const TensorFile query({6, 8}), key({9, 7}), short_key({8, 8}), cube({2, 6, 8});
  ProblemArguments arguments;
  arguments.query_file = query.path();
  arguments.head_dim = 16;
  CHECK(error_with(arguments) ==
        "shape_mismatch: head dimension: 8 from --query " + query.path() + ", but 16 from --head-dim");
  arguments.head_dim.reset();
  arguments.key_file = key.path();
  CHECK(error_with(arguments) ==
        "shape_mismatch: head dimension: 7 from --key " + key.path() + ", but 8 from --query " + query.path());
  arguments.key_file = short_key.path();
  CHECK(error_with(arguments) ==
        "shape_mismatch: --key " + short_key.path() + ": 8 tokens, but the pattern has 9 columns");
  arguments.key_file.clear();
  arguments.query_file = cube.path();
  CHECK(error_with(arguments) ==
        "shape_mismatch: --query " + cube.path() +
            ": the array is 2 x 6 x 8, expected tokens x features or batch x heads x tokens x features");
}

TEST_CASE("the gradient of lse has one number a token") {
  const TensorFile grad_lse({6, 2});
  ProblemArguments arguments;
  arguments.grad_lse_file = grad_lse.path();
  CHECK(error_with(arguments) == "shape_mismatch: --grad-lse " + grad_lse.path() + ": 2 numbers a token, expected 1");
}

TEST_CASE_TEMPLATE("random halves are the random floats rounded, and files are rounded when read", T, bfloat16,
                   float16) {
  const TensorFile query({6, 4});
  ProblemArguments arguments;
  arguments.query_file = query.path();
  const ProblemTensors<float> wide = make_problem_tensors<float>(full(6, 9), arguments);
  const ProblemTensors<T> narrow = make_problem_tensors<T>(full(6, 9), arguments);
  CHECK(static_cast<float>(narrow.query.values[7]) == 7);
  REQUIRE(narrow.key.values.size() == wide.key.values.size());
  double worst = 0;
  for (std::int64_t i = 0; i < wide.key.values.size(); ++i) {
    worst = std::max(worst,
                     std::abs(static_cast<double>(narrow.key.values[i]) - static_cast<double>(T(wide.key.values[i]))));
  }
  CHECK(worst <= static_cast<double>(std::numeric_limits<T>::epsilon()));  // of numbers rounded to float first
}
