#include <doctest/doctest.h>

#include <cmath>

#include "cobble/cost_model.hpp"
#include "cobble/plan.hpp"
#include "support/error_of.hpp"

using namespace cobble;
using namespace cobble::test;

namespace {

void check_measured(const CostModel& model) {
  for (const double rate : {model.dense_flop_per_second, model.near_pair_flop_per_second,
                            model.middle_pair_flop_per_second, model.far_pair_flop_per_second,
                            model.memory_pair_flop_per_second, model.exponential_per_second, model.bytes_per_second}) {
    CHECK(std::isfinite(rate));
    CHECK(rate > 1e6);   // slower than any machine, under any sanitizer
    CHECK(rate < 1e14);  // faster than any core
  }
  const CostModel defaults;
  CHECK(model.dense_flop_per_second != defaults.dense_flop_per_second);
  CHECK(model.far_pair_flop_per_second != defaults.far_pair_flop_per_second);
  CHECK(model.bytes_per_second != defaults.bytes_per_second);
  CHECK(model.seconds_per_row == defaults.seconds_per_row);  // is not measured
  CHECK(model.near_bytes > 0);
  CHECK(model.far_bytes > 0);
}

}  // namespace

TEST_CASE("measured rates are those of a machine") { check_measured(measure_cost_model(8, 16)); }

TEST_CASE("a plan goes by what calibration measured, by the given cost model otherwise") {
  const CostModel given = {.dense_flop_per_second = 123e9, .near_bytes = 4567, .far_bytes = 1 << 22};
  CHECK(make_plan(causal(200), {}).cost_model() == CostModel{});
  CHECK(make_plan(causal(200), {}, {.cost_model = given}).cost_model() == given);
  check_measured(make_plan(causal(200), {.head_dim = 16}, {.cost_model = given, .calibrate = true}).cost_model());
}

TEST_CASE("what there are no kernels for is not measured") {
  CHECK(
      error_of([] { measure_cost_model(2, 64); }).starts_with("invalid_argument: element_bytes = 2, expected 4 or 8"));
  CHECK(
      error_of([] { measure_cost_model(4, 0); }).starts_with("invalid_argument: features = 0, expected one to 65536"));
  CHECK(error_of([] { measure_cost_model(4, 65537); }).starts_with("invalid_argument: features = 65537"));
}
