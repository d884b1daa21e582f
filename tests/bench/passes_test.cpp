#include "passes.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace cobble;
using namespace cobble::program;

namespace {

template <class T>
double largest_difference(const Tensor<T>& a, const Tensor<T>& b) {
  REQUIRE(a.shape() == b.shape());
  double largest = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(a.values()[i] - b.values()[i])));
  }
  return largest;
}

BenchCase small_case(const char* storage) {
  BenchCase measured = make_case("window(150,20,3)", 32, "f64");
  measured.heads = 2;
  measured.value_dim = 8;
  if (*storage != 0) measured.features = {4, storage};
  return measured;
}

}  // namespace

TEST_CASE_TEMPLATE("compressed passes agree with the same tensors in full and with the reference", T, float, double) {
  const Pattern pattern = window(150, 20, 3);
  for (const char* storage : {"csr", "bsr"}) {
    CAPTURE(storage);
    Passes<T> passes(pattern, small_case(storage), 5);
    CHECK(passes.tensors().compressed());
    CHECK(passes.plan().problem().value_dim == 8);
    passes.forward();
    passes.backward();
    CHECK(passes.check(5, 4096).passed());

    Passes<T> full(pattern, densified(passes.tensors()));
    CHECK_FALSE(full.tensors().compressed());
    full.forward();
    full.backward();
    CHECK(full.check(5, 4096).passed());
    CHECK(largest_difference(passes.result().output, full.result().output) < check_tolerance<T>());
    CHECK(largest_difference(passes.gradients().value, full.gradients().value) < 10 * check_tolerance<T>());
    CHECK(passes.tensor_bytes() < full.tensor_bytes());
  }
}

TEST_CASE("the bytes of tensors are those of their storage, inputs and gradients") {
  const Pattern pattern = window(150, 20, 3);
  const std::int64_t lse = 2 * 150 * 8;
  const std::int64_t values_and_outputs = 4 * 2 * 150 * 8 * 8;
  const Passes<double> dense(pattern, small_case(""), 5);
  CHECK(dense.tensor_bytes() == 4 * 2 * 150 * 32 * 8 + values_and_outputs + lse);
  const Passes<double> csr(pattern, small_case("csr"), 5);
  CHECK(csr.tensor_bytes() == 4 * 2 * (150 * 4 * (8 + 4) + 151 * 8) + values_and_outputs + lse);
}

TEST_CASE("a case that reorders has a plan that does, and the same results") {
  const Pattern pattern = power_law_graph(300, 6, 1);
  BenchCase measured = make_case("graph(300,6)", 16, "f64");
  Passes<double> given(pattern, measured, 1);
  CHECK(given.plan().reordering() == nullptr);
  measured.reorder = "similarity";
  Passes<double> reordered(pattern, measured, 1);
  REQUIRE(reordered.plan().reordering() != nullptr);
  CHECK(reordered.plan().reordering()->method == ReorderMethod::similarity);
  CHECK(reordered.make_plan({}).reordering() == nullptr);
  for (Passes<double>* passes : {&given, &reordered}) {
    passes->forward();
    passes->backward();
    CHECK(passes->check(1, 4096).passed());
  }
  CHECK(largest_difference(given.result().output, reordered.result().output) < 1e-12);
  CHECK(largest_difference(given.gradients().key, reordered.gradients().key) < 1e-11);
}
