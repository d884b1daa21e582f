#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "cobble/reference.hpp"

// Cases of the reference that are small enough to be checked by hand.

namespace cobble::test {

using Numbers = std::vector<double>;

/// One batch entry, one head.
inline TensorView<const double> tensor(const Numbers& numbers, std::int64_t features = 1) {
  return {numbers, static_cast<std::int64_t>(numbers.size()) / features, features};
}

/// d = d_v = 1 and scale = 1.
inline ReferenceProblem<double> problem(const Pattern& pattern, const Numbers& query, const Numbers& key,
                                        const Numbers& value, const Numbers& grad_output) {
  return {pattern, tensor(query), tensor(key), tensor(value), tensor(grad_output), {}, 1.0};
}

inline void check_equal(const Tensor<double>& actual, const Numbers& expected) {
  REQUIRE(actual.values().size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    if (std::isfinite(expected[i])) {
      CHECK(actual.values()[i] == doctest::Approx(expected[i]).epsilon(1e-14));
    } else {
      CHECK(actual.values()[i] == expected[i]);
    }
  }
}

}  // namespace cobble::test
